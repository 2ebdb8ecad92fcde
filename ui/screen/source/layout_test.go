package source

import (
	"fmt"
	"testing"

	"ccagent/ui/internal/golden"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/layout"
)

func TestSourceDrawings(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}, {20, 5}} {
		f := layout.Outer(size[0], size[1])
		s := divide(f.Body, f.Small)
		golden.Check(t, fmt.Sprintf("source-%dx%d.txt", size[0], size[1]), screentest.Outline(size[0], size[1], map[byte]layout.Rect{
			'T': f.Title, 'n': f.Notice, 'c': f.Crumbs, 'f': f.Footer,
			's': s.Source, 'C': s.Causes, 'B': s.Lines, 'h': s.Also,
		}))
	}
}

// At every size all tables are inside the body.
func TestEverySizeHolds(t *testing.T) {
	for w := 1; w <= 210; w++ {
		for h := 1; h <= 70; h++ {
			f := layout.Outer(w, h)
			s := divide(f.Body, f.Small)
			for _, r := range []layout.Rect{s.Source, s.Causes, s.Blocks, s.Lines, s.Also} {
				if !r.In(f.Body) {
					t.Fatalf("%dx%d: %v outside body %v", w, h, r, f.Body)
				}
			}
		}
	}
}

package hot

import (
	"testing"

	"ccagent/ui/internal/golden"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/layout"
)

func frameOf(w, h, rows int, one bool, only paneID) map[byte]layout.Rect {
	f := layout.Outer(w, h)
	m := divide(f.Body, rows, only, one || f.Small)
	return map[byte]layout.Rect{
		'T': f.Title, 'n': f.Notice, 'c': f.Crumbs, 'f': f.Footer,
		't': m.Boxes[paneTimeline], 'h': m.Boxes[paneHot], 's': m.Boxes[paneSource],
	}
}

func TestMainDrawings(t *testing.T) {
	for _, c := range []struct {
		name string
		w, h int
		rows int
		one  bool
		only paneID
	}{
		{"80x24", 80, 24, 6, false, paneHot},
		{"120x40", 120, 40, 6, false, paneHot},
		{"200x60", 200, 60, 8, false, paneHot},
		{"20x5", 20, 5, 6, false, paneHot},      // one pane with a notice
		{"60x12", 60, 12, 6, false, paneSource}, // counts and breadcrumb come back
		{"80x24-zoom", 80, 24, 6, true, paneSource},
	} {
		golden.Check(t, c.name+".txt", screentest.Outline(c.w, c.h, frameOf(c.w, c.h, c.rows, c.one, c.only)))
	}
}

// At every size the panes are inside the body, and share nothing but their borders.
func TestEverySizeHolds(t *testing.T) {
	for w := 1; w <= 210; w++ {
		for h := 1; h <= 70; h++ {
			f := layout.Outer(w, h)
			for _, one := range []bool{false, true} {
				rects := frameOf(w, h, 6, one, paneHot)
				for _, c := range []byte("ths") {
					if r := rects[c]; !r.In(f.Body) {
						t.Fatalf("%dx%d: %c is %v", w, h, c, r)
					}
				}
				if f.Small || one {
					continue
				}
				a, b := rects['t'].Intersect(rects['h']), rects['h'].Intersect(rects['s'])
				if a.Dy() != 1 || b.Dx() != 1 {
					t.Fatalf("%dx%d: borders overlap by %v and %v", w, h, a, b)
				}
			}
		}
	}
}

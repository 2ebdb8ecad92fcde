package layout

import (
	"fmt"
	"image"
	"strings"
	"testing"

	"ccagent/ui/internal/golden"
)

// draw outlines rectangles with their letters.
func draw(w, h int, rects map[byte]Rect) string {
	grid := make([][]byte, h)
	for y := range grid {
		grid[y] = []byte(strings.Repeat(" ", w))
	}
	for _, c := range []byte("TtBhscCnf") {
		r, ok := rects[c]
		if !ok || r.Empty() {
			continue
		}
		for y := r.Min.Y; y < r.Max.Y; y++ {
			for x := r.Min.X; x < r.Max.X; x++ {
				edge := y == r.Min.Y || y == r.Max.Y-1 || x == r.Min.X || x == r.Max.X-1
				if edge {
					grid[y][x] = c
				}
			}
		}
	}
	var b strings.Builder
	for _, row := range grid {
		b.WriteString(strings.TrimRight(string(row), " "))
		b.WriteByte('\n')
	}
	return b.String()
}

func frameOf(w, h, rows int, one bool, only Pane) map[byte]Rect {
	f := Outer(w, h)
	m := Main(f.Body, rows, only, one || f.Small)
	return map[byte]Rect{
		'T': f.Title, 'n': f.Notice, 'c': f.Crumbs, 'f': f.Footer,
		't': m.Boxes[Timeline], 'h': m.Boxes[Hot], 's': m.Boxes[Source],
	}
}

func TestMainDrawings(t *testing.T) {
	for _, c := range []struct {
		name string
		w, h int
		rows int
		one  bool
		only Pane
	}{
		{"80x24", 80, 24, 6, false, Hot},
		{"120x40", 120, 40, 6, false, Hot},
		{"200x60", 200, 60, 8, false, Hot},
		{"20x5", 20, 5, 6, false, Hot},      // one pane with a notice
		{"60x12", 60, 12, 6, false, Source}, // counts and breadcrumb come back
		{"80x24-zoom", 80, 24, 6, true, Source},
	} {
		golden.Check(t, c.name+".txt", draw(c.w, c.h, frameOf(c.w, c.h, c.rows, c.one, c.only)))
	}
}

func TestSourceDrawings(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}, {20, 5}} {
		f := Outer(size[0], size[1])
		s := SourceOver(f.Body, f.Small)
		golden.Check(t, fmt.Sprintf("source-%dx%d.txt", size[0], size[1]), draw(size[0], size[1], map[byte]Rect{
			'T': f.Title, 'n': f.Notice, 'c': f.Crumbs, 'f': f.Footer,
			's': s.Source, 'C': s.Causes, 'B': s.Lines, 'h': s.Also,
		}))
	}
}

// At every size: all rectangles inside the terminal, one-row bars exactly one row, the
// body never empty, nothing but shared borders overlapping.
func TestEverySizeHolds(t *testing.T) {
	for w := 1; w <= 210; w++ {
		for h := 1; h <= 70; h++ {
			screen := image.Rect(0, 0, w, h)
			for _, one := range []bool{false, true} {
				rects := frameOf(w, h, 6, one, Hot)
				for c, r := range rects {
					if !r.In(screen) {
						t.Fatalf("%dx%d: %c is %v", w, h, c, r)
					}
				}
				f := Outer(w, h)
				if f.Body.Empty() {
					t.Fatalf("%dx%d: no body", w, h)
				}
				for _, r := range []Rect{f.Title, f.Notice, f.Crumbs, f.Footer} {
					if !r.Empty() && r.Dy() != 1 || r.Overlaps(f.Body) {
						t.Fatalf("%dx%d: bar %v, body %v", w, h, r, f.Body)
					}
				}
				if f.Small {
					continue
				}
				a := rects['t'].Intersect(rects['h'])
				b := rects['h'].Intersect(rects['s'])
				if !one && (a.Dy() != 1 || b.Dx() != 1) {
					t.Fatalf("%dx%d: borders overlap by %v and %v", w, h, a, b)
				}
				s := SourceOver(f.Body, f.Small)
				for _, r := range []Rect{s.Source, s.Causes, s.Lines, s.Also} {
					if !r.In(f.Body) {
						t.Fatalf("%dx%d: %v outside body %v", w, h, r, f.Body)
					}
				}
			}
		}
	}
}

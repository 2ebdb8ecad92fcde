package layout

import (
	"image"
	"testing"
)

// At every size: all rectangles are inside the terminal, one-row bars have exactly one row,
// and the body is never empty and overlaps none of them.
func TestEverySizeHolds(t *testing.T) {
	for w := 1; w <= 210; w++ {
		for h := 1; h <= 70; h++ {
			f := Outer(w, h)
			if f.Body.Empty() {
				t.Fatalf("%dx%d: no body", w, h)
			}
			for _, r := range []Rect{f.Title, f.Notice, f.Crumbs, f.Footer, f.Body} {
				if !r.In(image.Rect(0, 0, w, h)) {
					t.Fatalf("%dx%d: %v is outside", w, h, r)
				}
			}
			for _, r := range []Rect{f.Title, f.Notice, f.Crumbs, f.Footer} {
				if !r.Empty() && r.Dy() != 1 || r.Overlaps(f.Body) {
					t.Fatalf("%dx%d: bar %v, body %v", w, h, r, f.Body)
				}
			}
		}
	}
}

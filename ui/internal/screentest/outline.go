package screentest

import (
	"strings"

	"ccagent/ui/layout"
)

// Outline draws rectangles with their letters.
func Outline(w, h int, rects map[byte]layout.Rect) string {
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

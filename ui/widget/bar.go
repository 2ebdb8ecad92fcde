package widget

import (
	"math"

	"ccagent/ui/theme"
)

// Bar draws only (solid) and what of share is shared (light) over width
// columns; both are fractions of 1. Any share at all gets a column.
func (p *Painter) Bar(x, y, width int, only, share float64) {
	n := barCells(share, width)
	o := min(n, barCells(only, width))
	for i := range n {
		if i < o {
			p.Cell(x+i, y, p.Glyphs.Full, p.Theme.Only)
		} else {
			p.Cell(x+i, y, p.Glyphs.Light, p.Theme.Shared)
		}
	}
}

func barCells(f float64, width int) int {
	if !(f > 0) {
		return 0
	}
	return max(1, min(width, int(math.Round(f*float64(width)))))
}

// HeatGlyph is the sign of a share's heat.
func (p *Painter) HeatGlyph(share float64) (string, theme.Style) {
	l := theme.HeatLevel(share)
	if l == 0 {
		return " ", p.Theme.Text
	}
	return p.Glyphs.Heat[l], p.Theme.Heat[l-1]
}

// Strip draws one row of column glyphs for values 0..1, in the style of st.
func (p *Painter) Strip(x, y int, values []float64, st theme.Style) {
	for i, v := range values {
		p.Cell(x+i, y, p.Glyphs.Level(v), st)
	}
}

// Level is the column glyph of a value 0..1; only nothing looks like nothing.
func (g *Glyphs) Level(v float64) string {
	if !(v > 0) {
		return g.Steps[0]
	}
	return g.Steps[max(1, min(8, int(math.Ceil(v*8))))]
}

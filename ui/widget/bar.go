package widget

import (
	"math"

	"ccagent/ui/theme"
)

// Bar draws all over width columns, and in front of it the part that is solid; both are fractions
// of the width. It is drawn in eighths of a column, and anything at all has one of them. Without
// colours, or in ASCII, the rest is of another sign, and columns are whole.
func (p *Painter) Bar(x, y, width int, solid, all float64) {
	n := eighths(all, width)
	o := min(n, eighths(solid, width))
	if p.Theme.Plain || p.Glyphs.ASCII {
		p.wholeBar(x, y, width, o, n)
		return
	}
	for i := 0; i < width && i*8 < n; i++ {
		front, end := min(8, max(0, o-i*8)), min(8, n-i*8)
		switch {
		case front == 0:
			p.Cell(x+i, y, p.Glyphs.Eighths[end], p.Theme.Shared)
		case front < 8 && end == 8:
			p.Cell(x+i, y, p.Glyphs.Eighths[front], theme.Style{Fg: p.Theme.Only.Fg, Bg: p.Theme.Shared.Fg})
		default:
			p.Cell(x+i, y, p.Glyphs.Eighths[front], p.Theme.Only)
		}
	}
}

// Rest is the sign of a bar's part that is not solid.
func (p *Painter) Rest() string {
	if p.Theme.Plain || p.Glyphs.ASCII {
		return p.Glyphs.Light
	}
	return p.Glyphs.Full
}

// wholeBar draws a bar of o and n eighths in whole columns.
func (p *Painter) wholeBar(x, y, width, o, n int) {
	for i := 0; i < width && i*8 < n; i++ {
		switch {
		case o >= i*8+4:
			p.Cell(x+i, y, p.Glyphs.Full, p.Theme.Only)
		case n >= i*8+4:
			p.Cell(x+i, y, p.Glyphs.Light, p.Theme.Shared)
		case i == 0:
			p.Cell(x, y, p.Glyphs.Least, p.Theme.Shared)
		}
	}
}

// eighths is a fraction of width columns in eighths of a column.
func eighths(f float64, width int) int {
	if !(f > 0) {
		return 0
	}
	return max(1, min(8*width, int(math.Round(f*float64(8*width)))))
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

// Broken marks the columns of a row of which nobody knows what happened, up to a column.
func (p *Painter) Broken(x, end, y int, not []bool) {
	for i, n := range not {
		if n && x+i < end {
			p.Cell(x+i, y, p.Glyphs.NotWatched, p.Theme.Dim)
		}
	}
}

// Level is the column glyph of a value 0..1; only nothing looks like nothing.
func (g *Glyphs) Level(v float64) string {
	if !(v > 0) {
		return g.Steps[0]
	}
	return g.Steps[max(1, min(8, int(math.Ceil(v*8))))]
}

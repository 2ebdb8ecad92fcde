package widget

import "ccagent/ui/theme"

// Box draws a border around r with a title at its top left and a note at its
// top right. Where it meets a border that is already drawn, the lines join.
func (p *Painter) Box(r Rect, title, note string, focus bool) {
	r = r.Intersect(p.bounds())
	if r.Dx() < 2 || r.Dy() < 2 {
		return
	}
	st := p.Theme.Border
	if focus {
		st = p.Theme.BorderFocus
	}
	x1, y1, x2, y2 := r.Min.X, r.Min.Y, r.Max.X-1, r.Max.Y-1
	for y := y1; y <= y2; y++ {
		for x := x1; x <= x2; x++ {
			hor, ver := y == y1 || y == y2, x == x1 || x == x2
			if hor || ver {
				p.join(x, y, edges(hor && x > x1, hor && x < x2, ver && y > y1, ver && y < y2), st)
			} else {
				x = x2 - 1
			}
		}
	}
	ts := p.Theme.Title
	if !focus {
		ts = p.Theme.Text
	}
	end := p.caption(x1+1, y1, x2-1, title, ts)
	if free := x2 - 1 - end; note != "" && free > 6 {
		start := p.Width(note)
		if start <= free-3 {
			p.caption(x2-2-start-1, y1, x2, note, p.Theme.Dim)
		}
	}
}

// Highlight gives r's border the focus's look, wherever others were drawn over
// it; their titles stay.
func (p *Painter) Highlight(r Rect) {
	r = r.Intersect(p.bounds())
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if y > r.Min.Y && y < r.Max.Y-1 && x > r.Min.X && x < r.Max.X-1 {
				x = r.Max.X - 1
			}
			if c := p.canvas.CellAt(x, y); c != nil && p.Glyphs.edgesOf(c.Content) != 0 {
				c.Style = p.Theme.BorderFocus
			}
		}
	}
}

// A border cell by where its lines go.
const (
	left = 1 << iota
	right
	up
	down
)

func edges(l, r, u, d bool) int {
	e := 0
	for i, b := range []bool{l, r, u, d} {
		if b {
			e |= 1 << i
		}
	}
	return e
}

// join draws a border cell, adding to what is there.
func (p *Painter) join(x, y, e int, st theme.Style) {
	if c := p.canvas.CellAt(x, y); c != nil {
		e |= p.Glyphs.edgesOf(c.Content)
	}
	p.Cell(x, y, p.Glyphs.border(e), st)
}

func (g *Glyphs) border(e int) string {
	switch e {
	case left | down:
		return g.TR
	case right | down:
		return g.TL
	case left | up:
		return g.BR
	case right | up:
		return g.BL
	case left | right | down:
		return g.TeeT
	case left | right | up:
		return g.TeeB
	case left | up | down:
		return g.TeeR
	case right | up | down:
		return g.TeeL
	case left | right | up | down:
		return g.Cross
	case up | down, up, down:
		return g.V
	default:
		return g.H
	}
}

// edgesOf is where the lines of a glyph go. An ASCII corner has no
// direction, so it counts as none and is drawn again as the new box needs it.
func (g *Glyphs) edgesOf(s string) int {
	if g.ASCII {
		switch s {
		case "-":
			return left | right
		case "|":
			return up | down
		case "+":
			return left | right | up | down
		}
		return 0
	}
	for e := 1; e < 16; e++ {
		if e&(e-1) != 0 && g.border(e) == s {
			return e
		}
	}
	return 0
}

package alloc

import (
	"ccagent/internal/format"
	"ccagent/profile/closures"
	"ccagent/profile/diagnosis"
	"ccagent/ui/layout"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// The widths of the columns; the name gets the rest.
const (
	shareWidth = 7  // "100.0% "
	sureWidth  = 7  // "±12.3  "
	sizeWidth  = 7  // "  24 B "
	kindWidth  = 12 // "constructor "
	nameLeast  = 24
)

// Draw implements Screen.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	s.refresh()
	t := s.table()
	note := s.c.Narrowed()
	if note == "" && t != nil && t.Blocks > 0 {
		note = sampled(t)
		if fewBlocks(t) != "" {
			note = "only " + note
		}
	}
	p.Box(f.Body, "allocated, by closure", note, true)
	in := f.Body.Inset(1)
	s.inner = in
	if in.Empty() {
		return
	}
	switch {
	case t == nil:
		screen.DrawInstead(p, in, screen.Computing(p))
		return
	case len(s.rows) == 0:
		lines := s.c.Emptied("closure")
		if why := diagnosis.NoClosures(s.c.Profile); why != "" {
			lines = []string{why}
		} else if lines == nil {
			lines = []string{"no block was sampled in the range"}
		}
		screen.DrawInstead(p, in, lines)
		return
	}
	cols := columnsOf(in.Dx())
	if in.Dy() >= 6 {
		x := p.Text(in.Min.X+1, in.Min.Y, in.Max.X, screen.Pad(" share", shareWidth), p.Theme.Dim)
		if cols.sure {
			x = p.Text(x, in.Min.Y, in.Max.X, screen.Pad(" ±95%", sureWidth), p.Theme.Dim)
		}
		if cols.size {
			x = p.Text(x, in.Min.Y, in.Max.X, screen.Pad(" bytes", sizeWidth), p.Theme.Dim)
		}
		if cols.kind {
			x = p.Text(x, in.Min.Y, in.Max.X, screen.Pad("kind", kindWidth), p.Theme.Dim)
		}
		p.Text(x, in.Min.Y, in.Max.X, "closure", p.Theme.Dim)
		in.Min.Y++
	}
	s.inner = in
	s.list.Draw(in, func(i, y int) { s.drawRow(p, in, cols, &t.Rows[s.rows[i]], i, y) })
}

type columns struct{ sure, size, kind bool }

// columnsOf chooses the columns that fit; the name comes first.
func columnsOf(width int) (c columns) {
	left := width - 1 - shareWidth - nameLeast
	for _, col := range []struct {
		width int
		shown *bool
	}{{sureWidth, &c.sure}, {kindWidth, &c.kind}, {sizeWidth, &c.size}} {
		if *col.shown = left >= col.width; *col.shown {
			left -= col.width
		}
	}
	return c
}

func (s *Screen) drawRow(p *widget.Painter, in widget.Rect, cols columns, r *closures.Row, i, y int) {
	t := p.Theme
	x := in.Min.X
	if i == s.list.Cursor {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	x++
	st := t.Text
	if l := theme.HeatLevel(r.Share); l > 0 {
		st = t.Heat[l-1]
	}
	p.Right(x, x+6, y, format.Share(r.Share), st)
	x += shareWidth
	if cols.sure {
		// Rows that a filter left out stand between some neighbours.
		if r.Tied && i > 0 && s.rows[i-1] == s.rows[i]-1 {
			p.Cell(x, y, p.Glyphs.Tied, t.Dim)
		}
		p.Right(x, x+6, y, format.PlusMinus(r.Share, sureOf(r).PlusMinus(r.Share)), t.Dim)
		x += sureWidth
	}
	if cols.size {
		p.Right(x, x+6, y, mean(r), t.Dim)
		x += sizeWidth
	}
	if cols.kind {
		p.Text(x, y, in.Max.X, r.Kind, t.Dim)
		x += kindWidth
	}
	st = t.Strong
	if r.Kind == "" {
		st = t.Dim
	}
	if s.c.Search.RE != nil && s.c.Search.RE.MatchString(title(r)) {
		st = t.Match
	}
	where := "  " + place(r)
	x = p.Name(x, y, in.Max.X, r.Name, st)
	if x+p.Width(where) <= in.Max.X {
		p.Text(x, y, in.Max.X, where, t.Dim)
	}
	if i == s.list.Cursor {
		line := widget.Rect{Min: in.Min, Max: in.Max}
		line.Min.Y, line.Max.Y = y, y+1
		p.Tint(line, t.Selected)
	}
}

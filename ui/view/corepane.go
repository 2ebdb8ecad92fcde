package view

import (
	"cmp"
	"image"
	"slices"

	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/widget"
)

// corePane is the Core of the selected element with its costs.
type corePane struct {
	c     *Context
	list  widget.List
	shown *model.Core
	inner widget.Rect
}

// refresh goes to the hottest line of another element's Core.
func (s *corePane) refresh() {
	d := s.c.Data.Core
	if d == s.shown {
		return
	}
	other := s.shown == nil || d == nil || s.shown.Of != d.Of
	s.shown = d
	s.list.N = 0
	if d == nil {
		return
	}
	s.list.N = len(d.Lines)
	if other {
		s.list.Set(0)
		if hot := s.byHeat(); len(hot) > 0 {
			s.list.Set(hot[0])
		}
		s.list.Center()
	}
}

func (s *corePane) byHeat() []int {
	hot := slices.Clone(s.shown.Hottest)
	slices.SortStableFunc(hot, func(a, b int) int { return cmp.Compare(s.shown.Lines[b].Share, s.shown.Lines[a].Share) })
	return hot
}

func (s *corePane) do(a keymap.Action) {
	s.refresh()
	moveList(&s.list, a)
}

func (s *corePane) mouse(m Mouse) {
	mouseList(&s.list, s.inner, m)
}

func (s *corePane) find(p *Pattern, by int) bool {
	s.refresh()
	if p.RE == nil || s.list.N == 0 {
		return false
	}
	at, step := s.list.Cursor+by, cmp.Or(by, 1)
	for range s.list.N {
		i := ((at % s.list.N) + s.list.N) % s.list.N
		if p.RE.MatchString(s.shown.Lines[i].Text) {
			s.list.Set(i)
			return true
		}
		at += step
	}
	return false
}

func (s *corePane) subject() Subject {
	out := Subject{Key: model.NoKey}
	if s.shown != nil && s.list.Cursor < len(s.shown.Lines) {
		out.Row = s.shown.Lines[s.list.Cursor].Text
	}
	return out
}

func (s *corePane) draw(p *widget.Painter, r widget.Rect, focus bool) {
	s.refresh()
	title := "Core"
	if s.shown != nil && s.shown.Name != "" {
		title += " of " + s.shown.Name
	}
	p.Box(r, title, "K: source", focus)
	in := r.Inset(1)
	s.inner = in
	if in.Empty() {
		return
	}
	if s.shown == nil || len(s.shown.Lines) == 0 {
		lines := computing(p)
		if s.shown != nil {
			lines = []string{cmp.Or(s.shown.Problem, "no Core")}
		}
		drawInstead(p, in, lines)
		return
	}
	s.list.Draw(in, func(i, y int) { s.drawLine(p, in, i, y, focus) })
}

func (s *corePane) drawLine(p *widget.Painter, in widget.Rect, i, y int, focus bool) {
	l := &s.shown.Lines[i]
	t := p.Theme
	x := in.Min.X + 1
	if i == s.list.Cursor {
		p.Text(in.Min.X, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	if l.Share > 0 {
		share := l.Share * s.c.Base
		g, st := p.HeatGlyph(share)
		p.Cell(x, y, g, st)
		p.Right(x+2, x+7, y, number(share), st)
	}
	x += 8
	st := t.Text
	switch {
	case l.Head:
		st = t.Title
	case l.Of: // the selected element's own
		p.Cell(x, y, "*", t.Key)
	}
	if s.c.Search.RE != nil && s.c.Search.RE.MatchString(l.Text) {
		st = t.Match
	}
	p.Text(x+2, y, in.Max.X, l.Text, st)
	if i == s.list.Cursor {
		sel := t.SelectedIdle
		if focus {
			sel = t.Selected
		}
		p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, sel)
	}
}

package pane

import (
	"cmp"
	"image"
	"slices"

	"ccagent/profile"
	"ccagent/profile/source"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// CorePart asks for the Core of the selected element.
type CorePart struct{}

// Compute implements model.Part; it gives a *Core.
func (CorePart) Compute(in *model.Input) (any, error) { return CoreOf(in), nil }

// CoreOf is the Core of the selected element.
func CoreOf(in *model.Input) *Core {
	type key struct {
		model.Samples
		of model.Key
	}
	k := in.Query.Selected
	return model.Recall(in.Engine, key{in.Samples, k}, func() *Core { return coreOf(in.Selection, k) })
}

// Core is the optimiser's output of the bindings that the selected element's
// code is in, one after the other.
type Core struct {
	Of      model.Key
	Name    string
	Problem string // why there is none; empty if there is
	Lines   []CoreLine
	Hottest []int // lines by falling share
}

// CoreLine is a line of Core, or with Head a binding's heading.
type CoreLine struct {
	Text  string
	Head  bool
	Share float64
	Of    bool // made from the element itself
}

func coreOf(sel *profile.Selection, k model.Key) *Core {
	out := &Core{Of: k}
	elements := sel.Profile.Elements(k.Level)
	if k.ID < 0 || int(k.ID) >= len(elements) {
		out.Problem = "nothing is selected"
		return out
	}
	el := &elements[k.ID]
	v := source.CoreOf(sel, el)
	out.Name, out.Problem = el.Name, v.Problem
	for i := range v.Bindings {
		b := &v.Bindings[i]
		head := b.Name
		if b.Detail != "" {
			head += "  " + b.Detail
		}
		out.Lines = append(out.Lines, CoreLine{Text: head, Head: true, Share: b.Share})
		if b.Core.Problem != "" {
			out.Lines = append(out.Lines, CoreLine{Text: b.Core.Problem, Head: true})
		}
		for j := range b.Lines {
			l := &b.Lines[j]
			if l.Share > 0 {
				out.Hottest = append(out.Hottest, len(out.Lines))
			}
			out.Lines = append(out.Lines, CoreLine{Text: l.Text, Share: l.Share, Of: l.Of})
		}
	}
	return out
}

// corePane is the Core of the selected element with its costs.
type corePane struct {
	c     *screen.Context
	data  func() *Core // nil until it is there
	list  widget.List
	shown *Core
	inner widget.Rect
}

// refresh goes to the hottest line of another element's Core.
func (s *corePane) refresh() {
	d := s.data()
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

func (s *corePane) do(a keymap.Action) string {
	s.refresh()
	screen.MoveList(&s.list, a)
	return ""
}

func (s *corePane) mouse(m screen.Mouse) {
	screen.MouseList(&s.list, s.inner, m)
}

func (s *corePane) find(p *screen.Pattern, by int) bool {
	s.refresh()
	if p.RE == nil {
		return false
	}
	return s.list.Find(by, func(i int) bool { return p.RE.MatchString(s.shown.Lines[i].Text) }, func() {})
}

func (s *corePane) subject() screen.Subject {
	out := screen.Subject{Key: model.NoKey}
	if s.shown != nil && s.list.Cursor < len(s.shown.Lines) {
		out.Row = s.shown.Lines[s.list.Cursor].Text
	}
	return out
}

// hotter implements code.
func (s *corePane) hotter(int) bool { return false }

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
		lines := screen.Computing(p)
		if s.shown != nil {
			lines = []string{cmp.Or(s.shown.Problem, "no Core")}
		}
		screen.DrawInstead(p, in, lines)
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

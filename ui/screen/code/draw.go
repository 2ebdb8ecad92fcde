package code

import (
	"fmt"
	"image"

	"ccagent/internal/format"
	"ccagent/ui/layout"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// The widths of the columns; the instruction gets the rest.
const (
	heatWidth    = 2
	shareWidth   = 7
	addressWidth = 12
)

// skid says what the shares of single instructions are worth.
const skid = "a sample lies on the instruction that was to be executed next: what took the time is often the one before"

// Draw implements Screen.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	s.refresh()
	a := s.answer()
	title, note := "machine code", ""
	if a != nil && a.listing != nil {
		title = s.c.Few("machine code of " + a.name)
		note = "share " + format.Share(a.listing.Share*s.c.Base)
		if n := a.listing.Omitted; n > 0 {
			note = format.Plural(uint64(n), "piece") + " with less left out  " + note
		}
		if p.Width(title)+p.Width(note)+8 > f.Body.Dx() {
			note = format.Share(a.listing.Share * s.c.Base)
		}
	}
	p.Box(f.Body, title, note, true)
	in := f.Body.Inset(1)
	s.inner = widget.Rect{}
	if in.Empty() {
		return
	}
	if len(s.rows) == 0 {
		screen.DrawInstead(p, in, s.empty(p))
		return
	}
	for _, problem := range a.listing.Problems {
		for _, line := range screen.Wrap(p, problem, max(16, in.Dx()-2)) {
			if in.Dy() > 4 {
				p.Text(in.Min.X+1, in.Min.Y, in.Max.X, line, p.Theme.Warn)
				in.Min.Y++
			}
		}
	}
	if in.Dy() >= 12 {
		lines := screen.Wrap(p, skid, in.Dx()-2)
		for i, line := range lines {
			p.Text(in.Min.X+1, in.Max.Y-len(lines)+i, in.Max.X, line, p.Theme.Dim)
		}
		in.Max.Y -= len(lines)
	}
	weight := 0
	if in.Dx() >= 70 {
		weight = screen.WeightWidth
	}
	if in.Dy() >= 6 {
		x := in.Min.X + 1 + heatWidth
		p.Right(x, x+shareWidth-1, in.Min.Y, "share", p.Theme.Dim)
		x += shareWidth
		if weight > 0 {
			p.Right(x, x+weight-1, in.Min.Y, s.c.WeightHead(), p.Theme.Dim)
			x += weight
		}
		p.Right(x, x+addressWidth-2, in.Min.Y, "address", p.Theme.Dim)
		p.Text(x+addressWidth, in.Min.Y, in.Max.X, "instruction, below the source line of its block", p.Theme.Dim)
		in.Min.Y++
	}
	s.inner = in
	if s.fresh {
		s.list.Top, s.fresh = max(0, s.list.Cursor-in.Dy()/2), false
	}
	s.list.Draw(in, func(i, y int) { s.drawRow(p, in, weight, i, y) })
}

// empty says why there is nothing.
func (s *Screen) empty(p *widget.Painter) []string {
	switch a := s.answer(); {
	case a == nil:
		return screen.Computing(p)
	case a.name == "":
		return []string{"no function is selected; " + s.c.Key(screen.Hot) + " goes to the hot list, where I on a row shows its machine code"}
	default:
		return []string{a.problem}
	}
}

func (s *Screen) drawRow(p *widget.Painter, in widget.Rect, weight, i, y int) {
	t, r := p.Theme, &s.rows[i]
	x := in.Min.X
	if i == s.list.Cursor {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	x++
	code := x + heatWidth + shareWidth + weight + addressWidth
	st := t.Text
	matches := s.c.Search.RE != nil && s.c.Search.RE.MatchString(s.text(r))
	switch r.kind {
	case rowPiece:
		if st = t.Strong; matches {
			st = t.Match
		}
		p.Text(x, y, in.Max.X, s.text(r), st)
	case rowSource:
		if st = t.Dim; matches {
			st = t.Match
		}
		at := code
		if in.Max.X-at < 40 {
			at = x + heatWidth
		}
		p.Text(at, y, in.Max.X, s.text(r), st)
	default:
		l := r.line
		if l.Samples > 0 {
			share := l.Share * s.c.Base
			glyph, heat := p.HeatGlyph(share)
			p.Cell(x, y, glyph, heat)
			p.Right(x+heatWidth, x+heatWidth+shareWidth-1, y, format.Share(share), heat)
			if weight > 0 {
				p.Right(x+heatWidth+shareWidth, code-addressWidth-1, y, s.c.Weight(l.Share), t.Text)
			}
		}
		p.Right(code-addressWidth, code-2, y, fmt.Sprintf("%x", l.Addr), t.Dim)
		if matches {
			st = t.Match
		}
		p.Text(code, y, in.Max.X, instruction(l), st)
	}
	if i == s.list.Cursor {
		p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, t.Selected)
	}
}

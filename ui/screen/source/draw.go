package source

import (
	"fmt"
	"strings"

	"ccagent/internal/format"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// Draw implements Screen.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	s.boxes = divide(f.Body, f.Small || s.zoomed)
	s.code.Draw(p, s.boxes.Source, true)
	if s.boxes.Causes.Empty() {
		return
	}
	var l *Line
	if a := s.answer(); a != nil {
		l = a.line
	}
	if l != nil && (l.File != s.c.File || l.Number != s.c.Line) {
		l = nil
	}
	title := "causes of the line"
	if l != nil && l.Samples > 0 {
		title = fmt.Sprintf("causes of line %d (%s)", l.Number, strings.TrimSpace(format.Share(l.Share*s.c.Base)+" "+format.PlusMinus(l.Share, l.PlusMinus*s.c.Base)))
	}
	p.Box(s.boxes.Causes, title, "", false)
	if !s.boxes.Lines.Empty() {
		p.Box(s.boxes.Lines, "same samples", "", false)
	}
	p.Box(s.boxes.Blocks, "code blocks", "", false)
	p.Box(s.boxes.Also, "also attributed to", "", false)
	if l == nil {
		return
	}
	s.drawCauses(p, s.boxes.Causes.Inset(1), l)
	if !s.boxes.Lines.Empty() {
		s.list(p, s.boxes.Lines.Inset(1), l.Lines, "no other line")
	}
	s.drawBlocks(p, s.boxes.Blocks.Inset(1), l.Blocks)
	s.list(p, s.boxes.Also.Inset(1), l.Also, "nothing else")
}

func (s *Screen) drawCauses(p *widget.Painter, in widget.Rect, l *Line) {
	if len(l.Causes) == 0 {
		p.Text(in.Min.X+1, in.Min.Y, in.Max.X, "no source note begins here", p.Theme.Dim)
		return
	}
	for i, c := range l.Causes {
		y := in.Min.Y + i
		if y >= in.Max.Y {
			return
		}
		st := p.Theme.Cause[i%theme.Causes]
		x := p.Text(in.Min.X+1, y, in.Max.X, c.Letter+" ", st)
		x = s.share(p, x, y, in, c.Share, c.PlusMinus, st)
		x = p.Name(x, y, in.Max.X, c.Name, p.Theme.Text)
		where := fmt.Sprintf(" %d:%d-%d:%d", c.Span.Line, c.Span.Col, c.Span.EndLine, c.Span.EndCol)
		if x+len(where) <= in.Max.X {
			p.Text(x, y, in.Max.X, where, p.Theme.Dim)
		}
	}
}

// drawBlocks lists the code blocks that were compiled from a line; each sample is in one.
func (s *Screen) drawBlocks(p *widget.Painter, in widget.Rect, bs []Block) {
	if len(bs) == 0 {
		p.Text(in.Min.X+1, in.Min.Y, in.Max.X, "none in this line's code", p.Theme.Dim)
	}
	for i := range bs {
		b, y := &bs[i], in.Min.Y+i
		if y >= in.Max.Y {
			return
		}
		if left := len(bs) - i; y == in.Max.Y-1 && left > 1 {
			p.Text(in.Min.X+1, y, in.Max.X, fmt.Sprintf("and %d more", left), p.Theme.Dim)
			return
		}
		x := s.share(p, in.Min.X+1, y, in, b.Share, b.PlusMinus, p.Theme.Text)
		name := b.Name
		if s.c.Raw && b.Symbol != "" {
			name = b.Symbol
		}
		var notes []string
		if b.Hi > b.Lo {
			// First, since many blocks have one name.
			x = p.Text(x, y, in.Max.X, fmt.Sprintf("%#x ", b.Lo), p.Theme.Dim)
			notes = append(notes, fmt.Sprintf(" +%#x", b.Hi-b.Lo))
			if !b.Own {
				notes = append(notes, " its parent's notes")
			}
		}
		x = p.Name(x, y, in.Max.X, screen.Tail(p, name, in.Max.X-x), p.Theme.Text)
		if b.Detail != "" {
			notes = append(notes, " "+b.Detail)
		}
		for _, n := range notes {
			if x+p.Width(n) < in.Max.X {
				x = p.Text(x, y, in.Max.X, n, p.Theme.Dim)
			}
		}
	}
}

func (s *Screen) list(p *widget.Painter, in widget.Rect, cs []model.Cause, none string) {
	if len(cs) == 0 {
		p.Text(in.Min.X+1, in.Min.Y, in.Max.X, none, p.Theme.Dim)
	}
	for i, c := range cs {
		y := in.Min.Y + i
		if y >= in.Max.Y {
			return
		}
		if left := len(cs) - i; y == in.Max.Y-1 && left > 1 {
			p.Text(in.Min.X+1, y, in.Max.X, fmt.Sprintf("and %d more", left), p.Theme.Dim)
			return
		}
		x := s.share(p, in.Min.X+1, y, in, c.Share, c.PlusMinus, p.Theme.Text)
		p.Name(x, y, in.Max.X, screen.Tail(p, c.Name, in.Max.X-x), p.Theme.Text)
	}
}

// The widths of a part's share, "100.0% ", and of its interval, "±12.3 ", which is left out where
// names have little room.
const (
	shareWidth = 7
	sureWidth  = 6
	sureLeast  = 32 // columns of the pane
)

// share draws the share of a part of a line's samples with its interval, and returns where the text
// after them begins.
func (s *Screen) share(p *widget.Painter, x, y int, in widget.Rect, share, plusMinus float64, st theme.Style) int {
	p.Right(x, x+shareWidth-1, y, format.Share(share*s.c.Base), st)
	x += shareWidth
	if in.Dx() < sureLeast {
		return x
	}
	p.Right(x, x+sureWidth-1, y, format.PlusMinus(share, plusMinus*s.c.Base), p.Theme.Dim)
	return x + sureWidth
}

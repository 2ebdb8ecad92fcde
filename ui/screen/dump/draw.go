package dump

import (
	"fmt"
	"image"

	"ccagent/internal/format"
	"ccagent/profile/threads"
	"ccagent/ui/layout"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// The widths of the columns; what a thread is at gets the rest.
const (
	nameWidth  = 26
	stateWidth = 14
	sideWidth  = 100 // from which on the stack stands beside the list
)

// panes divides the body into the list and the stack.
func (s *Screen) panes(body widget.Rect, small bool) (list, stack widget.Rect) {
	if s.zoomed || small {
		if s.inStack {
			return widget.Rect{}, body
		}
		return body, widget.Rect{}
	}
	list, stack = body, body
	if body.Dx() >= sideWidth {
		at := body.Min.X + body.Dx()*11/20
		list.Max.X, stack.Min.X = at+1, at // they share a border
		return list, stack
	}
	at := body.Min.Y + body.Dy()*11/20
	list.Max.Y, stack.Min.Y = at+1, at
	return list, stack
}

// Draw implements Screen.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	s.refresh()
	s.table, s.frames = widget.Rect{}, widget.Rect{}
	g := s.dump()
	list, stack := s.panes(f.Body, f.Small)
	if g == nil || len(s.rows) == 0 {
		p.Box(f.Body, "threads", "", true)
		lines := s.c.Emptied("thread")
		switch {
		case s.answer() == nil:
			lines = screen.Computing(p)
		case g == nil:
			lines = []string{noDump}
		case lines == nil:
			lines = []string{"the dump has no threads"}
		}
		screen.DrawInstead(p, f.Body.Inset(1), lines)
		return
	}
	if !list.Empty() {
		s.drawList(p, list, g)
	}
	if !stack.Empty() {
		s.drawStack(p, stack, g)
	}
	switch {
	case list.Empty() || stack.Empty():
	case s.inStack:
		p.Highlight(stack)
	default:
		p.Highlight(list)
	}
}

func (s *Screen) drawList(p *widget.Painter, r widget.Rect, g *threads.Dump) {
	note := took(g)
	title := summary(g)
	if less := s.c.Narrowed(); less != "" {
		title += "  " + less
	}
	if p.Width(title)+p.Width(note)+8 > r.Dx() {
		note = ""
	}
	p.Box(r, title, note, !s.inStack)
	in := r.Inset(1)
	if in.Empty() {
		return
	}
	if in.Dy() >= 6 {
		x := in.Min.X + 2
		p.Text(x, in.Min.Y, in.Max.X, screen.Pad("thread", s.nameWidth(in)), p.Theme.Dim)
		p.Text(x+s.nameWidth(in), in.Min.Y, in.Max.X, screen.Pad("state", stateWidth)+"where", p.Theme.Dim)
		in.Min.Y++
	}
	s.table = in
	s.list.Draw(in, func(i, y int) { s.drawRow(p, g, i, y) })
}

func (s *Screen) nameWidth(in widget.Rect) int { return max(10, min(nameWidth, in.Dx()*3/10)) }

func (s *Screen) drawRow(p *widget.Painter, g *threads.Dump, i, y int) {
	t, in, r := p.Theme, s.table, s.rows[i]
	x := in.Min.X
	if i == s.list.Cursor {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	x += 2
	matches := func(i int) bool {
		re := s.c.Search.RE
		return re != nil && re.MatchString(s.answer().texts[i])
	}
	switch r.kind {
	case rowDeadlock:
		p.Text(x, y, in.Max.X, deadlockTitle(&g.Deadlocks[r.at]), t.Error)
	default:
		at, st := r.at, t.Text
		label := ""
		if r.kind == rowGroup {
			at = g.Groups[r.at].Threads[0]
			mark := p.Glyphs.Closed
			if s.open[r.at] {
				mark = p.Glyphs.Open
			}
			label, st = fmt.Sprintf("%s %d threads: %s", mark, len(g.Groups[r.at].Threads), some(g, g.Groups[r.at].Threads)), t.Strong
		} else if label = name(&g.Threads[at]); r.member {
			label = "  " + label
		}
		if matches(at) {
			st = t.Match
		}
		width := s.nameWidth(in)
		if end := min(in.Max.X, x+width-1); r.kind == rowGroup {
			p.Text(x, y, end, label, st)
		} else {
			p.Name(x, y, end, label, st)
		}
		th := &g.Threads[at]
		p.Text(x+width, y, min(in.Max.X, x+width+stateWidth-1), th.State.String(), t.Dim)
		drawFrame(p, x+width+stateWidth, in.Max.X, y, &s.answer().files[at], t.Text)
	}
	if i == s.list.Cursor {
		p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, t.Selected)
	}
}

// deadlockTitle is the heading of the threads that wait for each other.
func deadlockTitle(d *threads.Deadlock) string {
	what := "DEADLOCK"
	if !d.Certain {
		what = "DEADLOCK, as far as stacks show,"
	}
	return what + " of " + format.Plural(uint64(len(d.Threads)), "thread")
}

// drawFrame draws a function, and at the right where in its source, if there is room for both.
func drawFrame(p *widget.Painter, x, end, y int, f *threads.Frame, st theme.Style) {
	where := place(f)
	if room := end - x - p.Width(where) - 3; where != "" && room >= 12 {
		p.Name(x, y, x+room, f.Name, st)
		p.Right(x, end-1, y, where, p.Theme.Dim)
		return
	}
	p.Name(x, y, end, f.Name, st)
}

func (s *Screen) drawStack(p *widget.Painter, r widget.Rect, g *threads.Dump) {
	title, note := "stack", ""
	if n := len(s.shown); n > 0 {
		note = format.Plural(uint64(n), "frame")
	}
	if s.cursor.kind == rowGroup {
		title = fmt.Sprintf("stack of %d threads", len(g.Groups[s.cursor.at].Threads))
	}
	p.Box(r, title, note, s.inStack)
	in := r.Inset(1)
	if in.Empty() || s.of < 0 {
		return
	}
	y := in.Min.Y
	for _, line := range about(s.answer(), s.of) {
		for _, piece := range screen.Wrap(p, line, max(16, in.Dx()-2)) {
			if y < in.Max.Y-2 { // the stack keeps some lines
				p.Text(in.Min.X+1, y, in.Max.X, piece, p.Theme.Dim)
				y++
			}
		}
	}
	s.frames = widget.Rect{Min: image.Pt(in.Min.X, min(y, in.Max.Y)), Max: in.Max}
	s.stack.Draw(s.frames, func(i, y int) {
		f := &s.shown[i]
		st := p.Theme.Text
		if f.File == "" {
			st = p.Theme.Dim
		}
		x := in.Min.X + 1
		if s.inStack && i == s.stack.Cursor {
			p.Text(in.Min.X, y, in.Max.X, p.Glyphs.Pointer, p.Theme.Strong)
		}
		drawFrame(p, x, in.Max.X, y, f, st)
		if s.inStack && i == s.stack.Cursor {
			p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, p.Theme.Selected)
		}
	})
}

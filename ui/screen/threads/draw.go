package threads

import (
	"fmt"
	"image"

	"ccagent/internal/format"
	"ccagent/profile/activity"
	"ccagent/profile/threads"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// The widths of the columns; names get some of the rest, tracks all of it.
const (
	shareWidth = 7 // "100.0% "
	sureWidth  = 6 // "±12.3 "
	useWidth   = shareWidth + sureWidth
	leastTrack = 20
)

// columns are what fits into a width.
type columns struct {
	alloc bool
	name  int // 0 for no more than a number
}

func columnsOf(width int) (c columns) {
	c.alloc = width >= 100
	left := width - 2 - useWidth
	if c.alloc {
		left -= useWidth
	}
	c.name = max(8, min(28, left/3))
	return c
}

// Draw implements Screen.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	in := f.Body.Inset(1)
	cols := columnsOf(in.Dx())
	strip := in
	strip.Min.X += 2 + useWidth + cols.name + 1
	if cols.alloc {
		strip.Min.X += useWidth
	}
	if strip.Dx() < leastTrack {
		strip.Min.X = strip.Max.X
	}
	s.time.Strip = strip
	s.time.FitWindow()
	s.refresh()
	a := s.answer()
	title := "Haskell threads  by " + s.order.String()
	if less := s.c.Narrowed(); less != "" {
		title += "  " + less
	}
	note := ""
	if w := &s.c.Window; w.To > w.From && strip.Dx() > 0 {
		note = fmt.Sprintf("1 col = %s  cursor %s", format.Short(float64(w.To-w.From)/float64(max(1, w.Cols))), pane.Seconds(w.At(w.Cursor), w))
	}
	p.Box(f.Body, s.c.Few(title), note, true)
	s.table = widget.Rect{}
	switch {
	case in.Empty():
		return
	case a == nil:
		screen.DrawInstead(p, in, screen.Computing(p))
		return
	case len(s.rows) == 0:
		lines := s.c.Emptied("thread")
		if lines == nil {
			lines = []string{noThreads}
		}
		screen.DrawInstead(p, in, lines)
		return
	}
	y := in.Min.Y
	if in.Dy() >= 4 {
		s.drawHead(p, in, cols, y)
		y++
	}
	foot := in.Max.Y
	if in.Dy() >= 8 {
		foot--
		p.Text(in.Min.X+1, foot, in.Max.X, s.legend(p, a), p.Theme.Dim)
		y = s.drawCaps(p, in, y, foot-3)
		y = s.drawNotes(p, in, y, foot-3)
	}
	s.table = widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, foot)}
	s.list.Draw(s.table, func(i, y int) { s.drawRow(p, cols, a, &a.users.Threads[s.rows[i]], i, y) })
	if strip.Dx() > 0 {
		s.time.Marks(p, in, foot)
	}
}

func (s *Screen) legend(p *widget.Painter, a *answer) string {
	high := "high: much of its event"
	if a.unit == "ns" {
		high = p.Glyphs.Steps[8] + " all of the column"
	}
	return high + "   " + p.Glyphs.Idle + " no sample   " + p.Glyphs.NotWatched + " not watched   enter: that thread only"
}

func (s *Screen) drawHead(p *widget.Painter, in widget.Rect, cols columns, y int) {
	x := in.Min.X + 2
	head := func(what string) {
		p.Right(x, x+shareWidth-1, y, what, p.Theme.Dim)
		p.Right(x+shareWidth, x+useWidth-1, y, "±95%", p.Theme.Dim)
		x += useWidth
	}
	head("CPU")
	if cols.alloc {
		head("alloc")
	}
	p.Text(x, y, x+cols.name, "thread", p.Theme.Dim)
	if s.time.Strip.Dx() > 0 {
		s.time.Axis(p, y)
	}
}

// drawCaps draws the capabilities' tracks down to a line, and returns the next free one.
func (s *Screen) drawCaps(p *widget.Painter, in widget.Rect, y, limit int) int {
	d := s.c.Data.Lanes
	if d == nil || s.time.Strip.Dx() == 0 {
		return y
	}
	for i := range d.Caps {
		if y >= limit {
			break
		}
		c := &d.Caps[i]
		p.Right(in.Min.X, s.time.Strip.Min.X-1, y, c.Name, p.Theme.Dim)
		for col := range min(len(c.Run), s.time.Strip.Dx()) {
			s.cell(p, col, y, c.Run[col], c.GC[col] >= 0.5)
		}
		y++
	}
	return y
}

// drawNotes writes what became of sparks, and what was evaluated twice, down to a line, and returns the next free one.
func (s *Screen) drawNotes(p *widget.Painter, in widget.Rect, y, limit int) int {
	note := func(name, line string) {
		if line == "" || y >= limit {
			return
		}
		p.Text(in.Min.X+1, y, in.Max.X, name+"  "+line, p.Theme.Dim)
		y++
	}
	pr := s.c.Profile
	sparks, _ := activity.Sparks(&pr.RTSLog.Sparks)
	note("sparks", sparks)
	if share, ok := activity.DuplicatedOf(pr); ok {
		line, _ := activity.Duplicated(share)
		note("duplicated", line)
	}
	return y
}

// cell draws what ran in a column, as a part of the most.
func (s *Screen) cell(p *widget.Painter, col, y int, part float64, gc bool) {
	x, g := s.time.Strip.Min.X+col, p.Glyphs
	a := s.answer()
	switch {
	case gc:
		p.Cell(x, y, g.GC, p.Theme.GC)
	case part > 0:
		p.Cell(x, y, g.Level(min(part, 1)), p.Theme.Run)
	case a.tracks != nil && col < len(a.tracks.Lost) && a.tracks.Unknown(col):
		p.Cell(x, y, g.NotWatched, p.Theme.Warn)
	default:
		p.Cell(x, y, g.Idle, p.Theme.Idle)
	}
}

func (s *Screen) drawRow(p *widget.Painter, cols columns, a *answer, u *threads.User, i, y int) {
	th, in := p.Theme, s.table
	x := in.Min.X
	if i == s.list.Cursor {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, th.Strong)
	}
	if s.chosen(u) {
		p.Cell(x+1, y, p.Glyphs.Shares, th.Key)
	}
	x += 2
	use := func(v *threads.Use) {
		if v.Samples == 0 {
			p.Right(x, x+shareWidth-1, y, "-", th.Dim)
			x += useWidth
			return
		}
		st := th.Text
		if l := theme.HeatLevel(v.Share); l > 0 {
			st = th.Heat[l-1]
		}
		p.Right(x, x+shareWidth-1, y, format.Share(v.Share), st)
		p.Right(x+shareWidth, x+useWidth-1, y, format.PlusMinus(v.Share, v.PlusMinus(v.Share)), th.Dim)
		x += useWidth
	}
	use(&u.CPU)
	if cols.alloc {
		use(&u.Alloc)
	}
	name, st := nameOf(u), th.Text
	if u.TSO == 0 {
		st = th.Dim
	}
	if s.c.Search.RE != nil && s.c.Search.RE.MatchString(name) {
		st = th.Match
	}
	limit := in.Max.X
	if s.time.Strip.Dx() > 0 {
		limit = s.time.Strip.Min.X - 1
	}
	p.Name(x, y, limit, name, st)
	s.drawTrack(p, a, u, y)
	if i == s.list.Cursor {
		p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, th.Selected)
	}
}

// drawTrack draws when a thread ran: of an event of time against the column's time, else against
// the most of any.
func (s *Screen) drawTrack(p *widget.Painter, a *answer, u *threads.User, y int) {
	if a.tracks == nil || s.c.Data.Query.Window != (model.Window{From: s.c.Window.From, To: s.c.Window.To, Cols: s.c.Window.Cols}) {
		return
	}
	t := a.tracks.Of[key(u)]
	whole := float64(a.peak)
	if a.unit == "ns" {
		whole = float64(a.tracks.Step)
	}
	for col := range min(len(a.tracks.Samples), s.time.Strip.Dx()) {
		part := 0.0
		if t != nil && whole > 0 {
			part = float64(t.Weight[col]) / whole
		}
		s.cell(p, col, y, part, false)
	}
}

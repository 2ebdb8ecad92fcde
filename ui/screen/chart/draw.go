package chart

import (
	"fmt"
	"image"

	"ccagent/internal/format"
	"ccagent/profile/stacks"
	"ccagent/ui/layout"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// Draw implements Screen.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	in := f.Body.Inset(1)
	s.time.Strip, s.blocks = in, widget.Rect{}
	s.time.FitWindow()
	s.refresh()
	w := &s.c.Window
	note := ""
	if w.To > w.From {
		note = fmt.Sprintf("1 col = %s  cursor %s", format.Short(float64(w.To-w.From)/float64(max(1, w.Cols))), pane.Seconds(w.At(w.Cursor), w))
	}
	p.Box(f.Body, s.c.Few("flame chart: in each column the stack with the most samples"), note, true)
	if in.Empty() {
		return
	}
	if s.c.Profile.Duration == 0 {
		screen.DrawInstead(p, in, []string{"the log has no time in it"})
		return
	}
	s.time.Axis(p, in.Min.Y)
	body := in
	body.Min.Y++
	if in.Dy() >= 6 {
		body.Max.Y--
	}
	c := s.chart()
	if c == nil {
		screen.DrawInstead(p, body, screen.Computing(p))
		return
	}
	s.blocks = body
	s.drawBlocks(p, body, c)
	s.time.Marks(p, in, body.Max.Y)
	if body.Max.Y < in.Max.Y {
		s.drawDetails(p, widget.Rect{Min: image.Pt(in.Min.X, body.Max.Y), Max: in.Max}, c)
	}
}

func (s *Screen) drawBlocks(p *widget.Painter, r widget.Rect, c *stacks.Chart) {
	th := p.Theme
	at := s.block()
	rows := r.Dy()
	row := s.row
	if at != nil {
		row = at.Depth
	}
	s.first = max(0, min(s.first, row))
	if row >= s.first+rows {
		s.first = row - rows + 1
	}
	for i := range c.Columns[:min(len(c.Columns), r.Dx())] {
		x := &c.Columns[i]
		switch {
		case x.Unknown():
			for y := r.Min.Y; y < r.Max.Y; y++ {
				p.Cell(r.Min.X+i, y, p.Glyphs.NotWatched, th.Warn)
			}
		case x.Samples == 0:
			p.Cell(r.Min.X+i, r.Min.Y, p.Glyphs.Idle, th.Dim)
		}
	}
	for i := range s.runs {
		b := &s.runs[i]
		if b.Depth < s.first || b.Depth >= s.first+rows {
			continue
		}
		s.drawBlock(p, r, c, b, at != nil && *at == *b)
	}
}

// leastLabel is the room that a name which does not fit needs: with less it says nothing.
const leastLabel = 8

func (s *Screen) drawBlock(p *widget.Painter, in widget.Rect, c *stacks.Chart, b *stacks.ChartRun, selected bool) {
	th, n := p.Theme, &c.Tree.Nodes[b.Node]
	y := in.Min.Y + b.Depth - s.first
	r := widget.Rect{Min: image.Pt(in.Min.X+b.From, y), Max: image.Pt(min(in.Max.X, in.Min.X+b.To), y+1)}
	if r.Empty() {
		return
	}
	st := th.FlameIdle
	if c.Tree.Total > 0 {
		if l := theme.HeatLevel(float64(n.Self) / float64(c.Tree.Total)); l > 0 {
			st = th.Flame[l-1]
		}
	}
	if re := s.c.Search.RE; re != nil {
		st = th.FlameIdle // heat would hide what was searched for
		if re.MatchString(n.Name) {
			st = th.Match
		}
	}
	mark := p.Glyphs.V
	if selected {
		st, mark = th.Selected, p.Glyphs.Pointer
	}
	p.Fill(r, st)
	x := r.Min.X
	if r.Dx() > 1 || selected || th.Plain {
		p.Cell(x, y, mark, st)
	}
	room := r.Dx() - 1
	x++
	if p.Width(n.Name) <= room || room >= leastLabel {
		x = p.Name(x, y, r.Max.X, n.Name, st)
	}
	if th.Plain {
		for ; x < r.Max.X; x++ {
			p.Cell(x, y, p.Glyphs.Light, th.Dim)
		}
	}
	if b.Depth-s.first == in.Dy()-1 && b.Depth+1 < s.deep && r.Dx() >= 3 && goesOn(c, b) {
		p.Mark(r.Max.X-1, y, p.Glyphs.More)
	}
}

// goesOn reports whether a run's stacks are deeper.
func goesOn(c *stacks.Chart, b *stacks.ChartRun) bool {
	for i := b.From; i < b.To; i++ {
		if len(c.Columns[i].Path) > b.Depth+1 {
			return true
		}
	}
	return false
}

// unwatched says why it is not known what ran in a column.
func unwatched(x *stacks.ChartColumn) string {
	if x.Lost > 0 {
		return fmt.Sprintf("not watched: %s lost here, and none taken", format.Plural(x.Lost, "sample"))
	}
	return "not watched: " + x.Why
}

// drawDetails says what is known of the block under the cursor.
func (s *Screen) drawDetails(p *widget.Painter, r widget.Rect, c *stacks.Chart) {
	th, w := p.Theme, &s.c.Window
	col := w.Cursor
	if col >= len(c.Columns) {
		return
	}
	x, b := &c.Columns[col], s.block()
	switch {
	case x.Unknown():
		p.Text(r.Min.X+1, r.Min.Y, r.Max.X, unwatched(x), th.Warn)
		return
	case b == nil:
		p.Text(r.Min.X+1, r.Min.Y, r.Max.X, "nothing ran: no sample of the event here     "+p.Glyphs.Idle+" nothing ran  "+p.Glyphs.NotWatched+" not watched", th.Dim)
		return
	}
	n := &c.Tree.Nodes[b.Node]
	text := fmt.Sprintf("%s-%s   in %s of the column's %s", pane.Seconds(w.At(b.From), w), pane.Seconds(min(w.At(b.To), w.To), w),
		format.Share(x.Of[b.Depth]), format.Plural(x.Samples, "sample"))
	if x.Lost > 0 {
		text += fmt.Sprintf(", %d lost", x.Lost)
	}
	at := p.Text(r.Min.X+1, r.Min.Y, r.Max.X, text+"   ", th.Dim)
	at = p.Name(at, r.Min.Y, r.Max.X, n.Name, th.Strong)
	if f := n.Frame; f != nil && f.File != "" && f.Line > 0 {
		if where := fmt.Sprintf("  %s:%d", f.File, f.Line); at+p.Width(where) <= r.Max.X {
			p.Text(at, r.Min.Y, r.Max.X, where, th.Dim)
		}
	}
}

package pane

import (
	"fmt"
	"image"
	"math"
	"slices"

	"ccagent/internal/format"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// Time is the pane that shows activity over time and chooses the range.
type Time struct {
	c     *screen.Context
	Strip widget.Rect // where the columns are, as last drawn
	brush int         // column where a brush began, or −1
}

// NewTime makes a pane on a context.
func NewTime(c *screen.Context) *Time { return &Time{c: c, brush: -1} }

// minWindow bounds zooming in, in ns.
const minWindow = 1000

const (
	LabelWidth = 7  // columns for the rows' names
	timeNotes  = 26 // columns for the notes at the right
)

// rows is the number of rows the pane would like.
func (tp *Time) Rows() int {
	n := 3
	if d := tp.c.Data.Lanes; d != nil {
		n += len(d.Caps) + schedulerRows(d)
		if len(d.Caps) == 0 && d.Scheduler != nil && len(d.RTS) > 0 {
			n -= 2 // the rows of samples
		}
	}
	return n
}

// layout gives the strip of columns in the pane's inner rectangle.
func (tp *Time) layout(in widget.Rect) widget.Rect {
	s := in
	s.Min.X += LabelWidth
	if s.Dx() >= 60+timeNotes {
		s.Max.X -= timeNotes
	}
	return s
}

func (tp *Time) Why(a keymap.Action) string {
	w := &tp.c.Window
	switch a {
	case keymap.NextBookmark:
		if len(tp.c.Bookmarks) == 0 {
			return "no bookmark yet; b sets one at the timeline's cursor"
		}
	case keymap.Left, keymap.Right, keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.Bookmark:
		if tp.c.Profile.Duration == 0 {
			return "the log has no time in it"
		}
	case keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight:
		if w.From == 0 && w.To >= tp.c.Profile.Duration {
			return "all of the time is on screen; + zooms in"
		}
	}
	return ""
}

func (tp *Time) Do(a keymap.Action) string {
	w := &tp.c.Window
	switch a {
	case keymap.Left, keymap.Up:
		tp.moveTo(w.Cursor - 1)
	case keymap.Right, keymap.Down:
		tp.moveTo(w.Cursor + 1)
	case keymap.HalfUp, keymap.PageUp:
		tp.moveTo(w.Cursor - 10)
	case keymap.HalfDown, keymap.PageDown, keymap.Mark:
		tp.moveTo(w.Cursor + 10)
	case keymap.Top:
		tp.moveTo(0)
	case keymap.Bottom:
		tp.moveTo(w.Cols - 1)
	case keymap.RangeFrom:
		return tp.edge(w.At(w.Cursor), true)
	case keymap.RangeTo:
		return tp.edge(w.At(w.Cursor+1), false)
	case keymap.Brush:
		if tp.brush < 0 {
			tp.brush = w.Cursor
			return "brushing: h l move, v keeps the range, esc leaves it"
		}
		tp.keep(tp.brush, w.Cursor)
		tp.brush = -1
	case keymap.ZoomIn:
		tp.zoom(0.5)
	case keymap.ZoomOut:
		tp.zoom(2)
	case keymap.ZoomFit:
		tp.setWindow(0, float64(tp.c.Profile.Duration))
	case keymap.PanLeft:
		tp.pan(-1)
	case keymap.PanRight:
		tp.pan(1)
	case keymap.Bookmark:
		return tp.bookmark()
	case keymap.NextBookmark:
		return tp.nextBookmark()
	}
	return ""
}

// bookmark sets a bookmark at the cursor, or removes those of its column.
func (tp *Time) bookmark() string {
	c, w := tp.c, &tp.c.Window
	from, to := w.At(w.Cursor), w.At(w.Cursor+1)
	kept := slices.DeleteFunc(slices.Clone(c.Bookmarks), func(t uint64) bool { return t >= from && t < to })
	if len(kept) < len(c.Bookmarks) {
		c.Bookmarks = kept
		return "bookmark taken off"
	}
	c.Bookmarks = append(kept, from)
	slices.Sort(c.Bookmarks)
	return fmt.Sprintf("bookmark at %s; B goes from one to the next", Seconds(from, w))
}

// nextBookmark moves the cursor to the bookmark after it, or to the first.
func (tp *Time) nextBookmark() string {
	c, w := tp.c, &tp.c.Window
	to := c.Bookmarks[0]
	for _, t := range c.Bookmarks {
		if w.Column(t) > w.Cursor {
			to = t
			break
		}
	}
	if to < w.From || to >= w.To { // out of sight: into the middle
		size, all := float64(w.To-w.From), float64(c.Profile.Duration)
		from := max(0, min(float64(to)-size/2, all-size))
		tp.setWindow(from, from+size)
	}
	tp.moveTo(w.Column(to))
	return "bookmark at " + Seconds(to, w)
}

func (tp *Time) moveTo(col int) {
	w := &tp.c.Window
	w.Cursor = max(0, min(col, w.Cols-1))
}

// edge sets one edge of the range; the other stays if it is on its side.
func (tp *Time) edge(t uint64, from bool) string {
	r, ok := tp.c.Applied.Range()
	if !ok {
		r = model.Transform{Op: model.OpRange, From: 0, To: tp.c.Profile.Duration}
	}
	if from {
		r.From = t
		if r.To <= t {
			r.To = tp.c.Profile.Duration
		}
	} else {
		r.To = t
		if r.From >= t {
			r.From = 0
		}
	}
	tp.c.Applied.Push(r)
	return ""
}

// keep makes the columns a to b the range.
func (tp *Time) keep(a, b int) {
	if a > b {
		a, b = b, a
	}
	w := &tp.c.Window
	tp.c.Applied.Push(model.Transform{Op: model.OpRange, From: w.At(a), To: w.At(b + 1)})
}

func (tp *Time) zoom(by float64) {
	w := &tp.c.Window
	middle := w.At(w.Cursor)
	size := float64(w.To-w.From) * by
	if size < minWindow {
		return
	}
	from := float64(middle) - size*float64(w.Cursor)/float64(max(1, w.Cols))
	tp.setWindow(max(0, from), max(0, from)+size)
	w.Cursor = max(0, min(w.Column(middle), w.Cols-1))
}

func (tp *Time) pan(by int) {
	w := &tp.c.Window
	size, all := float64(w.To-w.From), float64(tp.c.Profile.Duration)
	from := max(0, min(float64(w.From)+float64(by)*size/4, all-size))
	tp.setWindow(from, from+size)
}

func (tp *Time) setWindow(from, to float64) {
	w := &tp.c.Window
	w.From, w.To = uint64(from), min(uint64(to), tp.c.Profile.Duration)
	tp.brush = -1
}

func (tp *Time) Back() bool {
	if tp.brush >= 0 {
		tp.brush = -1
		return true
	}
	return false
}

func (tp *Time) Mouse(m screen.Mouse) {
	w := &tp.c.Window
	col := m.X - tp.Strip.Min.X
	switch m.Kind {
	case screen.WheelUp, screen.WheelDown:
		tp.moveTo(col)
		if m.Kind == screen.WheelUp {
			tp.zoom(0.5)
		} else {
			tp.zoom(2)
		}
	case screen.Press:
		if m.Double {
			tp.c.Applied.DropRange()
			tp.brush = -1
			return
		}
		tp.moveTo(col)
		tp.brush = w.Cursor
	case screen.Drag:
		tp.moveTo(col)
	case screen.Release:
		tp.moveTo(col)
		if tp.brush >= 0 && tp.brush != w.Cursor {
			tp.keep(tp.brush, w.Cursor)
		}
		tp.brush = -1
	}
}

func (tp *Time) Subject() screen.Subject {
	w := &tp.c.Window
	return screen.Subject{Key: model.NoKey, Row: fmt.Sprintf("%.6fs", float64(w.At(w.Cursor))/1e9)}
}

// fitWindow gives the window as many columns as the strip has, and keeps the
// cursor at its time.
func (tp *Time) FitWindow() {
	w := &tp.c.Window
	if w.Cols == max(1, tp.Strip.Dx()) {
		return
	}
	t := w.At(w.Cursor)
	w.Cols = max(1, tp.Strip.Dx())
	if w.To > w.From {
		w.Cursor = max(0, min(w.Column(t), w.Cols-1))
	}
}

func (tp *Time) Draw(p *widget.Painter, r widget.Rect, focus bool) {
	w := &tp.c.Window
	in := r.Inset(1)
	tp.Strip = tp.layout(in)
	tp.FitWindow()
	note := ""
	if w.To > w.From {
		note = fmt.Sprintf("1 col = %s  cursor %s", format.Short(float64(w.To-w.From)/float64(w.Cols)), Seconds(w.At(w.Cursor), w))
	}
	p.Box(r, "timeline", note, focus)
	d := tp.c.Data.Lanes
	if in.Empty() || d == nil || len(d.Total) == 0 {
		if !in.Empty() {
			p.Text(in.Min.X+1, in.Min.Y, in.Max.X, "no time to show", p.Theme.Dim)
		}
		return
	}
	y := in.Min.Y
	notes := tp.Strip.Max.X + 1
	note1, note2 := tp.notes(d)
	row := func(label string, draw func(y int), note string) {
		if y >= in.Max.Y {
			return
		}
		p.Text(in.Min.X, y, in.Min.X+LabelWidth, label, p.Theme.Dim)
		draw(y)
		if notes < in.Max.X {
			p.Text(notes, y, in.Max.X, note, p.Theme.Dim)
		}
		y++
	}
	row("", func(y int) { tp.Axis(p, y) }, note1)
	if len(d.Caps) == 0 && len(d.RTS) > 0 { // no samples: there is only what the run-time system reported
		tp.scheduler(p, d, &y, in.Max.Y, row)
		tp.Marks(p, in, y)
		return
	}
	strip := func(values []float64, st theme.Style) func(y int) {
		return func(y int) {
			p.Strip(tp.Strip.Min.X, y, Fit(values, tp.Strip.Dx()), st)
			p.Broken(tp.Strip.Min.X, tp.Strip.Max.X, y, d.Missing)
		}
	}
	row(" all", strip(d.Total, p.Theme.Run), note2)
	row(" sel", strip(d.Selected, p.Theme.Only),
		fmt.Sprintf("selection: %s", format.Share(d.SelectedShare)))
	for i, c := range d.Caps {
		note := ""
		if i == 0 {
			note = p.Glyphs.Run + " run " + p.Glyphs.GC + " GC"
			if c.Unseen == nil || slices.Contains(c.Unseen, false) {
				note += " " + p.Glyphs.Idle + " idle"
			}
			if slices.Contains(d.Missing, true) {
				note += " " + p.Glyphs.NotWatched + " lost"
			} else if c.Unseen != nil {
				note += " blank: unseen"
			}
		}
		last := y == in.Max.Y-1
		if left := len(d.Caps) - 1 - i; last && left > 0 {
			note = fmt.Sprintf("(+%d more)", left)
		}
		row(" "+c.Name, func(y int) { tp.cap(p, y, &c) }, note)
	}
	tp.scheduler(p, d, &y, in.Max.Y, row)
	tp.Marks(p, in, y)
}

// fit cuts values to the columns there are, while data of another width is shown.
func Fit(v []float64, n int) []float64 { return v[:min(len(v), max(0, n))] }

func (tp *Time) notes(d *model.Lanes) (string, string) {
	if r, ok := tp.c.Applied.Range(); ok {
		return fmt.Sprintf("range %.2f-%.2fs", float64(r.From)/1e9, float64(r.To)/1e9), "v or drag sets, esc keeps"
	}
	return "range: all", "[ ] v or drag: set it"
}

// axis draws the times, as dense as they are legible.
func (tp *Time) Axis(p *widget.Painter, y int) {
	w := &tp.c.Window
	s := tp.Strip
	if w.To <= w.From {
		return
	}
	per := float64(w.To-w.From) / float64(w.Cols)
	step := niceStep(per * 12)
	for t := math.Ceil(float64(w.From)/step) * step; t < float64(w.To); t += step {
		x := s.Min.X + w.Column(uint64(t))
		label := tick(t, step)
		if x+1+len(label) < s.Max.X {
			p.Text(x, y, s.Max.X, p.Glyphs.Tick+label, p.Theme.Dim)
		}
	}
}

// niceStep is the smallest of 1, 2, 5 × 10ⁿ that is at least v.
func niceStep(v float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(max(v, 1))))
	for _, m := range []float64{1, 2, 5, 10} {
		if base*m >= v {
			return base * m
		}
	}
	return base * 10
}

func tick(t, step float64) string {
	switch {
	case step >= 1e9:
		return fmt.Sprintf("%.0fs", t/1e9)
	case step >= 1e8:
		return fmt.Sprintf("%.1fs", t/1e9)
	case step >= 1e7:
		return fmt.Sprintf("%.2fs", t/1e9)
	case step >= 1e6:
		return fmt.Sprintf("%.0fms", t/1e6)
	default:
		return fmt.Sprintf("%.3fms", t/1e6)
	}
}

// Seconds formats a time with as many digits as differ from one column of w to the next.
func Seconds(t uint64, w *screen.Window) string {
	digits := 2
	for per := float64(w.To-w.From) / float64(max(1, w.Cols)) / 1e9; per < 0.01 && digits < 9; per *= 10 {
		digits++
	}
	return fmt.Sprintf("%.*fs", digits, float64(t)/1e9)
}

func (tp *Time) cap(p *widget.Painter, y int, c *model.CapActivity) {
	g, t := p.Glyphs, p.Theme
	for i := range min(len(c.Run), tp.Strip.Dx()) {
		x := tp.Strip.Min.X + i
		switch gc := c.GC[i]; {
		case i < len(c.NotWatched) && c.NotWatched[i]:
			p.Cell(x, y, g.NotWatched, t.Dim)
		case gc >= 0.5:
			p.Cell(x, y, g.GC, t.GC)
		case gc >= 0.2:
			p.Cell(x, y, g.Both, t.GC)
		case c.Run[i] > 0:
			if g.ASCII {
				p.Cell(x, y, g.Run, t.Run)
			} else {
				p.Cell(x, y, g.Level(c.Run[i]), t.Run)
			}
		case i < len(c.Unseen) && c.Unseen[i]:
			p.Cell(x, y, " ", t.Idle)
		default:
			p.Cell(x, y, g.Idle, t.Idle)
		}
	}
}

// marks draws the range's edges, the brush and the cursor over the strips.
func (tp *Time) Marks(p *widget.Painter, in widget.Rect, bottom int) {
	w := &tp.c.Window
	s := tp.Strip
	column := func(c int) widget.Rect {
		return widget.Rect{Min: image.Pt(s.Min.X+c, in.Min.Y), Max: image.Pt(s.Min.X+c+1, bottom)}
	}
	shade := func(from, to int) {
		from, to = max(0, from), min(to, s.Dx()-1)
		if from <= to {
			p.Tint(widget.Rect{Min: image.Pt(s.Min.X+from, in.Min.Y+1), Max: image.Pt(s.Min.X+to+1, bottom)}, p.Theme.Range)
		}
	}
	edges := func(from, to int) {
		for y := in.Min.Y + 1; y < bottom; y++ {
			if from >= 0 && from < s.Dx() {
				p.Cell(s.Min.X+from, y, p.Glyphs.EdgeL, p.Theme.Key)
			}
			if to >= 0 && to < s.Dx() && to != from {
				p.Cell(s.Min.X+to, y, p.Glyphs.EdgeR, p.Theme.Key)
			}
		}
	}
	if r, ok := tp.c.Applied.Range(); ok && tp.brush < 0 {
		from, to := w.Column(r.From), w.Column(r.To-1)
		shade(from, to)
		edges(from, to)
	}
	if tp.brush >= 0 {
		shade(min(tp.brush, w.Cursor), max(tp.brush, w.Cursor))
		edges(min(tp.brush, w.Cursor), max(tp.brush, w.Cursor))
	}
	for _, t := range tp.c.Bookmarks {
		if col := w.Column(t); col >= 0 && col < s.Dx() {
			p.Cell(s.Min.X+col, in.Min.Y, p.Glyphs.Bookmark, p.Theme.Link)
		}
	}
	if w.Cursor < s.Dx() {
		p.Cell(s.Min.X+w.Cursor, in.Min.Y, p.Glyphs.Cursor, p.Theme.Key)
		p.Tint(column(w.Cursor), p.Theme.SelectedIdle)
	}
}

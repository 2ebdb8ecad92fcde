package pane

import (
	"fmt"
	"slices"

	"ccagent/profile/columns"
	"ccagent/profile/timeline"
	"ccagent/ui/model"
	"ccagent/ui/widget"
)

// schedulerRows is the number of the timeline's rows for what the run-time system reported.
func schedulerRows(d *model.Lanes) int {
	if d.Scheduler == nil {
		return 0
	}
	n := len(d.RTS)
	if d.Threads != nil {
		n++
	}
	if len(d.Markers) > 0 {
		n++
	}
	return n
}

// scheduler draws what the run-time system reported: capabilities, threads, markers.
func (tp *Time) scheduler(p *widget.Painter, d *model.Lanes, y *int, end int, row func(label string, draw func(y int), note string)) {
	if d.Scheduler == nil {
		return
	}
	extra := schedulerRows(d) - len(d.RTS)
	for i := range d.RTS {
		c := &d.RTS[i]
		note := ""
		if i == 0 {
			note = "by the RTS: " + p.Glyphs.Run + " run " + p.Glyphs.GC + " GC"
			if slices.Contains(c.NotWatched, true) {
				note = p.Glyphs.Run + " " + p.Glyphs.GC + " by the RTS " + p.Glyphs.NotWatched + " unknown"
			}
		}
		left := len(d.RTS) - 1 - i
		if *y == end-1-extra && left > 0 {
			note = fmt.Sprintf("(+%d more)", left)
		}
		row(" "+c.Name, func(y int) { tp.cap(p, y, c) }, note)
		if *y >= end-extra && left > 0 {
			break
		}
	}
	if d.Threads != nil {
		row(" thr", func(y int) {
			tp.threads(p, y, d.Threads)
			p.Broken(tp.Strip.Min.X, tp.Strip.Max.X, y, d.NotWatched)
		}, tp.threadNote(d.Threads))
	}
	if len(d.Markers) > 0 {
		row(" marks", func(y int) { tp.markers(p, y, d.Markers) }, fmt.Sprintf("%d by the program", len(d.Markers)))
	}
}

// threads draws how many threads want to run, against the most in a column.
func (tp *Time) threads(p *widget.Painter, y int, t *timeline.ThreadCounts) {
	n := min(len(t[0]), tp.Strip.Dx())
	busy, top := make([]float64, n), 0.0
	for i := range busy {
		busy[i] = t[timeline.ThreadRunning][i] + t[timeline.ThreadWaiting][i]
		top = max(top, busy[i])
	}
	for i, v := range busy {
		st := p.Theme.Run
		if t[timeline.ThreadWaiting][i] > t[timeline.ThreadRunning][i] {
			st = p.Theme.Warn // most of them wait for a capability
		}
		p.Cell(tp.Strip.Min.X+i, y, p.Glyphs.Level(v/max(top, 1e-9)), st)
	}
}

// threadNote describes the column under the cursor.
func (tp *Time) threadNote(t *timeline.ThreadCounts) string {
	c := tp.c.Window.Cursor
	if c >= len(t[0]) {
		return ""
	}
	return fmt.Sprintf("run %s wait %s block %s", count(t[timeline.ThreadRunning][c]), count(t[timeline.ThreadWaiting][c]),
		count(t[timeline.ThreadBlocked][c]+t[timeline.ThreadForeign][c]))
}

// count formats a mean number in few columns.
func count(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 9.95:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// markers draws the program's markers and messages where they are; what has no
// room for its text is a tick.
func (tp *Time) markers(p *widget.Painter, y int, ms []columns.Marker) {
	end := tp.Strip.Min.X
	for i := range ms {
		x := tp.Strip.Min.X + tp.c.Window.Column(ms[i].Time)
		if x < end || x >= tp.Strip.Max.X {
			continue
		}
		limit := tp.Strip.Max.X
		if i+1 < len(ms) {
			limit = max(x+1, min(limit, tp.Strip.Min.X+tp.c.Window.Column(ms[i+1].Time)))
		}
		p.Cell(x, y, p.Glyphs.Tick, p.Theme.Key)
		end = p.Text(x+1, y, limit, ms[i].Text, p.Theme.Key)
	}
}

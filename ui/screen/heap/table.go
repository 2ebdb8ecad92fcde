package heap

import (
	"image"

	"ccagent/ui/chart"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// tableView is a mode's table: a list, open and closed branches, and beside it more about the row
// under the cursor.
type tableView struct {
	c      *screen.Context
	list   widget.List
	rows   []int        // of the listing, as listed
	toggle map[int]bool // branches that were opened or closed by hand
	seen   tableSeen
	row    int // under the cursor, of the listing
	beside widget.List
	inner  widget.Rect // as last drawn
	side   widget.Rect
	moves  int // counts changes of toggle
	inSide bool
}

// tableSeen is what rows was made from.
type tableSeen struct {
	l      *listing
	filter screen.Pattern
	moves  int
}

func (v *tableView) listing() *listing { return screen.Part[listing](v.c) }

// isOpen reports whether a branch is open: those that have much are, as long as nobody has closed them.
func (v *tableView) isOpen(l *listing, i int) bool {
	if open, chosen := v.toggle[i]; chosen {
		return open
	}
	return l.mode == growthMode || l.rows[i].heat >= openShare
}

// refresh lists the rows anew if what they depend on has changed, and keeps the cursor on its row.
func (v *tableView) refresh() {
	l := v.listing()
	now := tableSeen{l, v.c.Filter, v.moves}
	if l == nil {
		v.list.N, v.rows, v.seen.moves = 0, nil, -1 // the same answer may come back: list it anew, with its branches as they are
		return
	}
	if now == v.seen {
		return
	}
	if v.seen.l != l {
		v.toggle, v.row, v.beside = map[int]bool{}, 0, widget.List{}
	}
	v.seen, v.rows = now, v.rows[:0]
	for i := 0; i < len(l.rows); i++ {
		if v.c.Filter.Match(l.rows[i].name) {
			v.rows = append(v.rows, i)
		}
		if v.c.Filter.RE == nil && l.rows[i].kids && !v.isOpen(l, i) {
			for depth := l.rows[i].depth; i+1 < len(l.rows) && l.rows[i+1].depth > depth; {
				i++
			}
		}
	}
	v.list.N = len(v.rows)
	at := 0
	for k, i := range v.rows {
		if i <= v.row {
			at = k
		}
	}
	v.list.Set(at)
	v.note()
}

// current is the row under the cursor; nil if there is none.
func (v *tableView) current() *tableRow {
	l := v.listing()
	if l == nil || v.list.Cursor >= len(v.rows) {
		return nil
	}
	return &l.rows[v.rows[v.list.Cursor]]
}

func (v *tableView) note() {
	if v.current() == nil {
		return
	}
	if i := v.rows[v.list.Cursor]; i != v.row {
		v.row, v.beside.Top, v.beside.Cursor = i, 0, 0
	}
}

// above is the row of the branch that a row is in; −1 if it is in none.
func (v *tableView) above() int {
	l := v.listing()
	for k := v.list.Cursor - 1; k >= 0; k-- {
		if l.rows[v.rows[k]].depth < l.rows[v.row].depth {
			return k
		}
	}
	return -1
}

func (v *tableView) why(a keymap.Action) string {
	r := v.current()
	switch a {
	case keymap.NextPane, keymap.PrevPane:
		if v.side.Empty() {
			return "there is no room for what stands beside the list; z shows it again"
		}
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight,
		keymap.Bookmark, keymap.NextBookmark:
		return "this is of one moment; M goes on to the bands over time"
	case keymap.Sort:
		return "rows stand by size"
	case keymap.Left, keymap.Right:
		if l := v.listing(); l == nil || !l.mode.hasBranches() {
			return "there are no branches: j and k move"
		}
	case keymap.Open:
		switch {
		case r == nil:
			return "no row is listed"
		case v.listing().mode == memoryMode:
			return "what holds memory has no source; M goes on to the other modes"
		case !r.kids && r.at.FileID == 0:
			return "where it is written is not known"
		}
	}
	return ""
}

func (v *tableView) fold(open bool) {
	v.toggle[v.row] = open
	v.moves++
	v.refresh()
}

func (v *tableView) do(a keymap.Action) string {
	v.refresh()
	r := v.current()
	switch {
	case a == keymap.NextPane || a == keymap.PrevPane:
		v.inSide = !v.inSide
	case v.inSide && a == keymap.Up:
		v.beside.Scroll(-1)
	case v.inSide && a == keymap.Down:
		v.beside.Scroll(1)
	case v.inSide && screen.MoveList(&v.beside, a):
	case screen.MoveList(&v.list, a):
		v.note()
	case r == nil:
	case a == keymap.Right && r.kids:
		v.fold(true)
	case a == keymap.Left && r.kids && v.isOpen(v.listing(), v.row):
		v.fold(false)
	case a == keymap.Left:
		if k := v.above(); k >= 0 {
			v.list.Set(k)
			v.note()
		}
	case a == keymap.Open && r.kids:
		v.fold(!v.isOpen(v.listing(), v.row))
	case a == keymap.Open:
		v.c.File, v.c.Line, v.c.Goto = r.at.FileID, int(r.at.Span.Line), screen.Source
	}
	return ""
}

func (v *tableView) mouse(s *Screen, m screen.Mouse) {
	v.refresh()
	switch {
	case screen.Inside(v.inner, m):
		screen.MouseRows(s, &v.list, v.inner, m, v.note)
	case screen.Inside(v.side, m):
		screen.MouseList(&v.beside, v.side, m)
	}
}

func (v *tableView) find(p *screen.Pattern, by int) bool {
	v.refresh()
	l := v.listing()
	if p.RE == nil || l == nil {
		return false
	}
	return v.list.Find(by, func(k int) bool { return p.RE.MatchString(l.rows[v.rows[k]].name) }, v.note)
}

func (v *tableView) subject() screen.Subject {
	out := screen.Subject{Key: model.NoKey}
	if r := v.current(); r != nil {
		for _, f := range r.figures {
			out.Row += f + "\t"
		}
		out.Row += r.name
		out.Path, out.Line = r.at.File, int(r.at.Span.Line)
	}
	return out
}

// The widths of the table's columns; names get the rest.
const (
	barWidth  = 12
	nameLeast = 30
	sideFrom  = 110 // from which on what is beside the list stands there, and not below
)

// panes divides the body into the list and what is about its row, which has no room on a small one.
func (v *tableView) panes(body widget.Rect, only bool) (list, side widget.Rect) {
	list, side = body, body
	switch {
	case only || body.Dy() < 14:
		return body, widget.Rect{}
	case body.Dx() >= sideFrom:
		at := body.Min.X + body.Dx()*13/20
		list.Max.X, side.Min.X = at+1, at
	default:
		at := body.Max.Y - max(7, body.Dy()/3)
		list.Max.Y, side.Min.Y = at+1, at
	}
	return list, side
}

func (v *tableView) draw(p *widget.Painter, f layout.Frame, modes string, zoomed bool) {
	v.refresh()
	l := v.listing()
	v.inner, v.side = widget.Rect{}, widget.Rect{}
	if l == nil {
		p.Box(f.Body, modes, "", true)
		screen.DrawInstead(p, f.Body.Inset(1), screen.Computing(p))
		return
	}
	list, side := v.panes(f.Body, zoomed || f.Small)
	v.inSide = v.inSide && !side.Empty()
	v.drawList(p, list, l, modes)
	if !side.Empty() {
		p.Box(side, l.about, "", false)
		if v.inSide {
			p.Highlight(side)
		} else {
			p.Highlight(list)
		}
		v.drawSide(p, side.Inset(1), l)
	}
}

func (v *tableView) drawList(p *widget.Painter, r widget.Rect, l *listing, modes string) {
	t := p.Theme
	title, note := modes, l.sum
	if title == "" {
		title, note = l.sum, ""
	}
	if less := v.c.Narrowed(); less != "" {
		title += "  " + less
	}
	if p.Width(title)+p.Width(note)+8 > r.Dx() {
		note = ""
	}
	p.Box(r, title, note, true)
	in := r.Inset(1)
	if in.Empty() {
		return
	}
	line := func(text string, st theme.Style) {
		for _, part := range screen.Wrap(p, text, in.Dx()-2) {
			if in.Dy() > 6 {
				p.Text(in.Min.X+1, in.Min.Y, in.Max.X, part, st)
				in.Min.Y++
			}
		}
	}
	if l.segment && in.Dy() > 6 {
		v.drawParts(p, in, l)
		in.Min.Y++
	}
	line(l.words, t.Strong)
	if l.mode == growthMode { // what is wrong with the two logs comes first
		for _, n := range l.notes {
			line(n, t.Warn)
		}
	}
	figures, left := len(l.figures), in.Dx()-3
	for _, w := range l.widths {
		left -= w
	}
	for ; figures > 1 && left < nameLeast; figures-- {
		left += l.widths[figures-1]
	}
	bar := left >= nameLeast+barWidth+1
	x := in.Min.X + 3
	for n, h := range l.figures[:figures] {
		p.Right(x, x+l.widths[n]-2, in.Min.Y, h, t.Dim)
		x += l.widths[n]
	}
	if bar {
		x += barWidth + 1
	}
	p.Text(x, in.Min.Y, in.Max.X, l.heading, t.Dim)
	in.Min.Y++
	v.inner = in
	if len(v.rows) == 0 {
		lines := v.c.Emptied("row")
		if lines == nil {
			lines = []string{"nothing"}
		}
		screen.DrawInstead(p, in, lines)
		return
	}
	v.list.Draw(in, func(k, y int) { v.drawRow(p, in, l, k, y, figures, bar) })
}

func (v *tableView) drawRow(p *widget.Painter, in widget.Rect, l *listing, k, y, figures int, bar bool) {
	t, i := p.Theme, v.rows[k]
	r := &l.rows[i]
	x := in.Min.X
	if k == v.list.Cursor {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	if l.segment {
		p.Cell(x+1, y, chart.Letter(i), bandStyle(t, i))
	}
	x += 3
	for n, figure := range r.figures[:figures] {
		st := t.Dim
		if n == 0 {
			st = t.Text
			if h := theme.HeatLevel(r.heat); h > 0 {
				st = t.Heat[h-1]
			}
		}
		p.Right(x, x+l.widths[n]-2, y, figure, st)
		x += l.widths[n]
	}
	if bar {
		p.Bar(x, y, barWidth, r.share, r.share)
		x += barWidth + 1
	}
	if v.c.Filter.RE == nil {
		x += 2 * min(r.depth, max(0, (in.Max.X-x-24)/2))
	}
	if l.mode == retainedMode || l.mode == growthMode {
		switch {
		case !r.kids:
		case v.isOpen(l, i):
			p.Text(x, y, in.Max.X, p.Glyphs.Open, t.Dim)
		default:
			p.Text(x, y, in.Max.X, p.Glyphs.Closed, t.Dim)
		}
		x += 2
	}
	st := t.Text
	if v.c.Search.RE != nil && v.c.Search.RE.MatchString(r.name) {
		st = t.Match
	}
	p.Name(x, y, in.Max.X, r.name, st)
	if k == v.list.Cursor {
		p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, t.Selected)
	}
}

// drawParts draws the whole as a bar, in which each row's part has its letter. A part of less than half a
// column has none.
func (v *tableView) drawParts(p *widget.Painter, in widget.Rect, l *listing) {
	width := in.Dx() - 2
	x, sum := in.Min.X+1, 0.0
	for i := range l.rows {
		sum += l.rows[i].heat
		st := bandStyle(p.Theme, i)
		if i == v.row {
			st = p.Theme.Selected
		}
		for end := in.Min.X + 1 + int(sum*float64(width)+0.5); x < min(end, in.Max.X-1); x++ {
			p.Cell(x, in.Min.Y, chart.Letter(i), st)
		}
	}
}

func (v *tableView) drawSide(p *widget.Painter, in widget.Rect, l *listing) {
	v.side = in
	if len(v.rows) == 0 || in.Empty() {
		return
	}
	var lines []string
	more := l.more(v.row)
	if l.mode != growthMode {
		for _, note := range l.notes {
			more = append(more[:len(more):len(more)], "", note)
		}
	}
	for _, text := range more {
		if p.Width(text) <= in.Dx()-2 {
			lines = append(lines, text)
			continue
		}
		for n, part := range screen.Wrap(p, text, in.Dx()-4) {
			if n > 0 {
				part = "  " + part
			}
			lines = append(lines, part)
		}
	}
	v.beside.N = len(lines)
	v.beside.Draw(in, func(k, y int) { p.Text(in.Min.X+1, y, in.Max.X, lines[k], p.Theme.Text) })
}

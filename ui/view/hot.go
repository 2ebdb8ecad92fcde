package view

import (
	"fmt"
	"slices"
	"strings"

	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// hotPane is the list of elements by share, a tree of files and bindings.
type hotPane struct {
	c      *Context
	list   widget.List
	closed map[model.Key]bool
	rows   []int // of c.Data.Hot.Rows, as listed
	seen   hotSeen
	inner  widget.Rect
}

// hotSeen is what rows was made from.
type hotSeen struct {
	hot     *model.Hot
	sort    Sort
	minimum float64
	filter  Pattern
	closed  int
	base    float64
}

func newHotPane(c *Context) *hotPane {
	return &hotPane{c: c, closed: make(map[model.Key]bool)}
}

// refresh makes rows anew if anything they depend on changed, and keeps the
// cursor on its element.
func (h *hotPane) refresh() {
	c := h.c
	now := hotSeen{c.Data.Hot, c.Sort, c.Minimum, c.Filter, len(h.closed), c.Base}
	if now == h.seen || c.Data.Hot == nil {
		return
	}
	h.seen = now
	rows := c.Data.Hot.Rows
	wanted := make([]bool, len(rows))
	for i := len(rows) - 1; i >= 0; i-- { // children come after their parents
		r := &rows[i]
		// What is only ever a caller is of no use in an order by leaves.
		seen := r.Share > 0 || c.Sort == ByInclusive || c.Sort == ByName
		if seen && r.Share*c.Base >= c.Minimum && c.Filter.Match(r.Full) {
			wanted[i] = true
		}
		if r.Parent >= 0 && wanted[i] {
			wanted[r.Parent] = true
		}
	}
	children := make([][]int, len(rows)+1)
	for i := range rows {
		if wanted[i] {
			children[rows[i].Parent+1] = append(children[rows[i].Parent+1], i)
		}
	}
	h.rows = h.rows[:0]
	var add func(of int)
	add = func(of int) {
		slices.SortStableFunc(children[of], func(a, b int) int { return h.order(&rows[a], &rows[b]) })
		for _, i := range children[of] {
			h.rows = append(h.rows, i)
			if !h.closed[rows[i].Key] && rows[i].Kids > 0 {
				add(i + 1)
			}
		}
	}
	add(0)
	h.list.N = len(h.rows)
	h.restore()
}

func (h *hotPane) order(a, b *model.Row) int {
	num := func(x, y float64) int {
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	}
	o := 0
	switch h.c.Sort {
	case ByOnly:
		o = num(a.Only, b.Only)
	case ByInclusive:
		o = num(a.Inclusive, b.Inclusive)
	case ByName:
	default:
		o = num(a.Share, b.Share)
	}
	if o == 0 {
		o = strings.Compare(a.Full, b.Full)
	}
	return o
}

// restore puts the cursor back on the selected element, or on the nearest row
// that is left of it.
func (h *hotPane) restore() {
	rows := h.c.Data.Hot.Rows
	for i, r := range h.rows {
		if rows[r].Key == h.c.Selected {
			h.list.Set(i)
			return
		}
	}
	if h.c.Selected == model.NoKey {
		// At first, the hottest thing that somebody wrote.
		for i, r := range h.rows {
			if rows[r].Parent >= 0 && !rows[r].Category {
				h.list.Set(i)
				break
			}
		}
	}
	h.list.Set(h.list.Cursor)
	h.selectRow()
}

// selectRow makes the row under the cursor the selection of all screens.
func (h *hotPane) selectRow() {
	r := h.row()
	if r == nil {
		h.c.Selected = model.NoKey
		return
	}
	if r.Key == h.c.Selected {
		return
	}
	h.c.Selected = r.Key
	if r.File != 0 {
		h.c.File, h.c.Line = r.File, r.Line
	} else {
		h.c.File, h.c.Line = 0, 0
	}
}

func (h *hotPane) row() *model.Row {
	if h.c.Data.Hot == nil || h.list.Cursor >= len(h.rows) {
		return nil
	}
	return &h.c.Data.Hot.Rows[h.rows[h.list.Cursor]]
}

func (h *hotPane) why(a keymap.Action) string {
	if len(h.rows) == 0 {
		switch a {
		case keymap.Open, keymap.Left, keymap.Right:
			return "the list is empty"
		}
	}
	return ""
}

func (h *hotPane) do(a keymap.Action) string {
	h.refresh()
	if moveList(&h.list, a) {
		h.selectRow()
		return ""
	}
	r := h.row()
	if r == nil {
		return ""
	}
	switch a {
	case keymap.Left:
		if r.Kids > 0 && !h.closed[r.Key] {
			h.closed[r.Key] = true
			break
		}
		if r.Parent >= 0 {
			if i := slices.Index(h.rows, r.Parent); i >= 0 {
				h.list.Set(i)
				h.selectRow()
			}
		}
	case keymap.Right:
		if r.Kids > 0 {
			if h.closed[r.Key] {
				delete(h.closed, r.Key)
			} else {
				h.list.Move(1)
				h.selectRow()
			}
		}
	}
	return ""
}

// moveList does the movements that all lists share.
func moveList(l *widget.List, a keymap.Action) bool {
	switch a {
	case keymap.Up:
		l.Move(-1)
	case keymap.Down:
		l.Move(1)
	case keymap.Top:
		l.Set(0)
	case keymap.Bottom:
		l.Set(l.N - 1)
	case keymap.HalfUp:
		l.Move(-(l.Page() + 1) / 2)
	case keymap.HalfDown:
		l.Move((l.Page() + 1) / 2)
	case keymap.PageUp:
		l.Move(-l.Page())
	case keymap.PageDown:
		l.Move(l.Page())
	default:
		return false
	}
	return true
}

func (h *hotPane) mouse(m Mouse) (open bool) {
	switch m.Kind {
	case WheelUp, WheelDown:
		h.list.Scroll(wheel(m))
		h.selectRow()
	case Press:
		if i := h.list.RowAt(h.inner, m.Y); i >= 0 {
			h.list.Set(i)
			h.selectRow()
			return m.Double
		}
	}
	return false
}

// wheel is how many rows a turn of the wheel scrolls.
func wheel(m Mouse) int {
	if m.Kind == WheelUp {
		return -3
	}
	return 3
}

func (h *hotPane) find(p *Pattern, by int) bool {
	h.refresh()
	if p.RE == nil || len(h.rows) == 0 {
		return false
	}
	at, stepBy := h.list.Cursor+by, by
	if by == 0 {
		stepBy = 1
	}
	for range h.rows {
		i := ((at % len(h.rows)) + len(h.rows)) % len(h.rows)
		if p.RE.MatchString(h.c.Data.Hot.Rows[h.rows[i]].Full) {
			h.list.Set(i)
			h.selectRow()
			return true
		}
		at += stepBy
	}
	return false
}

func (h *hotPane) subject() Subject {
	r := h.row()
	if r == nil {
		return Subject{Key: model.NoKey}
	}
	s := Subject{Name: r.Full, Key: r.Key, Path: r.Path, Line: r.Line}
	s.Row = fmt.Sprintf("%s\t%s\t%s", widget.Percent(r.Share*h.c.Base), widget.Percent(r.Only*h.c.Base), r.Full)
	return s
}

// What the columns take; the name gets the rest.
const (
	shareWidth = 7 // "100.0% "
	markWidth  = 2
)

// draw draws the pane's box and what is in it.
func (h *hotPane) draw(p *widget.Painter, r widget.Rect, focus bool) {
	h.refresh()
	note := ""
	if h.c.Filter.RE != nil {
		note = "& " + h.c.Filter.Text
	}
	if h.c.Minimum > 0 {
		note = strings.TrimSpace(note + "  min " + widget.Percent(h.c.Minimum))
	}
	p.Box(r, "hot  by "+h.c.Sort.String(), note, focus)
	in := r.Inset(1)
	if in.Empty() {
		return
	}
	rows := in
	cols := h.columns(in.Dx())
	if in.Dy() >= 8 {
		x := in.Min.X + 1
		x = p.Text(x, in.Min.Y, in.Max.X, pad(" share", shareWidth), p.Theme.Dim)
		if cols.only {
			x = p.Text(x, in.Min.Y, in.Max.X, pad(h.second(), shareWidth), p.Theme.Dim)
		}
		if cols.bar > 0 {
			p.Cell(x, in.Min.Y, p.Glyphs.Full, p.Theme.Only)
			p.Text(x+1, in.Min.Y, x+cols.bar, "only", p.Theme.Dim)
			if cols.bar >= 13 {
				p.Cell(x+6, in.Min.Y, p.Glyphs.Light, p.Theme.Shared)
				p.Text(x+7, in.Min.Y, x+cols.bar, "shared", p.Theme.Dim)
			}
			x += cols.bar + 1
		}
		if cols.overlap {
			x = p.Text(x, in.Min.Y, in.Max.X, pad("  =sel", shareWidth), p.Theme.Dim)
		} else {
			x += markWidth
		}
		p.Text(x, in.Min.Y, in.Max.X, "element", p.Theme.Dim)
		rows.Min.Y++
		rows.Max.Y -= h.explain(p, in)
	}
	h.inner = rows
	if len(h.rows) == 0 {
		h.drawEmpty(p, rows)
		return
	}
	h.list.Draw(rows, func(i, y int) { h.drawRow(p, rows, cols, i, y, focus) })
}

// second names the second column: what it says follows the order.
func (h *hotPane) second() string {
	if h.c.Sort == ByInclusive {
		return " incl."
	}
	return "  only"
}

type hotColumns struct {
	only, overlap bool
	bar           int
}

// columns decides what a width has room for; names come first.
func (h *hotPane) columns(w int) hotColumns {
	var c hotColumns
	name := 22
	if w >= 50 {
		name = 26
	}
	left := w - 1 - shareWidth - markWidth - name
	if left >= shareWidth {
		c.only = true
		left -= shareWidth
	}
	if left >= shareWidth-markWidth+6 {
		c.overlap = true
		left -= shareWidth - markWidth
	}
	if left >= 5 {
		c.bar = min(18, left-1)
	}
	return c
}

func (h *hotPane) drawRow(p *widget.Painter, in widget.Rect, cols hotColumns, i, y int, focus bool) {
	r := &h.c.Data.Hot.Rows[h.rows[i]]
	t := p.Theme
	shares := h.c.Data.Overlap[r.Key]
	selected := i == h.list.Cursor
	x := in.Min.X
	if selected {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	x++
	st := t.Text
	if l := theme.HeatLevel(r.Share * h.c.Base); l > 0 {
		st = t.Heat[l-1]
	}
	p.Right(x, x+6, y, widget.Percent(r.Share*h.c.Base), st)
	x += shareWidth
	if cols.only {
		v := r.Only
		if h.c.Sort == ByInclusive {
			v = r.Inclusive
		}
		p.Right(x, x+6, y, widget.Percent(v*h.c.Base), t.Text)
		x += shareWidth
	}
	if cols.bar > 0 {
		p.Bar(x, y, cols.bar, r.Only*h.c.Base, r.Share*h.c.Base)
		x += cols.bar + 1
	}
	overlapping := shares > 0 && !selected && r.Key != h.c.Selected
	if cols.overlap {
		if overlapping {
			p.Right(x, x+6, y, p.Glyphs.Shares+widget.Percent(shares*h.c.Base), t.Link)
		}
		x += shareWidth
	} else {
		if overlapping {
			p.Cell(x, y, p.Glyphs.Shares, t.Link)
		}
		x += markWidth
	}
	h.drawName(p, in, x, y, r)
	line := widget.Rect{Min: in.Min, Max: in.Max}
	line.Min.Y, line.Max.Y = y, y+1
	switch {
	case selected && focus:
		p.Tint(line, t.Selected)
	case selected:
		p.Tint(line, t.SelectedIdle)
	case overlapping:
		p.Tint(line, t.Overlap)
	}
}

func (h *hotPane) drawName(p *widget.Painter, in widget.Rect, x, y int, r *model.Row) {
	t := p.Theme
	switch {
	case r.Kids > 0:
		g := p.Glyphs.Open
		if h.closed[r.Key] {
			g = p.Glyphs.Closed
		}
		x = p.Text(x, y, in.Max.X, g+" ", t.Dim)
	case r.Parent >= 0:
		x = p.Text(x, y, in.Max.X, p.Glyphs.Guide+" ", t.Dim)
	default:
		x = p.Text(x, y, in.Max.X, "  ", t.Dim)
	}
	st := t.Text
	switch {
	case r.Category:
		st = t.Dim
	case r.Parent < 0:
		st = t.Strong
	}
	if h.c.Search.RE != nil && h.c.Search.RE.MatchString(r.Full) {
		st = t.Match
	}
	line := ""
	if r.Line > 0 && r.Parent >= 0 {
		line = fmt.Sprintf(":%d", r.Line)
	}
	limit := in.Max.X
	if x+p.Width(r.Name)+len(line) > limit {
		line = ""
	}
	name := r.Name
	if r.Parent < 0 && r.Path != "" {
		name = tail(p, name, limit-x)
	}
	x = p.Text(x, y, limit, name, st)
	if r.Parent < 0 && r.Path == "" && r.Package != "" && r.Package != "main" {
		line = "  " + r.Package
	}
	p.Text(x, y, limit, line, t.Dim)
}

// tail keeps a path's end, which tells more than its beginning.
func tail(p *widget.Painter, s string, w int) string {
	cut := ""
	for p.Width(cut+s) > w {
		_, rest, ok := strings.Cut(s, "/")
		if !ok {
			break
		}
		s, cut = rest, p.Glyphs.More+"/"
	}
	return cut + s
}

// explain draws the two lines at the pane's foot and gives their number.
func (h *hotPane) explain(p *widget.Painter, in widget.Rect) int {
	t := p.Theme
	y := in.Max.Y - 2
	p.Text(in.Min.X+1, y, in.Max.X, p.Glyphs.Shares+" shares samples with the selection", t.Dim)
	if h.c.Data.Hot == nil {
		return 2
	}
	sum := h.c.Data.Hot.LeafSum
	long := fmt.Sprintf("shares sum to %.0f%%: a sample counts for every cause; each counted once = 100%%", 100*sum)
	short := fmt.Sprintf("shares sum to %.0f%%: causes overlap", 100*sum)
	if sum <= 1.005 {
		long = "shares sum to 100%: nothing overlaps"
		short = long
	}
	if p.Width(long) > in.Dx()-1 {
		long = short
	}
	p.Text(in.Min.X+1, y+1, in.Max.X, long, t.Dim)
	return 2
}

func (h *hotPane) drawEmpty(p *widget.Painter, in widget.Rect) {
	lines := []string{"nothing to list"}
	s := h.c.Data.Summary
	switch {
	case s == nil:
		lines = []string{"computing…"}
	case s.Samples == 0:
		lines = []string{"no samples of " + s.Event, "t shows the next event; ccview info tells", "what was recorded"}
	case s.Kept == 0:
		lines = []string{"no sample is left by the transforms", "backspace takes the last one off"}
	case h.c.Filter.RE != nil:
		lines = []string{"no element matches & " + h.c.Filter.Text, "& and enter lists all"}
	case h.c.Minimum > 0:
		lines = []string{"no element has " + widget.Percent(h.c.Minimum), "L changes the minimum"}
	}
	for i, l := range lines {
		if in.Min.Y+i < in.Max.Y {
			p.Text(in.Min.X+2, in.Min.Y+i, in.Max.X, l, p.Theme.Dim)
		}
	}
}

func pad(s string, w int) string {
	if len(s) < w {
		return s + strings.Repeat(" ", w-len(s))
	}
	return s
}

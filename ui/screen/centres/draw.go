package centres

import (
	"fmt"
	"image"
	"strings"

	"ccagent/internal/format"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// sureWidth is that of the intervals' column.
const sureWidth = 6

// markCell is where a row's [x] ends.
const markCell = 5

// centreColumns are the columns that fit into a width; names have priority.
type centreColumns struct {
	sure, inheritedSure, forced, before bool
	bar                                 int
}

// byCost reports whether rows are in the order of their individual figures, dropped ones too.
func (s *Screen) byCost() bool {
	return s.byIndividual() && s.data.Dropped == 0
}

// byIndividual reports whether rows are ordered by their individual figures, where the mode has centres alone.
func (s *Screen) byIndividual() bool {
	return !s.choice.Mode.Stacks() && s.c.Sort != screen.ByName && s.c.Sort != screen.ByInclusive && s.c.Sort != screen.ByOnly
}

// barOf is the solid part of a row's bar and all of it: of the figure that rows are ordered by.
func (s *Screen) barOf(r *CentreRow) (solid, all float64) {
	if s.byIndividual() {
		return r.Individual, r.Individual
	}
	return r.Individual, r.Inherited
}

// largest is the longest bar of all rows, which fills its column.
func (s *Screen) largest() float64 {
	most := 0.0
	for _, i := range s.rows {
		_, all := s.barOf(&s.data.Rows[i])
		most = max(most, all)
	}
	return max(most, 1e-12)
}

// drawSure draws the interval of a figure at x, and a mark if the row's order by it is within noise.
func (s *Screen) drawSure(p *widget.Painter, x, y int, share, plusMinus float64, tied bool) {
	if tied {
		p.Cell(x-1, y, p.Glyphs.Tied, p.Theme.Dim)
	}
	p.Right(x, x+sureWidth-1, y, format.PlusMinus(share, plusMinus*s.c.Base), p.Theme.Dim)
}

func (s *Screen) columns(w int) centreColumns {
	c := centreColumns{}
	left := w - markCell - 2*8 - 28
	if left >= sureWidth {
		c.sure = true
		left -= sureWidth
	}
	if left >= 8 {
		c.forced = true
		left -= 8
	}
	if left >= sureWidth+20 {
		c.inheritedSure = true
		left -= sureWidth
	}
	if left >= 20 && !s.choice.Mode.Stacks() && (left >= 40 || s.data.Dropped > 0) {
		c.before = true
		left -= 17
	}
	if left >= 8 {
		c.bar = min(16, left-1)
		if w < 100 {
			c.bar = min(c.bar, 9) // names are long
		}
	}
	return c
}

func (s *Screen) draw(p *widget.Painter, r widget.Rect) {
	title := s.c.Few("cost centres  " + s.choice.Mode.String())
	note := ""
	if d := s.data; d != nil {
		title += fmt.Sprintf("  %d of %d chosen", d.Centres-d.Dropped, d.Centres)
		note = "space toggles  " + s.patterns()
		if s.nonZero {
			note += "  non-zero"
		}
		if less := s.c.Narrowed(); less != "" {
			note += "  " + less
		}
	}
	p.Box(r, title, note, true)
	in := r.Inset(1)
	if in.Empty() {
		return
	}
	if s.data == nil {
		screen.DrawInstead(p, in, screen.Computing(p))
		return
	}
	cols := s.columns(in.Dx())
	if in.Dy() >= 8 {
		s.header(p, in, cols)
		in.Min.Y++
		in.Max.Y -= s.foot(p, in)
	}
	s.inner = in
	if len(s.rows) == 0 {
		s.drawEmpty(p, in)
		return
	}
	longest := s.largest()
	s.list.Draw(in, func(i, y int) { s.drawRow(p, in, cols, longest, i, y) })
}

func (s *Screen) header(p *widget.Painter, in widget.Rect, cols centreColumns) {
	x := in.Min.X + markCell
	put := func(text string, w int) {
		p.Text(x, in.Min.Y, in.Max.X, screen.Pad(text, w), p.Theme.Dim)
		x += w
	}
	put("  indiv", 8)
	if cols.sure {
		put(" ±95%", sureWidth)
	}
	put("   incl", 8)
	if cols.inheritedSure {
		put(" ±95%", sureWidth)
	}
	if cols.forced {
		put(" forced", 8)
	}
	if cols.before {
		put(" for others", 17)
	}
	if cols.bar > 0 {
		light := "incl"
		if s.byIndividual() {
			light = ""
		}
		x = screen.BarHead(p, x, in.Min.Y, cols.bar, "indiv", light)
	}
	what := "cost centre"
	if s.choice.Mode.Stacks() {
		what = "cost-centre stack, root first"
	}
	p.Text(x, in.Min.Y, in.Max.X, what, p.Theme.Dim)
}

// foot draws the totals below the list, and returns the number of lines.
func (s *Screen) foot(p *widget.Painter, in widget.Rect) int {
	d, b := s.data, s.c.Base
	lines := []string{fmt.Sprintf("individual sums to %s of the samples; choosing never changes the total", format.Share(d.Sum*b))}
	lines = append(lines, fmt.Sprintf("own code %s, callees' %s, forced %s, in no centre %s", format.Share(d.Own*b), format.Share(d.Subsumed*b), format.Share(d.Forced*b), format.Share(d.Pseudo*b)))
	if s.choice.Mode.Stacks() && in.Dy() >= 12 && d.Expensive >= 0 {
		lines = append([]string{"most expensive: " + s.stack(p, d.Expensive)}, lines...)
	}
	switch {
	case len(d.Missed) > 0:
		lines = append([]string{d.Missed[0]}, lines...)
	case !d.Notes:
		lines = append([]string{"no source notes: centres are bindings by their symbols; build with -g3"}, lines...)
	case d.Gap > 0 && in.Dy() >= 14:
		lines = append(lines, format.Share(d.Gap*b)+" was attributed past frames that are missing from the stacks")
	}
	if d.Deep > 0 {
		lines = append(lines, format.Share(d.Deep*b)+" is in stacks of more centres than are kept: choose fewer")
	}
	for i, l := range lines {
		st := p.Theme.Dim
		if i == 0 && len(d.Missed) > 0 {
			st = p.Theme.Warn
		}
		p.Text(in.Min.X+1, in.Max.Y-len(lines)+i, in.Max.X-1, l, st)
	}
	return len(lines)
}

// stack formats a row's stack, topmost centre first.
func (s *Screen) stack(p *widget.Painter, row int) string {
	var names []string
	for i := row; i >= 0; i = s.data.Rows[i].Parent {
		names = append(names, s.data.Rows[i].Name)
	}
	return format.Share(s.data.Rows[row].Individual*s.c.Base) + " " + strings.Join(names, " on ")
}

func (s *Screen) drawRow(p *widget.Painter, in widget.Rect, cols centreColumns, longest float64, i, y int) {
	at := s.rows[i]
	r := &s.data.Rows[at]
	t := p.Theme
	selected := i == s.list.Cursor
	dropped := !r.Chosen && !r.Pseudo
	if selected {
		p.Text(in.Min.X, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	switch {
	case dropped:
		p.Text(in.Min.X+1, y, in.Max.X, "[ ]", t.Dim)
	case !r.Pseudo:
		p.Text(in.Min.X+1, y, in.Max.X, "[x]", t.Key)
	}
	x := in.Min.X + markCell
	figure := func(f float64, st theme.Style, known bool) {
		text := "-"
		if known {
			text = format.Share(f * s.c.Base)
		}
		p.Right(x, x+7, y, text, st)
		x += 8
	}
	st := t.Text
	if l := theme.HeatLevel(r.Individual * s.c.Base); l > 0 {
		st = t.Heat[l-1]
	}
	figure(r.Individual, st, !dropped)
	if cols.sure {
		if !dropped {
			s.drawSure(p, x, y, r.Individual, r.PlusMinus, r.Tied && s.byCost())
		}
		x += sureWidth
	}
	figure(r.Inherited, t.Text, !dropped)
	if cols.inheritedSure {
		if !dropped {
			s.drawSure(p, x, y, r.Inherited, r.InheritedPlusMinus, r.Tied && s.choice.Mode.Stacks())
		}
		x += sureWidth
	}
	if cols.forced {
		figure(r.Forced, t.Dim, !dropped && r.Forced > 0)
	}
	if cols.before {
		text := ""
		switch more := r.Individual - r.Before; {
		case dropped:
			text = "alone " + format.Share(r.Before*s.c.Base)
		case more > 1e-9:
			text = "+" + format.Share(more*s.c.Base)
		}
		p.Text(x+1, y, x+16, text, t.Link)
		x += 17
	}
	if cols.bar > 0 {
		solid, all := s.barOf(r)
		p.Bar(x, y, cols.bar, solid/longest, all/longest)
		x += cols.bar + 1
	}
	room := max(2, (in.Max.X-x)/3)
	if d := s.depth[at]; d > room {
		p.Right(x, x+room, y, fmt.Sprintf("%d%s", d, p.Glyphs.More), t.Dim)
		x += room
	} else {
		x += d
	}
	s.drawName(p, in, x, y, r, dropped)
	if selected {
		p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, t.Selected)
	}
}

func (s *Screen) drawName(p *widget.Painter, in widget.Rect, x, y int, r *CentreRow, dropped bool) {
	t := p.Theme
	st := t.Text
	if r.Pseudo || dropped {
		st = t.Dim
	}
	if s.c.Search.RE != nil && s.c.Search.RE.MatchString(r.Name) {
		st = t.Match
	}
	x = p.Name(x, y, in.Max.X, r.Name, st)
	where := ""
	if r.Path != "" && r.Line > 0 {
		where = fmt.Sprintf("  %s:%d", r.Path, r.Line)
	}
	if x+p.Width(where) < in.Max.X {
		p.Text(x, y, in.Max.X, where, t.Dim)
	}
}

func (s *Screen) drawEmpty(p *widget.Painter, in widget.Rect) {
	lines := s.c.Emptied("cost centre")
	if lines == nil {
		lines = []string{"no cost centre has samples", "C chooses others: @bindings, @modules, @packages or globs"}
	}
	screen.DrawInstead(p, in, lines)
}

package pane

import (
	"fmt"
	"image"
	"math"
	"slices"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile/diagnosis"
	"ccagent/profile/reasons"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// sourcePane is a file with its heat; both the main screen and the source
// screen have one.
type sourcePane struct {
	c     *screen.Context
	list  widget.List
	left  int // columns scrolled to the right
	shown *model.Source
	line  int // c.Line when the cursor was last put on it
	inner widget.Rect
	full  bool // more columns, for the whole width
	above int  // lines of a reason scrolled away
}

// reason is what explains the selected element, if it is one without source.
func (s *sourcePane) reason() *reasons.Reason {
	if s.c.File != 0 || s.c.Data.Query.Selected != s.c.Selected {
		return nil
	}
	return s.c.Data.Reason
}

// scrollReason moves through what explains an element.
func (s *sourcePane) scrollReason(a keymap.Action) {
	page := max(1, s.inner.Dy()-1)
	switch a {
	case keymap.Up:
		s.above--
	case keymap.Down:
		s.above++
	case keymap.Top:
		s.above = 0
	case keymap.Bottom:
		s.above = math.MaxInt32
	case keymap.HalfUp:
		s.above -= (page + 1) / 2
	case keymap.HalfDown:
		s.above += (page + 1) / 2
	case keymap.PageUp:
		s.above -= page
	case keymap.PageDown, keymap.Mark:
		s.above += page
	}
}

func newSourcePane(c *screen.Context, full bool) *sourcePane { return &sourcePane{c: c, full: full} }

// refresh follows the selection: when another file or line is asked for, the
// cursor goes there.
func (s *sourcePane) refresh() {
	d := s.c.Data.Source
	if d == nil || d.File != s.c.File {
		s.list.N = 0
		s.shown = nil
		return
	}
	jump := s.shown == nil || s.line != s.c.Line
	s.shown = d
	s.list.N = len(d.Lines)
	if s.c.Line == 0 && len(d.Hottest) > 0 {
		s.c.Line = d.Hottest[0]
	}
	if r := s.c.Row(s.c.Selected); jump && r != nil && r.File == d.File && r.Line == s.c.Line {
		s.c.Line = hottestOf(d, s.c.Selected, r.Line)
	}
	if jump && s.c.Line > 0 {
		s.list.Set(s.c.Line - 1)
		s.list.Center()
		s.left = 0
	}
	s.line = s.c.Line
}

// hottestOf is the hottest line with code of a binding; or else line, where it begins.
func hottestOf(d *model.Source, binding model.Key, line int) int {
	for _, l := range d.Hottest {
		if slices.ContainsFunc(d.Heat[l].Causes, func(c model.Cause) bool { return c.Binding == binding }) {
			return l
		}
	}
	return line
}

// follow sets the context's line to the one under the cursor.
func (s *sourcePane) follow() {
	if s.list.N > 0 {
		s.c.Line = s.list.Cursor + 1
		s.line = s.c.Line
	}
}

func (s *sourcePane) why(a keymap.Action) string {
	switch a {
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		return "transforms act on elements; tab goes to the hot list"
	case keymap.Sort, keymap.Minimum, keymap.Filter:
		return "this is for lists; tab goes to the hot list"
	}
	return ""
}

func (s *sourcePane) do(a keymap.Action) string {
	s.refresh()
	if s.reason() != nil {
		s.scrollReason(a)
		return ""
	}
	if screen.MoveList(&s.list, a) {
		s.follow()
		return ""
	}
	switch a {
	case keymap.Left:
		s.left = max(0, s.left-8)
	case keymap.Right:
		s.left = min(s.left+8, 4096)
	}
	return ""
}

// hotter moves to the next line by falling share; by is 1 or −1.
func (s *sourcePane) hotter(by int) bool {
	s.refresh()
	if s.shown == nil || len(s.shown.Hottest) == 0 {
		return false
	}
	hot := s.shown.Hottest
	at := -1
	for i, l := range hot {
		if l == s.c.Line {
			at = i
		}
	}
	if at < 0 && by < 0 {
		at = 0
	}
	s.list.Set(hot[((at+by)%len(hot)+len(hot))%len(hot)] - 1)
	s.follow()
	return true
}

func (s *sourcePane) mouse(m screen.Mouse) {
	if s.reason() != nil {
		switch m.Kind {
		case screen.WheelUp:
			s.above -= 3
		case screen.WheelDown:
			s.above += 3
		}
		return
	}
	at := s.list.Cursor
	if screen.MouseList(&s.list, s.inner, m) || s.list.Cursor != at {
		s.follow()
	}
}

func (s *sourcePane) find(p *screen.Pattern, by int) bool {
	s.refresh()
	if p.RE == nil {
		return false
	}
	return s.list.Find(by, func(i int) bool { return p.RE.MatchString(s.shown.Lines[i]) }, s.follow)
}

func (s *sourcePane) subject() screen.Subject {
	if s.shown == nil {
		return screen.Subject{Key: model.NoKey}
	}
	out := screen.Subject{Key: model.NoKey, Path: s.shown.Path, Line: s.list.Cursor + 1}
	if s.list.Cursor < len(s.shown.Lines) {
		out.Row = s.shown.Lines[s.list.Cursor]
	}
	return out
}

func (s *sourcePane) title() (string, string) {
	d := s.c.Data.Source
	if r := s.reason(); r != nil {
		return "why " + r.Element + " has " + format.Share(r.Share*s.c.Base), ""
	}
	if s.c.File == 0 || d == nil {
		return "source", ""
	}
	note := ""
	if s.full {
		note = "share of " + base(s.c)
	}
	return d.Path, note
}

// draw draws the pane's box and the file.
func (s *sourcePane) draw(p *widget.Painter, r widget.Rect, focus bool) {
	s.refresh()
	title, note := s.title()
	few := ""
	if s.full {
		few = s.c.Few("")
	}
	p.Box(r, few+screen.Tail(p, title, r.Dx()-6-p.Width(few)), note, focus)
	in := r.Inset(1)
	if in.Empty() {
		return
	}
	s.inner = in
	if r := s.reason(); r != nil {
		lines := reasonLines(p, s.c, r, in.Dx()-2)
		s.above = max(0, min(s.above, len(lines)-in.Dy()))
		s.drawReason(p, in, r, lines)
		return
	}
	s.above = 0
	if s.shown == nil || len(s.shown.Lines) == 0 {
		s.drawNone(p, in)
		return
	}
	cols := s.columns(in.Dx())
	if in.Dy() >= 8 {
		s.header(p, in, cols)
		in.Min.Y++
	}
	if s.shown.Problem != "" && in.Dy() > 4 {
		p.Text(in.Min.X+1, in.Max.Y-1, in.Max.X, s.shown.Problem, p.Theme.Warn)
		in.Max.Y--
	}
	// The selected line's causes are drawn under it, in rows taken from the list.
	under := s.underlay(p, in.Dy())
	rows := in
	rows.Max.Y -= len(under)
	s.inner = rows
	shift := 0
	s.list.Draw(rows, func(i, y int) {
		s.drawLine(p, in, cols, i, y+shift, focus)
		if i == s.list.Cursor {
			for j, c := range under {
				s.drawCause(p, in, cols, i, y+1+j, c)
			}
			shift = len(under)
		}
	})
}

type sourceColumns struct {
	causes, sure, only, onlySure, weight int // widths, 0 = none
	code                                 int // where the text begins
}

const maxUnder = 4

func (s *sourcePane) columns(w int) sourceColumns {
	var c sourceColumns
	c.causes = 2
	if s.full && w >= 70 {
		c.causes, c.sure, c.only = theme.Causes+2, 6, 7
	}
	if s.full && w >= 100 {
		c.weight = screen.WeightWidth
	}
	if s.full && w >= 110 {
		c.onlySure = 6
	}
	c.code = 1 + c.causes + 2 + 6 + c.sure + c.only + c.onlySure + c.weight + 6
	return c
}

func (s *sourcePane) header(p *widget.Painter, in widget.Rect, cols sourceColumns) {
	x, t := in.Min.X+1, p.Theme.Dim
	head := "c"
	if cols.causes > 2 {
		head = "causes"
	}
	p.Text(x, in.Min.Y, x+cols.causes, head, t)
	x += cols.causes
	p.Text(x, in.Min.Y, in.Max.X, "  share", t)
	x += 8
	if cols.sure > 0 {
		p.Text(x, in.Min.Y, in.Max.X, "±95%", t)
		x += cols.sure
	}
	if cols.only > 0 {
		p.Text(x, in.Min.Y, in.Max.X, "  only", t)
		x += cols.only
	}
	if cols.onlySure > 0 {
		p.Text(x, in.Min.Y, in.Max.X, "±95%", t)
		x += cols.onlySure
	}
	if cols.weight > 0 {
		p.Right(x, x+cols.weight-1, in.Min.Y, s.c.WeightHead(), t)
		x += cols.weight
	}
	p.Text(x, in.Min.Y, in.Max.X, " line", t)
}

// number gives a share without its sign, so that a column of them is narrow.
func number(f float64) string { return strings.TrimSuffix(format.Share(f), "%") }

func (s *sourcePane) drawLine(p *widget.Painter, in widget.Rect, cols sourceColumns, i, y int, focus bool) {
	if y >= in.Max.Y {
		return
	}
	t := p.Theme
	heat, hot := s.shown.Heat[i+1]
	selected := i == s.list.Cursor
	x := in.Min.X
	if selected {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	x++
	for j, c := range heat.Causes {
		if j < cols.causes-1 {
			p.Cell(x+j, y, c.Letter, t.Cause[j%theme.Causes])
		}
	}
	x += cols.causes
	if hot && heat.Share > 0 {
		share := heat.Share * s.c.Base
		g, st := p.HeatGlyph(share)
		p.Cell(x, y, g, st)
		p.Right(x+2, x+7, y, number(share), st)
		if cols.sure > 0 {
			p.Right(x+7, x+7+cols.sure-1, y, format.PlusMinus(heat.Share, heat.PlusMinus*s.c.Base), t.Dim)
		}
		if cols.only > 0 {
			at := x + 8 + cols.sure
			p.Right(at, at+cols.only-2, y, number(heat.Only*s.c.Base), t.Text)
			if cols.onlySure > 0 {
				p.Right(at+cols.only-2, at+cols.only+cols.onlySure-3, y, format.PlusMinus(heat.Only, heat.OnlyPlusMinus*s.c.Base), t.Dim)
			}
		}
	}
	x += 8 + cols.sure + cols.only + cols.onlySure
	if hot && heat.Share > 0 && cols.weight > 0 {
		p.Right(x, x+cols.weight-1, y, s.c.Weight(heat.Share), t.Text)
	}
	x += cols.weight
	p.Right(x, x+5, y, fmt.Sprint(i+1), t.Dim)
	code := widget.Rect{Min: image.Pt(in.Min.X+cols.code, in.Min.Y), Max: in.Max}
	p.CodeLine(code, y, s.left, s.shown.Lines[i], s.shown.Tokens[i], s.marks(p, i+1))
	line := widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}
	switch {
	case selected && focus:
		p.Tint(line, t.Selected)
	case selected:
		p.Tint(line, t.SelectedIdle)
	}
}

// marks colours a line's spans: strongly those of the selected element, weakly
// those of others that share samples with it; and search matches over all.
func (s *sourcePane) marks(p *widget.Painter, line int) []widget.Mark {
	var out []widget.Mark
	t := p.Theme
	sel := s.c.Row(s.c.Selected)
	for _, c := range slices.Backward(s.shown.Heat[line].Causes) { // the narrow ones on top
		m := widget.Mark{From: int(c.Span.Col)}
		if c.Span.EndLine == c.Span.Line {
			m.To = int(c.Span.EndCol)
		}
		switch {
		case sel != nil && c.Name == sel.Full:
			m.Style = theme.Style{Bg: t.SelectedIdle.Bg, Attrs: t.Selected.Attrs}
		case s.c.Data.Overlap[c.Binding] > 0:
			m.Style = theme.Style{Bg: t.Overlap.Bg}
		default:
			continue
		}
		out = append(out, m)
	}
	if re := s.c.Search.RE; re != nil {
		for _, at := range re.FindAllStringIndex(s.shown.Lines[line-1], 32) {
			out = append(out, widget.Mark{From: at[0], To: at[1], Bytes: true, Style: t.Match})
		}
	}
	return out
}

// underlay is what is drawn under the selected line.
func (s *sourcePane) underlay(p *widget.Painter, height int) []model.Cause {
	h := s.shown.Heat[s.list.Cursor+1]
	n := min(len(h.Causes), maxUnder, max(0, height-3))
	return h.Causes[:n]
}

func (s *sourcePane) drawCause(p *widget.Painter, in widget.Rect, cols sourceColumns, i, y int, c model.Cause) {
	if y >= in.Max.Y {
		return
	}
	var at int
	for j, o := range s.shown.Heat[i+1].Causes {
		if o.Key == c.Key && o.Letter == c.Letter {
			at = j
		}
	}
	st := p.Theme.Cause[at%theme.Causes]
	x := in.Min.X + 1
	x = p.Text(x, y, in.Max.X, c.Letter+" ", st)
	p.Right(x, in.Min.X+cols.code-7, y, number(c.Share*s.c.Base), st)
	code := widget.Rect{Min: image.Pt(in.Min.X+cols.code, in.Min.Y), Max: in.Max}
	from, end := code.Min.X, code.Min.X
	text := c.Name
	if sp := c.Span; sp.Line == uint32(i+1) {
		m := widget.Mark{From: int(sp.Col), Style: st}
		if sp.EndLine == sp.Line {
			m.To = int(sp.EndCol)
		}
		if from, end = p.Underlay(code, y, s.left, s.shown.Lines[i], m, c.Letter); from == end {
			text += fmt.Sprintf(", column %d", sp.Col) // not in sight
		}
	}
	// The cause's name goes after the marks; a long mark is cut for it.
	if end > from {
		end++
	}
	if w := p.Width(text); end+w > in.Max.X {
		end = max(from+5, in.Max.X-w)
		if in.Max.X-end < 8 {
			return
		}
		p.Cell(end-1, y, " ", st)
	}
	p.Text(end, y, in.Max.X, text, st)
}

func (s *sourcePane) drawNone(p *widget.Painter, in widget.Rect) {
	var lines []string
	d := s.c.Data.Source
	switch {
	case s.c.Selected == model.NoKey:
		lines = []string{"select an element to see its source"}
	case s.c.File == 0:
		lines = noSource(s.c)
	case d == nil || d.File != s.c.File:
		lines = []string{"loading" + p.Glyphs.More}
	default:
		lines = []string{"the text of this file is not in the log", d.Problem}
		for _, l := range d.Hottest {
			h := d.Heat[l]
			lines = append(lines, fmt.Sprintf("%6s  line %d", format.Share(h.Share*s.c.Base), l))
		}
	}
	screen.DrawInstead(p, in, lines)
}

// base names what shares are fractions of.
func base(c *screen.Context) string {
	s := c.Data.Summary
	if s == nil {
		return "the samples"
	}
	if c.Whole {
		return "all " + format.Count(s.Samples)
	}
	return format.Count(s.Kept)
}

// noSource explains why the selection has no source to show.
func noSource(c *screen.Context) []string {
	r := c.Row(c.Selected)
	if r == nil {
		return []string{"no source for this row"}
	}
	callers := c.Key(screen.Stacks) + " shows who calls it."
	switch r.Full {
	case screen.Unresolved:
		if c.Pending() != "" {
			return []string{"Code whose name has not been looked up yet: the capture goes on."}
		}
		return []string{"code that no symbol names"}
	}
	if r.Category {
		return []string{"no source for " + r.Full}
	}
	if r.Package == "main" || r.Package == "" {
		return []string{
			r.Full + " has no source notes.",
			"GHC leaves them out where it made code from a definition of another module; without -g3 it gives none. " + callers,
		}
	}
	return append([]string{
		r.Full + " has no source notes.",
		"Its package, " + r.Package + ", was built without -g3. What brings them:",
		"",
	}, strings.Split(diagnosis.NotesRemedy(r.Package), "\n")...)
}

// Package alloc is the screen of what was allocated, by closure: constructors, thunks and
// functions, and where they are written.
package alloc

import (
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Alloc, Tab: "Alloc", New: newScreen,
	Off: (*screen.Context).WhyNoSamples,
	Keys: keymap.Screen{
		Help:  "what was allocated, by closure",
		Notes: []keymap.Note{{Action: keymap.Open, Help: "of a closure: the source where it is written"}},
	},
}

// Screen is what was allocated, by closure, in the range of time that is chosen.
type Screen struct {
	c      *screen.Context
	list   widget.List
	rows   []int // of the table, as listed
	seen   seen
	cursor rowID // of the row under the cursor
	inner  widget.Rect
}

// seen is what rows was made from.
type seen struct {
	table   *closures.Table
	filter  screen.Pattern
	minimum float64
}

// rowID names a row across answers.
type rowID struct{ name, kind, where string }

func newScreen(c *screen.Context) screen.Screen { return &Screen{c: c} }

// part is the range of time.
type part struct{ From, To uint64 }

// Compute implements model.Part; it gives a *closures.Table.
func (c part) Compute(in *model.Input) (any, error) {
	return model.Recall(in.Engine, c, func() *closures.Table { return closures.Of(in.Profile(), c.filter()) }), nil
}

func (c part) filter() closures.Filter {
	f := closures.All
	f.Range = profile.Range{From: c.From, To: c.To}
	return f
}

func (s *Screen) part() part {
	if r, ok := s.c.Applied.Range(); ok {
		return part{r.From, r.To}
	}
	return part{}
}

func (s *Screen) table() *closures.Table { return screen.Part[closures.Table](s.c) }

func (s *Screen) refresh() {
	t := s.table()
	now := seen{t, s.c.Filter, s.c.Minimum}
	if t == nil {
		s.list.N, s.rows, s.seen = 0, nil, seen{} // the same answer may come back
		return
	}
	if now == s.seen {
		return
	}
	s.seen, s.rows = now, s.rows[:0]
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Share >= s.c.Minimum && s.c.Filter.Match(title(r)) {
			s.rows = append(s.rows, i)
		}
	}
	s.list.N = len(s.rows)
	for k, i := range s.rows {
		if id(&t.Rows[i]) == s.cursor {
			s.list.Set(k)
			return
		}
	}
	s.list.Set(s.list.Cursor)
	s.note()
}

func id(r *closures.Row) rowID { return rowID{r.Name, r.Kind, r.Where()} }

// title is a row's text for searching and filtering.
func title(r *closures.Row) string { return strings.TrimSpace(r.Name + " " + r.Kind + " " + r.Where()) }

// row is the row under the cursor; nil if there is none.
func (s *Screen) row() *closures.Row {
	if t := s.table(); t != nil && s.list.Cursor < len(s.rows) {
		return &t.Rows[s.rows[s.list.Cursor]]
	}
	return nil
}

func (s *Screen) note() {
	if r := s.row(); r != nil {
		s.cursor = id(r)
	}
}

// Query implements Screen.
func (s *Screen) Query() model.Query { return s.c.Query(s.part()) }

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.NextPane, keymap.PrevPane, keymap.Left, keymap.Right, keymap.Zoom:
		return "there is one list: j and k move in it"
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight,
		keymap.Bookmark, keymap.NextBookmark:
		return s.c.WhyNoTimeline()
	case keymap.Invert:
		return "inverting turns the call tree; " + s.c.Key(screen.Stacks) + " shows it"
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse, keymap.Sandwich:
		return "what is allocated has no stacks to narrow; the event alloc, on " + s.c.Key(screen.Hot) + ", has who allocates"
	case keymap.Sort:
		return "closures are listed by share"
	case keymap.Undo:
		return s.c.WhyNoUndo()
	case keymap.Redo:
		return s.c.WhyNoRedo()
	case keymap.Open:
		if r := s.row(); r == nil || r.FileID == 0 {
			return "where it is written is not known"
		}
	}
	return ""
}

// Do implements Screen.
func (s *Screen) Do(a keymap.Action) string {
	s.refresh()
	if a == keymap.Open {
		r := s.row()
		s.c.File, s.c.Line, s.c.Goto = r.FileID, int(r.Span.Line), screen.Source
		return ""
	}
	if screen.MoveList(&s.list, a) {
		s.note()
	}
	return ""
}

// Back implements Screen.
func (s *Screen) Back() bool { return false }

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	screen.MouseRows(s, &s.list, s.inner, m, s.note)
}

// Find implements Screen.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	s.refresh()
	t := s.table()
	if p.RE == nil || t == nil {
		return false
	}
	return s.list.Find(by, func(i int) bool { return p.RE.MatchString(title(&t.Rows[s.rows[i]])) }, s.note)
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject {
	out := screen.Subject{Key: model.NoKey}
	if r := s.row(); r != nil {
		out.Row = strings.Join([]string{format.Share(r.Share), r.Kind, r.Name, r.Where()}, "\t")
		out.Path, out.Line = r.File, int(r.Span.Line)
	}
	return out
}

// Report implements Screen.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	p, f := s.c.Profile, s.part().filter()
	return func(*profile.Selection) (printer.Report, error) { return Report{Profile: p, Filter: f}, nil }, nil
}

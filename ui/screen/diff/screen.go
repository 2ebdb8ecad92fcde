// Package diff is the screen of the difference of two logs, or of two groups of logs.
package diff

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/diff"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Diff, Tab: "Diff", New: newScreen,
	Off:   (*screen.Context).WhyNoDiff,
	First: func(c *screen.Context) bool { return c.WhyNoDiff() == "" },
	Keys: keymap.Screen{
		Help: "difference of two logs or groups of logs (ccview diff A B)",
		Does: []keymap.Action{keymap.Mode, keymap.NonZero, keymap.Base, keymap.Sort},
		Notes: []keymap.Note{
			{Action: keymap.Left, Help: "of a difference: a coarser level"},
			{Action: keymap.Right, Help: "of a difference: a finer level"},
			{Action: keymap.Base, Help: "of a difference: parts of the total, or weights"},
			{Action: keymap.Mode, Help: "of a difference: share, only, inclusive"},
			{Action: keymap.NonZero, Help: "of a difference: only what is significant, or all"},
		},
	},
}

// Screen is two logs or two groups of logs, element by element.
type Screen struct {
	c      *screen.Context
	choice part
	all    bool // list what does not differ, too
	order  diffOrder
	zoomed bool

	list  widget.List
	rows  []int // of the result's rows, as listed
	seen  diffSeen
	name  string // of the row under the cursor
	inner widget.Rect
	homes map[string]*profile.Element // bindings and files of the open log by name
}

// diffSeen is what rows was made from.
type diffSeen struct {
	d       *Diff
	all     bool
	order   diffOrder
	filter  screen.Pattern
	minimum float64
}

// diffOrder is the order of the rows.
type diffOrder uint8

const (
	byVerdict diffOrder = iota // what differs first, then by the difference
	byDelta
	byA
	byB
	byElement
	diffOrders
)

func (o diffOrder) String() string {
	return [...]string{"verdict", "difference", "A", "B", "name"}[o]
}

func newScreen(c *screen.Context) screen.Screen {
	return &Screen{c: c, choice: part{c.Compared, c.Compared.Level, c.Compared.Options}}
}

// latest is the latest answer; nil until there is one.
func (s *Screen) latest() *Diff { return screen.Part[Diff](s.c) }

func (s *Screen) result() *diff.Result {
	if d := s.latest(); d != nil {
		return d.Result
	}
	return nil
}

// refresh lists the rows anew if anything they depend on changed, and keeps the
// cursor on its element.
func (s *Screen) refresh() {
	now := diffSeen{s.latest(), s.all, s.order, s.c.Filter, s.c.Minimum}
	r := s.result()
	if now == s.seen || now.d == nil {
		return
	}
	s.seen = now
	s.rows = s.rows[:0]
	if r == nil {
		s.list.N = 0
		return
	}
	scale := 1.0
	if r.Options.Normalise == diff.None {
		scale = max(r.Total.A.Mean, r.Total.B.Mean)
	}
	for i := range r.Rows {
		row := &r.Rows[i]
		wanted := s.all || row.Verdict.Significant() ||
			r.Method == diff.NoTest && row.Delta != 0 && max(row.A.Mean, row.B.Mean) >= diff.MinShare*scale
		if wanted && s.c.Filter.Match(row.Name) && max(row.A.Mean, row.B.Mean) >= s.c.Minimum*scale {
			s.rows = append(s.rows, i)
		}
	}
	slices.SortStableFunc(s.rows, func(i, j int) int {
		x, y := &r.Rows[i], &r.Rows[j]
		switch s.order {
		case byDelta:
			return cmp.Compare(math.Abs(y.Delta), math.Abs(x.Delta))
		case byA:
			return cmp.Compare(y.A.Mean, x.A.Mean)
		case byB:
			return cmp.Compare(y.B.Mean, x.B.Mean)
		case byElement:
			return cmp.Compare(x.Name, y.Name)
		}
		return 0
	})
	s.list.N = len(s.rows)
	for i, n := range s.rows {
		if r.Rows[n].Name == s.name {
			s.list.Set(i)
			return
		}
	}
	s.list.Set(s.list.Cursor)
	s.note()
}

func (s *Screen) row() *diff.Row {
	r := s.result()
	if r == nil || s.list.Cursor >= len(s.rows) || s.rows[s.list.Cursor] >= len(r.Rows) {
		return nil
	}
	return &r.Rows[s.rows[s.list.Cursor]]
}

// note remembers what is under the cursor, and shows its source on screen 2.
func (s *Screen) note() {
	row := s.row()
	if row == nil {
		return
	}
	s.name = row.Name
	if e := s.home(row); e != nil && e.FileID != 0 {
		s.c.File, s.c.Line = e.FileID, max(1, int(e.Span.Line))
		if row.Span.Line > 0 && row.File == e.File {
			s.c.Line = int(row.Span.Line)
		}
	}
}

// home is where the open log has an element's source.
func (s *Screen) home(row *diff.Row) *profile.Element {
	if s.homes == nil {
		s.homes = make(map[string]*profile.Element)
		for _, l := range []profile.Level{profile.LevelModule, profile.LevelFile, profile.LevelBinding} {
			els := s.c.Profile.Elements(l)
			for i := range els {
				s.homes[els[i].Name] = &els[i]
			}
		}
	}
	if e := s.homes[row.Name]; e != nil {
		return e
	}
	return s.homes[row.File]
}

// Rekey implements Rekeyer: elements are found by name, anew in another log.
func (s *Screen) Rekey(func(model.Key) model.Key) { s.homes = nil }

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.NextPane, keymap.PrevPane:
		return "this screen has one pane"
	case keymap.Invert, keymap.Sandwich:
		return "inverting turns the call tree; M compares share, only or inclusive"
	case keymap.Left:
		if s.choice.Level == profile.LevelPackage {
			return "packages are the coarsest level"
		}
	case keymap.Right:
		if s.choice.Level == profile.LevelSpan {
			return "spans are the finest level"
		}
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight, keymap.Bookmark, keymap.NextBookmark:
		return s.c.WhyNoTimeline()
	case keymap.Open:
		if row := s.row(); row == nil || s.home(row) == nil || s.home(row).FileID == 0 {
			return "nothing here has a source"
		}
	}
	return ""
}

// Do implements Screen.
func (s *Screen) Do(a keymap.Action) string {
	s.refresh()
	if screen.MoveList(&s.list, a) {
		s.note()
		return ""
	}
	switch a {
	case keymap.Left, keymap.Right:
		by := 1
		if a == keymap.Right {
			by = -1
		}
		i := slices.Index(profile.Levels, s.choice.Level) + by
		s.choice.Level = profile.Levels[max(0, min(i, len(profile.Levels)-1))]
		return "by " + s.choice.Level.String()
	case keymap.Sort:
		s.order = (s.order + 1) % diffOrders
		return "sorted by " + s.order.String()
	case keymap.Mode:
		s.choice.Metric = (s.choice.Metric + 1) % 3
		return "compared: " + s.choice.Metric.String()
	case keymap.NonZero:
		s.all = !s.all
		if s.all {
			return "all elements"
		}
		return "only elements that differ"
	case keymap.Base:
		s.choice.Normalise = diff.Share - s.choice.Normalise
		if s.choice.Normalise == diff.Share {
			return "parts of each run's total: where one grows, others shrink"
		}
		return "weights as they are"
	case keymap.Open:
		s.note()
		s.c.Goto = screen.Source
	case keymap.Zoom:
		s.zoomed = !s.zoomed
	}
	return ""
}

// Back implements Screen.
func (s *Screen) Back() bool {
	was := s.zoomed
	s.zoomed = false
	return was
}

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	screen.MouseRows(s, &s.list, s.inner, m, s.note)
}

// Find implements Screen.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	s.refresh()
	r := s.result()
	if p.RE == nil || r == nil {
		return false
	}
	return s.list.Find(by, func(i int) bool { return p.RE.MatchString(r.Rows[s.rows[i]].Name) }, s.note)
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject {
	out := screen.Subject{Key: model.NoKey}
	row := s.row()
	if row == nil {
		return out
	}
	unit := s.result().A[0].Unit
	norm := s.result().Options.Normalise
	out.Row = strings.Join([]string{Figure(row.A.Mean, norm, unit), Figure(row.B.Mean, norm, unit),
		Change(row.Delta, norm, unit), Relative(row), string(row.Verdict), row.Name}, "\t")
	out.Path, out.Line = row.File, int(row.Span.Line)
	out.Module, out.Package = row.Module, row.Package
	switch {
	case !row.InA:
		out.Only = screen.SideB.String()
	case !row.InB:
		out.Only = screen.SideA.String()
	}
	switch s.choice.Level {
	case profile.LevelBinding, profile.LevelFile:
		out.Name = row.Name
	case profile.LevelModule, profile.LevelPackage:
		out.Name, out.Level = row.Name, s.choice.Level
	default:
		out.Name = row.File // a span is no frame's name; its file is
	}
	if row.Kind == "category" {
		out.Name, out.Level = row.Name, profile.LevelBinding
	}
	return out
}

// Query implements Screen.
func (s *Screen) Query() model.Query { return s.c.Query(s.choice) }

// Report implements Screen. It has none: the logs of both sides would be needed.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	return nil, errors.New("ccview diff prints this screen: ccview diff A B > FILE")
}

func (s *Screen) title(r *diff.Result) (title, note string) {
	title = fmt.Sprintf("diff by %s: %s", s.choice.Level, s.choice.Metric)
	if s.choice.Normalise == diff.Share {
		title += ", parts of the total"
	}
	if less := s.c.Narrowed(); less != "" {
		title += "  " + less
	}
	if r == nil {
		return title, ""
	}
	note = "h l level  sorted by " + s.order.String()
	switch {
	case s.all:
		note += ", all"
	case r.Method != diff.NoTest:
		note += ", only significant"
	}
	return title, note
}

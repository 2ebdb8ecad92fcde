// Package threads is the screen of a capture's Haskell threads: what each used, and when each ran.
package threads

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/threads"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Threads, Tab: "Thr", New: newScreen,
	Off: func(c *screen.Context) string {
		why := c.WhyNoSamples()
		if why != "" && len(c.Profile.Dumps) > 0 {
			why += "; " + c.Key(screen.Dump) + " shows its thread dump"
		}
		return why
	},
	Keys: keymap.Screen{
		Help: "Haskell threads: what each used, and a track of when it ran",
		Does: []keymap.Action{
			keymap.Sort, keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight,
			keymap.Bookmark, keymap.NextBookmark,
		},
		Notes: []keymap.Note{
			{Action: keymap.Open, Help: "on a thread: all screens show that thread only; on a second one: either; again: take it off"},
			{Action: keymap.Sort, Help: "of threads: by CPU time, allocation, label or first sample"},
		},
	},
}

// Screen is a table of threads with a track each, below the capabilities' tracks.
type Screen struct {
	c      *screen.Context
	time   *pane.Time
	list   widget.List
	order  order
	rows   []int // of the users, as listed
	seen   seen
	cursor threads.Key // of the row under the cursor
	table  widget.Rect // as last drawn
}

// order is the order of the rows.
type order uint8

const (
	byCPU order = iota
	byAlloc
	byLabel
	byFirst
	orders
)

func (o order) String() string {
	return [...]string{"CPU time", "allocation", "label", "first sample"}[o]
}

// seen is what rows was made from.
type seen struct {
	a      *answer
	order  order
	filter screen.Pattern
	least  float64
}

func newScreen(c *screen.Context) screen.Screen { return &Screen{c: c, time: pane.NewTime(c)} }

// part says that threads are wanted; the query's window has the columns of their tracks.
type part struct{}

// answer is the threads of all transforms but those that choose threads, so that one can choose
// another; and their tracks in the window, where the range is chosen.
type answer struct {
	users  *threads.Users
	tracks *threads.Tracks // nil without a window
	unit   string          // of the tracks' weights
	peak   uint64          // the most of a thread in a column
}

// Compute implements model.Part; it gives an *answer.
func (part) Compute(in *model.Input) (any, error) {
	var all, timeless []model.Transform
	for _, t := range in.Samples.Transforms.All() {
		if t.Op == model.OpThread || t.Op == model.OpPID {
			continue
		}
		all = append(all, t)
		if t.Op != model.OpRange {
			timeless = append(timeless, t)
		}
	}
	f, err := model.Filter(in.Samples.Event, all)
	if err != nil {
		return nil, err
	}
	type usersKey struct{ model.Samples }
	out := &answer{users: model.Recall(in.Engine, usersKey{model.Samples{Transforms: model.TransformsOf(all...)}}, func() *threads.Users {
		return threads.UsersOf(in.Profile(), f)
	})}
	w := in.Query.Window
	samples := model.Samples{Event: in.Samples.Event, Transforms: model.TransformsOf(timeless...)}
	sel, err := in.Select(samples)
	if err != nil {
		return nil, err
	}
	if w.Cols <= 0 || w.To <= w.From || sel.Event < 0 {
		return out, nil
	}
	type tracksKey struct {
		model.Samples
		model.Window
	}
	out.unit = sel.EventDef().Unit
	out.tracks = model.Recall(in.Engine, tracksKey{samples, w}, func() *threads.Tracks {
		return threads.TracksOf(sel, profile.Range{From: w.From, To: w.To}, w.Cols)
	})
	for _, t := range out.tracks.Of {
		out.peak = max(out.peak, slices.Max(t.Weight))
	}
	return out, nil
}

func key(u *threads.User) threads.Key { return threads.Key{PID: u.PID, TSO: u.TSO} }

// answer is the latest answer; nil until there is one.
func (s *Screen) answer() *answer { return screen.Part[answer](s.c) }

func (s *Screen) refresh() {
	a := s.answer()
	now := seen{a, s.order, s.c.Filter, s.c.Minimum}
	if a == nil || now == s.seen {
		return
	}
	s.seen, s.rows = now, s.rows[:0]
	us := a.users.Threads
	for i := range us {
		if max(us[i].CPU.Share, us[i].Alloc.Share) >= s.c.Minimum && s.c.Filter.Match(nameOf(&us[i])) {
			s.rows = append(s.rows, i)
		}
	}
	first := func(u *threads.User) uint64 {
		if a.tracks != nil {
			if t := a.tracks.Of[key(u)]; t != nil {
				return t.First
			}
		}
		return ^uint64(0)
	}
	slices.SortStableFunc(s.rows, func(i, j int) int {
		x, y := &us[i], &us[j]
		switch s.order {
		case byAlloc:
			return cmp.Compare(y.Alloc.Share, x.Alloc.Share)
		case byLabel:
			return cmp.Or(cmp.Compare(b2i(x.Label == ""), b2i(y.Label == "")), cmp.Compare(x.Label, y.Label), cmp.Compare(x.TSO, y.TSO))
		case byFirst:
			return cmp.Compare(first(x), first(y))
		}
		return cmp.Compare(y.CPU.Share, x.CPU.Share)
	})
	s.list.N = len(s.rows)
	for k, i := range s.rows {
		if key(&us[i]) == s.cursor {
			s.list.Set(k)
			return
		}
	}
	s.list.Set(s.list.Cursor)
	s.note()
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// row is the thread under the cursor; nil if there is none.
func (s *Screen) row() *threads.User {
	if a := s.answer(); a != nil && s.list.Cursor < len(s.rows) {
		return &a.users.Threads[s.rows[s.list.Cursor]]
	}
	return nil
}

func (s *Screen) note() {
	if r := s.row(); r != nil {
		s.cursor = key(r)
	}
}

// chosen reports whether all screens show only threads of which this is one.
func (s *Screen) chosen(u *threads.User) bool {
	return slices.ContainsFunc(s.c.Applied.All(), func(t model.Transform) bool { return t.Op == model.OpThread && t.ID == u.TSO })
}

// Query implements Screen.
func (s *Screen) Query() model.Query { return s.c.QueryWindow(part{}) }

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.NextPane, keymap.PrevPane, keymap.Zoom:
		return "there is one pane: j k move between threads, h l in time"
	case keymap.Invert:
		return "inverting turns the call tree; " + s.c.Key(screen.Stacks) + " shows it"
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse, keymap.Sandwich:
		return "a thread is no function; enter keeps its samples only"
	case keymap.Open:
		if s.row() == nil {
			return "there is no thread here"
		}
	case keymap.Up, keymap.Down, keymap.Top, keymap.Bottom, keymap.HalfUp, keymap.HalfDown, keymap.PageUp, keymap.PageDown, keymap.Mark, keymap.Sort:
		return ""
	}
	return s.time.Why(a)
}

// Do implements Screen.
func (s *Screen) Do(a keymap.Action) string {
	s.refresh()
	switch {
	case a == keymap.Sort:
		s.order = (s.order + 1) % orders
		s.refresh()
		return "sorted by " + s.order.String()
	case a == keymap.Open:
		u := s.row()
		was := s.chosen(u)
		s.c.Applied.Toggle(model.Transform{Op: model.OpThread, ID: u.TSO})
		if was {
			return "thread " + nameOf(u) + " is no longer chosen"
		}
		return "all screens show thread " + nameOf(u) + "; enter takes it off"
	case a != keymap.Left && a != keymap.Right && screen.MoveList(&s.list, a):
		s.note()
		return ""
	}
	return s.time.Do(a)
}

// Back implements Screen.
func (s *Screen) Back() bool { return s.time.Back() }

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	s.refresh()
	if s.time.Strip.Min.X <= m.X && m.X < s.time.Strip.Max.X && !m.Double {
		s.time.Mouse(m)
	}
	if screen.Inside(s.table, m) && (m.Kind == screen.Press || m.X < s.time.Strip.Min.X) {
		screen.MouseRows(s, &s.list, s.table, m, s.note)
	}
}

// Find implements Screen.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	s.refresh()
	a := s.answer()
	if p.RE == nil || a == nil {
		return false
	}
	return s.list.Find(by, func(i int) bool { return p.RE.MatchString(nameOf(&a.users.Threads[s.rows[i]])) }, s.note)
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject {
	out := screen.Subject{Key: model.NoKey}
	if r := s.row(); r != nil {
		out.Row = strings.Join([]string{format.Share(r.CPU.Share), format.Share(r.Alloc.Share), nameOf(r), fmt.Sprintf("process %d", r.PID)}, "\t")
	}
	return out
}

// Report implements Screen.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	return func(sel *profile.Selection) (printer.Report, error) {
		f := sel.Filter
		f.Event = 0
		return Table{Profile: sel.Profile, Filter: f}, nil
	}, nil
}

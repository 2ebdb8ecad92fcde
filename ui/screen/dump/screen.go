// Package dump is the screen of a thread dump: what every Haskell thread of a process did at a
// moment, and who waited for whom.
package dump

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
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Dump, Tab: "Dump", New: newScreen,
	Off: func(c *screen.Context) string {
		if len(c.Profile.Dumps) == 0 {
			return noDump
		}
		return ""
	},
	First: func(c *screen.Context) bool { return len(c.Profile.Dumps) > 0 && c.Profile.Samples() == 0 },
	Keys: keymap.Screen{
		Help: "thread dump: what each did, its stack, and whom it waited for",
		Does: []keymap.Action{keymap.Sort, keymap.Minimum, keymap.Base, keymap.Only, keymap.FocusExpr},
		Notes: []keymap.Note{
			{Action: keymap.Open, Help: "of a dump: opens a group of equal stacks; on a thread, goes to the one that it waits for"},
			{Action: keymap.Sort, Help: "of a dump: equal stacks together, or one list by id, state or size of the stack"},
		},
	},
}

// Screen is a list of threads, with the stack of the one under the cursor beside it.
type Screen struct {
	c     *screen.Context
	list  widget.List
	stack widget.List
	order order
	open  map[int]bool // groups
	rows  []row
	seen  seen

	cursor  row // under the cursor
	inStack bool
	zoomed  bool
	table   widget.Rect // as last drawn
	frames  widget.Rect
	shown   []threads.Frame // of the thread under the cursor
	of      int             // whose frames are shown; −1 for none
	version int             // of open
	begun   bool            // the cursor has been put on a row
}

type order uint8

// The orders of threads.
const (
	byStack order = iota // groups of equal stacks
	byID
	byState
	bySize
	orders
)

func (o order) String() string {
	return [...]string{"equal stacks", "id", "state", "stack size"}[o]
}

// row is a group of threads, or one thread.
type row struct {
	kind   rowKind
	at     int // index of a deadlock, group or thread in the dump
	member bool
}

type rowKind uint8

const (
	rowThread rowKind = iota
	rowGroup
	rowDeadlock
)

// seen is what rows was made from.
type seen struct {
	a       *answer
	order   order
	filter  screen.Pattern
	version int
}

func newScreen(c *screen.Context) screen.Screen {
	return &Screen{c: c, open: map[int]bool{}, of: -1}
}

type part struct{}

// answer is the dump, with what rows say of threads.
type answer struct {
	dump   *threads.Dump
	places []string        // by thread: where its stack is, as far as sources say
	files  []threads.Frame // by thread: the frame of its place
	texts  []string        // by thread: what a search looks at
	behind [][]int         // by thread: who waits for it
}

// Compute implements model.Part; it gives an *answer.
func (part) Compute(in *model.Input) (any, error) {
	type key struct{ part }
	return model.Recall(in.Engine, key{}, func() *answer {
		a := &answer{dump: dumpOf(in.Profile())}
		if a.dump == nil {
			return a
		}
		n := len(a.dump.Threads)
		a.places, a.files, a.texts, a.behind = make([]string, n), make([]threads.Frame, n), make([]string, n), make([][]int, n)
		known := map[uint32]threads.Frame{} // by leaf: threads with equal stacks are at the same place
		for i := range a.dump.Threads {
			t := &a.dump.Threads[i]
			f, ok := known[t.Node]
			if !ok {
				f = firstPlaced(a.dump.Stack(t))
				known[t.Node] = f
			}
			a.files[i], a.places[i] = f, strings.TrimSpace(f.Name+"  "+place(&f))
			for _, of := range t.For {
				a.behind[of] = append(a.behind[of], i)
			}
			a.texts[i] = strings.Join([]string{name(t), t.State.String(), blockedOn(t), a.places[i]}, " ")
		}
		return a
	}), nil
}

// firstPlaced is the first frame with a source; else the first one.
func firstPlaced(stack []threads.Frame) threads.Frame {
	for _, f := range stack {
		if f.File != "" {
			return f
		}
	}
	if len(stack) > 0 {
		return stack[0]
	}
	return threads.Frame{}
}

func (s *Screen) answer() *answer { return screen.Part[answer](s.c) }

func (s *Screen) dump() *threads.Dump {
	if a := s.answer(); a != nil {
		return a.dump
	}
	return nil
}

func (s *Screen) refresh() {
	a := s.answer()
	now := seen{a, s.order, s.c.Filter, s.version}
	if a == nil || a.dump == nil || now == s.seen {
		return
	}
	s.seen, s.rows = now, s.rows[:0]
	g := a.dump
	shown := func(i int) bool { return s.c.Filter.Match(a.texts[i]) }
	for d := range g.Deadlocks {
		members := slices.DeleteFunc(slices.Clone(g.Deadlocks[d].Threads), func(i int) bool { return !shown(i) })
		if len(members) > 0 {
			s.rows = append(s.rows, row{kind: rowDeadlock, at: d})
		}
		for _, i := range members {
			s.rows = append(s.rows, row{at: i, member: true})
		}
	}
	if s.order == byStack {
		s.groups(g, shown)
	} else {
		s.flat(g, shown)
	}
	s.list.N = len(s.rows)
	s.list.Set(s.list.Cursor)
	if k := slices.Index(s.rows, s.cursor); k >= 0 && s.begun {
		s.list.Set(k)
	}
	s.begun = true
	s.note()
}

// groups lists threads with equal stacks as one row, and those of the groups that are open below it.
func (s *Screen) groups(g *threads.Dump, shown func(int) bool) {
	for n := range g.Groups {
		members := slices.DeleteFunc(slices.Clone(g.Groups[n].Threads), func(i int) bool { return !shown(i) })
		if len(members) == 1 {
			s.rows = append(s.rows, row{at: members[0]})
			continue
		}
		if len(members) == 0 {
			continue
		}
		s.rows = append(s.rows, row{kind: rowGroup, at: n})
		if s.open[n] {
			for _, i := range members {
				s.rows = append(s.rows, row{at: i, member: true})
			}
		}
	}
}

// flat lists each thread.
func (s *Screen) flat(g *threads.Dump, shown func(int) bool) {
	from := len(s.rows)
	for i := range g.Threads {
		if shown(i) {
			s.rows = append(s.rows, row{at: i})
		}
	}
	slices.SortStableFunc(s.rows[from:], func(x, y row) int {
		a, b := &g.Threads[x.at], &g.Threads[y.at]
		switch s.order {
		case byState:
			return cmp.Compare(a.State.String(), b.State.String())
		case bySize:
			return cmp.Compare(b.StackBytes, a.StackBytes)
		}
		return cmp.Compare(a.TSO, b.TSO)
	})
}

// note keeps what is under the cursor, and has its stack shown from the top.
func (s *Screen) note() {
	g := s.dump()
	if g == nil || s.list.Cursor >= len(s.rows) {
		return
	}
	s.cursor = s.rows[s.list.Cursor]
	if of := s.thread(); of != s.of {
		s.of, s.shown, s.stack = of, nil, widget.List{}
		if of >= 0 {
			s.shown = g.Stack(&g.Threads[of])
		}
		s.stack.N = len(s.shown)
	}
}

// thread is the thread under the cursor, of a group its first; −1 if there is none.
func (s *Screen) thread() int {
	g := s.dump()
	if g == nil || s.list.Cursor >= len(s.rows) {
		return -1
	}
	switch r := s.rows[s.list.Cursor]; r.kind {
	case rowGroup:
		return g.Groups[r.at].Threads[0]
	case rowDeadlock:
		return g.Deadlocks[r.at].Threads[0]
	default:
		return r.at
	}
}

// Query implements Screen.
func (s *Screen) Query() model.Query { return s.c.Query(part{}) }

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight,
		keymap.Bookmark, keymap.NextBookmark:
		return "a dump is of one moment"
	case keymap.Invert:
		return "inverting turns the call tree; " + s.c.Key(screen.Stacks) + " shows it"
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse, keymap.Sandwich:
		return "a dump has no samples to narrow; & lists only the threads that match"
	case keymap.Minimum, keymap.Base:
		return "threads of a dump have no shares"
	case keymap.Only, keymap.FocusExpr:
		return "a dump has no samples to narrow; & lists only the threads that match"
	case keymap.Left, keymap.Right:
		if s.inStack {
			return "the stack has nothing to open"
		}
		if s.list.Cursor >= len(s.rows) || s.rows[s.list.Cursor].kind != rowGroup && !s.inGroup() {
			return "only groups of equal stacks open and close"
		}
	case keymap.Open:
		if s.list.Cursor >= len(s.rows) || s.thread() < 0 {
			return "there is no thread here"
		}
		if r := s.rows[s.list.Cursor]; r.kind == rowThread && len(s.dump().Threads[r.at].For) == 0 {
			return "whom it waits for is not known, or it waits for none"
		}
	case keymap.Undo:
		return s.c.WhyNoUndo()
	case keymap.Redo:
		return s.c.WhyNoRedo()
	}
	return ""
}

// inGroup reports whether the row under the cursor is listed below its group.
func (s *Screen) inGroup() bool {
	return s.order == byStack && s.cursor.kind == rowThread && s.cursor.member && s.head() >= 0
}

// head is the row of the group above the cursor that is open; −1 if there is none.
func (s *Screen) head() int {
	for k := s.list.Cursor; k >= 0 && k < len(s.rows); k-- {
		switch r := s.rows[k]; {
		case r.kind == rowGroup:
			return k
		case r.kind == rowDeadlock, !r.member:
			return -1
		}
	}
	return -1
}

// Do implements Screen.
func (s *Screen) Do(a keymap.Action) string {
	s.refresh()
	switch a {
	case keymap.NextPane, keymap.PrevPane:
		s.inStack = !s.inStack
		return ""
	case keymap.Zoom:
		s.zoomed = !s.zoomed
		return ""
	case keymap.Sort:
		s.order = (s.order + 1) % orders
		s.refresh()
		if s.order == byStack {
			return "equal stacks together"
		}
		return "sorted by " + s.order.String()
	case keymap.Left:
		if k := s.head(); k >= 0 {
			s.list.Set(k)
			s.fold(s.rows[k].at, false)
		}
		return ""
	case keymap.Right:
		if r := s.rows[s.list.Cursor]; r.kind == rowGroup {
			s.fold(r.at, true)
		}
		return ""
	case keymap.Open:
		return s.enter()
	}
	if s.inStack {
		screen.MoveList(&s.stack, a)
		return ""
	}
	if screen.MoveList(&s.list, a) {
		s.note()
	}
	return ""
}

// fold opens or closes a group.
func (s *Screen) fold(group int, open bool) {
	s.note()
	s.open[group] = open
	s.version++
	s.refresh()
}

// enter opens or closes a group, or goes to the thread that the one under the cursor waits for.
func (s *Screen) enter() string {
	r := s.rows[s.list.Cursor]
	switch r.kind {
	case rowGroup:
		s.fold(r.at, !s.open[r.at])
		return ""
	case rowDeadlock:
		s.list.Move(1)
		s.note()
		return ""
	}
	g := s.dump()
	from, to := r.at, g.Threads[r.at].For[0]
	if !s.goTo(to) {
		return "thread " + name(&g.Threads[to]) + " is not listed: & and enter lists all"
	}
	t := &g.Threads[from]
	return fmt.Sprintf("%s waits for %s, %s this thread", name(t), object(t.Blocker), by(t.Blocker, t.Holds))
}

// goTo puts the cursor on a thread, and opens the group that it is in.
func (s *Screen) goTo(thread int) bool {
	find := func() bool {
		k := slices.IndexFunc(s.rows, func(r row) bool { return r.kind == rowThread && r.at == thread })
		if k >= 0 {
			s.list.Set(k)
			s.note()
		}
		return k >= 0
	}
	if find() {
		return true
	}
	g := s.dump()
	n := slices.IndexFunc(g.Groups, func(x threads.Group) bool { return slices.Contains(x.Threads, thread) })
	if n < 0 || s.order != byStack {
		return false
	}
	s.fold(n, true)
	return find()
}

// Back implements Screen.
func (s *Screen) Back() bool {
	was := s.zoomed || s.inStack
	s.zoomed, s.inStack = false, false
	return was
}

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	s.refresh()
	switch {
	case screen.Inside(s.table, m):
		s.inStack = s.inStack && m.Kind != screen.Press
		screen.MouseRows(s, &s.list, s.table, m, s.note)
	case screen.Inside(s.frames, m):
		s.inStack = s.inStack || m.Kind == screen.Press
		screen.MouseList(&s.stack, s.frames, m)
	}
}

// Find implements Screen: threads that match, or a function on whose stack.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	s.refresh()
	a := s.answer()
	if p.RE == nil || a == nil || a.dump == nil {
		return false
	}
	return s.list.Find(by, func(k int) bool {
		switch r := s.rows[k]; r.kind {
		case rowThread:
			return p.RE.MatchString(a.texts[r.at])
		case rowGroup:
			return p.RE.MatchString(a.texts[a.dump.Groups[r.at].Threads[0]])
		}
		return false
	}, s.note)
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject {
	out := screen.Subject{Key: model.NoKey}
	g, i := s.dump(), s.thread()
	if i < 0 {
		return out
	}
	t, f := &g.Threads[i], s.answer().files[i]
	if s.inStack && s.stack.Cursor < len(s.shown) {
		f = s.shown[s.stack.Cursor]
	}
	out.Row = strings.Join([]string{name(t), t.State.String(), blockedOn(t), f.Name, place(&f)}, "\t")
	out.Path, out.Line = f.File, int(f.Line)
	return out
}

// Report implements Screen.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	p := s.c.Profile
	return func(*profile.Selection) (printer.Report, error) { return Report{Profile: p}, nil }, nil
}

// some names some threads, and counts the others.
func some(g *threads.Dump, list []int) string {
	var who []string
	for _, n := range list[:min(len(list), standardNames)] {
		who = append(who, name(&g.Threads[n]))
	}
	if rest := len(list) - len(who); rest > 0 {
		who = append(who, fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(who, ", ")
}

// about says in sentences what is known of a thread.
func about(a *answer, i int) []string {
	g := a.dump
	t := &g.Threads[i]
	head := "thread " + name(t) + ": " + t.State.String()
	if on := blockedOn(t); on != "" {
		head += ", waits for " + on
	}
	out := []string{head}
	if len(t.For) > 0 {
		out = append(out, by(t.Blocker, t.Holds)+" "+some(g, t.For))
	}
	if behind := a.behind[i]; len(behind) > 0 {
		out = append(out, format.Plural(uint64(len(behind)), "thread")+" waiting for it: "+some(g, behind))
	}
	also := runsOn(t)
	if t.StackBytes > 0 {
		also = append(also, format.Quantity(t.StackBytes, "bytes")+" of stack")
	}
	if also != nil {
		out = append(out, strings.Join(also, ", "))
	}
	if !t.Stop.Complete() {
		out = append(out, whyCut(t))
	}
	return out
}

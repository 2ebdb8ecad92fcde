package heap

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
)

func loaded(t testing.TB, l *logtest.Log) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// inMode opens a log by ccagent heap --graph in a mode.
func inMode(t testing.TB, m mode) *screentest.Session {
	t.Helper()
	s := screentest.Open(t, Kind, loaded(t, logtest.Retaining()), nil)
	s.Answer()
	for range modes(s.C) {
		if s.Screen.(*Screen).mode() == m {
			return s
		}
		s.Do(keymap.Mode)
	}
	t.Fatalf("there is no mode %s", m)
	return nil
}

func TestModesConform(t *testing.T) {
	for _, m := range []mode{memoryMode, retainedMode} {
		t.Run(m.String(), func(t *testing.T) {
			screentest.Conforms(t, Kind, func() *screentest.Session { return inMode(t, m) })
		})
	}
}

// has checks what is on screen.
func has(t *testing.T, got string, there []string, not ...string) {
	t.Helper()
	for _, want := range there {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, n := range not {
		if strings.Contains(got, n) {
			t.Errorf("%q in\n%s", n, got)
		}
	}
}

// Where memory is: a bar in which the largest part has the most room, what to do, the parts, and what holds them;
// its sums are those of the text.
func TestMemory(t *testing.T) {
	s := inMode(t, memoryMode)
	got := s.Draw(120, 40)
	has(t, got, []string{"[memory]", "RSS 64.0 MiB", "40.0 MiB of 64.0 MiB", "free blocks in megablocks", "62.5%", "not accounted for", "40.0 MiB free in 50", "megablocks held, stacks, files", "prog", "reader", "4.00 KiB"})
	bar := strings.Split(got, "\n")[2]
	if a, b := strings.Count(bar, "A"), strings.Count(bar, "B"); a < 2*b-2 || a > 2*b+2 {
		t.Errorf("40 and 20 MiB have %d and %d columns: %s", a, b, bar)
	}
	has(t, s.Draw(80, 24), []string{"40.0 MiB of 64.0 MiB", "what holds megablocks that have free blocks, 50:"})
	if why := s.Screen.Why(keymap.Brush); why == "" {
		t.Error("a moment can be brushed")
	}
	if why := s.Screen.Why(keymap.Open); !strings.Contains(why, "has no source") {
		t.Errorf("a row of memory cannot be opened because %q", why)
	}
	text(t, s, "What to do")
}

// text checks the text of what is on screen.
func text(t *testing.T, s *screentest.Session, want string) {
	t.Helper()
	report, err := s.Screen.Report()
	if err != nil {
		t.Fatal(err)
	}
	r, err := report(nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := r.Text(&b, printer.Options{Width: 100}); err != nil || !strings.Contains(b.String(), want) {
		t.Errorf("%v: no %q in\n%s", err, want, b.String())
	}
}

// What keeps what alive: a tree whose branches close and open, the path to the row under the cursor, and its source.
func TestRetained(t *testing.T) {
	s := inMode(t, retainedMode)
	got := s.Draw(200, 40)
	has(t, got, []string{"[retained]", "98.7% of 1.17 KiB would be freed without thread 7 ?reader?; the largest part of that: 960 B in 40 closures, Main.Node", "this is a root", "thunk Main.main", "a note"})
	s.Do(keymap.Down, keymap.Left)
	has(t, s.Draw(120, 40), []string{"Main.Node", "the census has no path to it"}, "thunk Main.main")
	s.Do(keymap.Open, keymap.Down)
	has(t, s.Draw(200, 40), []string{"to the one that retains most of its kind, 224 B:", "Main.Node  x 40"})
	s.Do(keymap.Open)
	if s.C.Goto != screen.Source || s.C.Line != 3 || s.C.File == 0 {
		t.Errorf("goes to %q, file %d, line %d", s.C.Goto, s.C.File, s.C.Line)
	}
	if got := s.Screen.Subject(); got.Line != 3 || !strings.Contains(got.Row, "224 B") {
		t.Errorf("the subject is %+v", got)
	}
	s.Do(keymap.Left, keymap.Left)
	if v := &s.Screen.(*Screen).table; v.row != 1 || len(v.rows) != 2 {
		t.Errorf("left of a leaf, and again, leaves the cursor on row %d of %d", v.row, len(v.rows))
	}
	s.Draw(80, 24)
	s.Do(keymap.NextPane, keymap.Down)
	if v := &s.Screen.(*Screen).table; !v.inSide || v.row != 1 {
		t.Errorf("down beside the list leaves it, or moves the list's cursor to %d", v.row)
	}
	if s.Draw(80, 24); !s.Screen.Back() || s.Screen.(*Screen).table.inSide {
		t.Error("back does not go back to the list")
	}
	text(t, s, "what keeps it alive")
}

// Two censuses that are compared begin with what keeps growth alive.
func TestGrowthMode(t *testing.T) {
	branch := func(retained uint64) eventlog.HeapBranch {
		return eventlog.HeapBranch{Root: 1, Count: retained / 10, Bytes: retained, Retained: retained}
	}
	before, after := graphOf(t, branch(100)), graphOf(t, branch(700))
	s := screentest.Open(t, Kind, after, &screen.Compared{A: []*profile.Profile{before}, B: []*profile.Profile{after}, NamesA: []string{"a"}, NamesB: []string{"b"}})
	has(t, s.Draw(200, 40), []string{"[growth]", "+600 B more is kept alive by thread 1 ?t1?; the largest part of that: +600 B, +60 closures"})
	text(t, s, "what keeps the growth alive")
	if !Kind.First(s.C) {
		t.Error("censuses that are compared do not begin with the heap")
	}
}

// Of two logs that are compared, the bands that differ are a mode, with which the screen begins where there are no graphs. They are
// divided as the bands of one log are, and open to the source while B is shown.
func TestChangesMode(t *testing.T) {
	before, after := loaded(t, logtest.DividedUntil(1)), loaded(t, logtest.Divided())
	both := &screen.Compared{A: []*profile.Profile{before}, B: []*profile.Profile{after}, NamesA: []string{"a.eventlog"}, NamesB: []string{"x.eventlog"}, Shown: screen.SideB}
	start := func(shown *profile.Profile) *screentest.Session { return screentest.Open(t, Kind, shown, both) }
	s := start(after)
	want := BandChanges{A: before, B: after, Level: closures.BySpan}
	a, b, why := want.sides()
	if why != "" {
		t.Fatal(why)
	}
	rows := want.of(a, b)
	got := s.Draw(160, 40)
	has(t, got, []string{"[changes]", "by source", "A a.eventlog", "B x.eventlog", rows[0].title, format.Signed(rows[0].bytes()), "the largest is compared"})
	text(t, s, "difference     closures  band")
	s.Do(keymap.Collapse)
	has(t, s.Draw(160, 40), []string{"by binding"})
	for i := range rows {
		if rows[i].at.FileID == 0 {
			continue
		}
		s = start(after)
		s.Answer()
		for range i {
			s.Do(keymap.Down)
		}
		s.Do(keymap.Open)
		if s.C.Goto != screen.Source || s.C.File != rows[i].at.FileID {
			t.Errorf("%s goes to %q, file %d", rows[i].title, s.C.Goto, s.C.File)
		}
		both.Shown = screen.SideA
		s = start(before)
		s.Answer()
		for range i {
			s.Do(keymap.Down)
		}
		if why := s.Screen.Why(keymap.Open); why == "" {
			t.Error("a file of B is opened in A")
		}
		both.Shown = screen.SideB
		break
	}
	bare := screentest.Open(t, Kind, loaded(t, oneCensus()), &screen.Compared{A: []*profile.Profile{loaded(t, oneCensus())}, B: []*profile.Profile{loaded(t, oneCensus())}, NamesA: []string{"a"}, NamesB: []string{"b"}})
	has(t, bare.Draw(120, 40), []string{"no band differs"})
	if why := bare.Screen.Why(keymap.Collapse); !strings.Contains(why, "by these bands alone") {
		t.Errorf("bands of which nothing else is known are not divided because %q", why)
	}
	screentest.Conforms(t, Kind, func() *screentest.Session { return start(after) })
}

// One census is drawn as a table: nothing is known of other moments. Pauses for collections stand below it.
func TestOneCensus(t *testing.T) {
	s := screentest.Open(t, Kind, loaded(t, oneCensus()), nil)
	has(t, s.Draw(80, 24), []string{"one census, by closure type", "75.0%", "25.0%", "main:Main.Node"}, "gc pauses", "growth")
	if s.Screen.Why(keymap.RangeFrom) == "" {
		t.Error("one census has a range")
	}
	collected := oneCensus()
	collected.WriteOn(2e9, 0, &eventlog.GCStart{})
	collected.WriteOn(2e9+3e6, 0, &eventlog.GCEnd{})
	s = screentest.Open(t, Kind, loaded(t, collected), nil)
	has(t, s.Draw(80, 24), []string{"one census, by closure type", "75.0%", "main:Main.Node", "gc pauses", "stood still"}, "growth")
}

// oneCensus is a log with a heap profile of one census.
func oneCensus() *logtest.Log {
	l := logtest.New()
	l.Write(2, &eventlog.HeapProfBegin{PeriodNs: 1e9, Breakdown: eventlog.BreakdownClosureType})
	l.Write(1e9, &eventlog.HeapSampleBegin{Era: 1})
	l.Write(1e9, &eventlog.HeapSampleString{Bytes: 3000, Label: "main:Main.Node"})
	l.Write(1e9, &eventlog.HeapSampleString{Bytes: 1000, Label: "STACK"})
	l.Write(1e9, &eventlog.HeapSampleEnd{Era: 1})
	return l
}

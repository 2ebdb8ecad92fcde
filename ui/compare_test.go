package ui

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/diff"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/golden"
)

// against is two builds of a program in n runs each; see logtest.Run.
func against(t testing.TB, n int) *Against {
	t.Helper()
	source := func(name string, number uint64, changed bool) Source {
		log := logtest.Run(number, changed).End()
		return Source{Name: name, Load: func(progress func(int64, int64)) (*profile.Profile, error) {
			progress(1, 2)
			return profile.Load(bytes.NewReader(log))
		}}
	}
	g := &Against{}
	for i := range n {
		g.A = append(g.A, source(fmt.Sprintf("old%d.eventlog", i+1), uint64(i), false))
		g.B = append(g.B, source(fmt.Sprintf("new%d.eventlog", i+1), uint64(100+i), true))
	}
	return g
}

func startDiff(t testing.TB, g *Against, w, h int) *session {
	t.Helper()
	app, err := newApp(g.B[0], Options{Theme: "plain", ASCII: true, Against: g})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, app: app}
	s.run(app.Init())
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	return s
}

func TestDiffScreens(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}, {60, 12}, {20, 5}} {
		for _, c := range []struct {
			name string
			n    int
			keys []string
		}{
			{"diff", 5, nil},
			{"diff-all-spans", 5, []string{"Z", "l", "j", "%"}},
			{"diff-single", 1, nil},
			{"diffflame", 1, []string{"8", "j"}},
		} {
			s := startDiff(t, against(t, c.n), size[0], size[1])
			s.keys(c.keys...)
			checkSize(t, s, size[0], size[1])
			golden.Check(t, fmt.Sprintf("%s-%dx%d.txt", c.name, size[0], size[1]), trimmed(s.screen()))
		}
	}
}

func TestDiffTransforms(t *testing.T) {
	s := startDiff(t, against(t, 5), 120, 40)
	s.line("Work.heavy", "slower", "0.008")
	s.line("New.added", "only in B")
	s.hasNot("Work.light")
	s.keys("Z")
	s.line("Work.light", "~")
	s.keys("F", "'^Work", "enter")
	s.hasNot("(GC)")
	s.line("Work.light", "~")
	s.keys("u")
	s.line("(GC)", "~")
	s.keys("/", "'light", "enter", "d")
	s.has("drop Work.light")
	if l := s.line("Work.heavy"); !strings.Contains(l, "slower") {
		t.Errorf("dropping light changed heavy: %q", l)
	}
	s.line("drop Work.light", "281 of 323")
	s.keys("u", "h")
	s.line("by file")
	s.keys("h", "h", "h")
	s.has("packages are the coarsest level")
	s.keys("l", "l", "l", "M")
	s.has("by binding: only")
	s.keys("M")
	s.line("Main.main", "slower") // it calls all the others
	s.keys("s")
	s.has("sorted by difference")
	s.keys("&", "'zzz", "enter")
	s.has("no element matches & zzz")
	s.keys("&")
	for range 4 {
		s.keys("backspace")
	}
	s.keys("enter", "1")
	s.has("timeline")
	s.keys("`")
	s.has("diff by binding")
}

// A switches all screens between the first log of each side, with the transforms; the head and
// the counts say which is shown, and focusing says which side has the element.
func TestOtherSide(t *testing.T) {
	s := startDiff(t, against(t, 5), 120, 40)
	s.line("B new1.eventlog")
	s.line("B: 323 of 323 samples kept")
	s.keys("1", "&", "'added", "enter")
	s.has("added:30")
	s.keys("A")
	s.line("A old1.eventlog")
	s.has("all screens show A: old1.eventlog")
	s.hasNot("added:30")
	s.keys("&", "backspace", "backspace", "backspace", "backspace", "backspace", "enter", "6", "/", "'added", "enter", "f")
	s.has("focus New.added: it is in B only")
	s.line("A: 0 of")
	s.keys("A")
	s.line("focus New.added", "B: ")
	s.hasNot("B: 0 of")
	s.keys("u", "g", "f")
	s.has("in A and in B")
	s = start(t, s.app.c.Profile, 120, 40, Options{ASCII: true})
	s.keys("A")
	s.has("ccview diff A B compares two")
}

func TestOneLogHasNoDiff(t *testing.T) {
	s := startDiff(t, against(t, 1), 120, 40)
	s.has("n=1: no test")
	s.hasNot("p=")
	s = start(t, s.app.c.Profile, 120, 40, Options{ASCII: true})
	s.keys("6")
	s.has("ccview diff A B compares two")
	s.has("timeline")
}

// Logs that cannot be compared say why, and the other screens work.
func TestDiffOfDifferentUnits(t *testing.T) {
	g := against(t, 1)
	g.Options = diff.Options{}
	g.A[0].Load = func(func(int64, int64)) (*profile.Profile, error) {
		l := logtest.Run(1, false)
		return profile.Load(bytes.NewReader(bytes.Replace(l.End(), []byte("ns"), []byte("us"), -1)))
	}
	s := startDiff(t, g, 120, 40)
	s.has("compare runs: old1.eventlog has unit")
	s.keys("1")
	s.has("hot  by share")
}

func TestDiffOfUnreadableLog(t *testing.T) {
	g := against(t, 2)
	g.A[1].Load = func(func(int64, int64)) (*profile.Profile, error) { return nil, errors.New("no such thing") }
	s := startDiff(t, g, 120, 40)
	var which *LogError
	if !errors.As(s.app.err, &which) || which.Name != "old2.eventlog" {
		t.Errorf("error %v does not name the log", s.app.err)
	}
}

func TestRandomKeysOnDiff(t *testing.T) {
	keys := everyKey()
	for i, size := range [][2]int{{80, 24}, {140, 40}, {20, 5}, {1, 1}} {
		rnd := rand.New(rand.NewPCG(uint64(i), 43))
		s := startDiff(t, against(t, 1+i%2), size[0], size[1])
		for range 60 {
			s.keys(keys[rnd.IntN(len(keys))])
			checkSize(t, s, size[0], size[1])
		}
	}
}

// census is a log of what keeps what alive, without samples.
func census() []byte {
	l := logtest.New()
	for _, e := range []eventlog.Event{
		&eventlog.HeapGraph{PID: 1, Closures: 1, Bytes: 16, Threads: 1},
		&eventlog.HeapRoot{ID: 1, Kind: eventlog.HeapRootThread, TSO: 7, Label: "reader", Retained: 16},
		&eventlog.HeapBranch{Count: 1, Retained: 16},
		&eventlog.HeapBranch{Root: 1, Count: 1, Retained: 16},
	} {
		l.Write(1, e)
	}
	return l.End()
}

// Censuses of the heap have no samples: the screens that compare those say so, and the heap's comes first.
func TestDiffOfCensuses(t *testing.T) {
	g := against(t, 1)
	census := func(func(int64, int64)) (*profile.Profile, error) { return profile.Load(bytes.NewReader(census())) }
	g.A[0].Load, g.B[0].Load = census, census
	s := startDiff(t, g, 120, 40)
	s.has("[growth]")
	for _, key := range []string{"6", "8"} {
		s.keys(key)
		s.has("these logs have no samples to compare; 5 shows the heap")
		s.has("[growth]")
	}
}

// On a census's log the key that changes modes is the heap's, and no other screen's.
func TestModesOfACensus(t *testing.T) {
	p, err := profile.Load(bytes.NewReader(census()))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, p, 120, 40, Options{ASCII: true})
	s.keys("1", "M")
	s.has("M: this screen has no modes; 5 has")
	s.keys("4", "M")
	s.has("the log has no samples")
}

package ui

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"ccagent/eventlog"
	"ccagent/profile/columns"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/golden"
)

func TestHeapScreens(t *testing.T) {
	hT, hc, none := fixture.Recorded(t, "bands-hT"), fixture.Recorded(t, "bands-hc"), fixture.Profile(t, fixture.Options{Samples: 300})
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}, {60, 12}, {20, 5}} {
		s := start(t, hT, size[0], size[1], Options{ASCII: true})
		golden.Check(t, fmt.Sprintf("heap-%dx%d.txt", size[0], size[1]), trimmed(s.screen()))
		s = start(t, hc, size[0], size[1], Options{ASCII: true})
		s.keys("enter") // one band alone
		golden.Check(t, fmt.Sprintf("heap-band-%dx%d.txt", size[0], size[1]), trimmed(s.screen()))
	}
	s := start(t, hT, 120, 40, Options{ASCII: true})
	s.keys("1", "tab", "tab", "l", "l", "l", "l", "l", "l", "l", "l", "l")
	golden.Check(t, "rts-timeline-120x40.txt", trimmed(s.screen()))
	s = start(t, none, 120, 40, Options{ASCII: true})
	s.keys("5")
	golden.Check(t, "heap-none-120x40.txt", trimmed(s.screen()))
	s = start(t, hT, 80, 24, Options{Theme: "dark"})
	golden.Check(t, "heap-dark.ansi", s.app.View().Content+"\n")
}

// A log of a run-time system has no samples: its screen is that of the heap.
func TestHeapKeys(t *testing.T) {
	s := start(t, fixture.Recorded(t, "bands-hT"), 120, 40, Options{ASCII: true})
	s.has("heap by closure type")
	s.has("GHC-9.0.2")
	w := &s.app.c.Window
	// The cursor's time decides the figures, the mark where growth is measured from.
	first := s.line(" THUNK")
	for range w.Cols / 2 {
		s.keys("l")
	}
	if l := s.line(" THUNK"); l == first || !strings.Contains(l, "MiB") {
		t.Errorf("at the middle THUNK is %q, at the beginning %q", l, first)
	}
	s.keys("v")
	s.has("growth is measured from here")
	if l := s.line(" THUNK"); !strings.Contains(l, " 0 ") {
		t.Errorf("on the mark there is growth: %q", l)
	}
	for range w.Cols / 3 {
		s.keys("l")
	}
	if l := s.line(" THUNK"); !strings.Contains(l, "KiB") {
		t.Errorf("no growth since the mark: %q", l)
	}
	s.keys("s", "s")
	s.has("sorted by growth")
	s.keys("/", "'types.i#", "enter")
	if l := s.line("GHC.Types.I#"); !strings.Contains(l, ">B") {
		t.Errorf("the search did not select: %q", l)
	}
	s.keys("enter")
	s.has("heap by closure type: ghc-prim:GHC.Types.I#")
	s.keys("esc")
	s.hasNot("heap by closure type: ")
	s.keys("&", "'stack", "enter")
	s.hasNot("GHC.Types.I#")
	s.has("STACK")
	// The range holds for every screen; what needs stacks says that there are none.
	s.keys("[")
	if _, ok := s.app.c.Applied.Range(); !ok {
		t.Error("[ set no range")
	}
	s.keys("f")
	s.has("the heap has no stacks to narrow")
	s.keys("z")
	s.hasNot("gc pauses")
	s.keys("esc", "1")
	s.has("timeline")
	s.has("a log without samples")
}

func TestHeapMouse(t *testing.T) {
	s := start(t, fixture.Recorded(t, "bands-hc"), 120, 40, Options{ASCII: true})
	s.send(tea.MouseClickMsg{X: 40, Y: 8, Button: tea.MouseLeft})
	s.send(tea.MouseMotionMsg{X: 60, Y: 8, Button: tea.MouseLeft})
	s.send(tea.MouseReleaseMsg{X: 60, Y: 8, Button: tea.MouseLeft})
	if _, ok := s.app.c.Applied.Range(); !ok {
		t.Error("dragging over the chart chose no range")
	}
	s.send(tea.MouseWheelMsg{X: 50, Y: 8, Button: tea.MouseWheelUp})
	if w := &s.app.c.Window; w.To-w.From >= s.app.c.Profile.Duration {
		t.Error("the wheel over the chart does not zoom")
	}
	for i, l := range strings.Split(s.screen(), "\n") {
		if strings.Contains(l, "SYSTEM.PINNED") {
			s.send(tea.MouseClickMsg{X: 12, Y: i, Button: tea.MouseLeft})
		}
	}
	if l := s.line("SYSTEM.PINNED"); !strings.HasPrefix(l, "|>") {
		t.Errorf("a click did not select: %q", l)
	}
}

func TestRandomKeysOnHeap(t *testing.T) {
	keys := everyKey()
	for i, size := range [][2]int{{80, 24}, {120, 40}, {20, 5}, {1, 1}, {300, 3}, {3, 100}} {
		name := []string{"bands-hT", "bands-hc"}[i%2]
		rnd := rand.New(rand.NewPCG(uint64(i), 44))
		s := start(t, fixture.Recorded(t, name), size[0], size[1], Options{ASCII: i%2 == 0})
		for range 60 {
			if rnd.IntN(12) == 0 {
				s.keys("esc", "5")
			}
			s.keys(keys[rnd.IntN(len(keys))])
			checkSize(t, s, size[0], size[1])
		}
	}
}

// Where collections were not looked at, or not all the time, the screen says so.
func TestUnwatchedCollections(t *testing.T) {
	p := fixture.Profile(t, small)
	p.RTSLog.Probes = []eventlog.RTSProbes{{Group: "gc", Problem: "the run-time system has no symbol table"}}
	s := start(t, p, 120, 40, Options{ASCII: true})
	s.keys("5")
	s.has("collections were not looked at: the run-time")
	p.HeapProfiles = nil
	s = start(t, p, 120, 40, Options{ASCII: true})
	s.keys("5")
	s.has("nor can a recording have one")
	p.RTSLog.Probes = []eventlog.RTSProbes{{Group: "gc", OutNs: p.Duration / 2}}
	s = start(t, p, 120, 40, Options{ASCII: true})
	s.keys("5")
	s.has("no collection was seen in this time")
	p.GCs = []columns.GC{{Start: p.Duration / 8, End: p.Duration / 4}}
	s = start(t, p, 120, 40, Options{ASCII: true})
	s.keys("5")
	s.has("stood still 25.0% of 6s watched")
	s.keys("+")
	s.has("not all of it was watched")
}

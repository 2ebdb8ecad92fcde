package heap

import (
	"strings"
	"testing"

	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
)

func open(t testing.TB) *screentest.Session {
	return screentest.Open(t, Kind, fixture.Recorded(t, "bands-hT"), nil)
}

func TestConforms(t *testing.T) {
	screentest.Conforms(t, Kind, func() *screentest.Session { return open(t) })
}

// Bands stand below the chart if there is room, pauses beside them if that is wide.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		w, h          int
		bands, pauses bool
	}{{200, 60, true, true}, {120, 40, true, true}, {80, 24, true, true}, {60, 12, false, false}, {20, 5, false, false}} {
		got := open(t).Draw(c.w, c.h)
		for what, want := range map[string]bool{" bands ": c.bands, " gc pauses ": c.pauses} {
			if strings.Contains(got, what) != want {
				t.Errorf("%dx%d: %q is there: %v, want %v\n%s", c.w, c.h, what, !want, want, got)
			}
		}
	}
}

// The window and the only band shown decide what is asked.
func TestQuery(t *testing.T) {
	s := open(t)
	s.Answer()
	if q := s.Screen.Query(); q.Window != s.C.Window.Window || q.Part != (part{}) {
		t.Errorf("asks %+v", q)
	}
	s.Do(keymap.Top, keymap.Open)
	if q := s.Screen.Query(); q.Part != (part{Band: 1}) {
		t.Errorf("of one band asks %+v", q)
	}
	if !s.Screen.Back() || s.Screen.Query().Part != (part{}) {
		t.Errorf("back leaves %+v", s.Screen.Query())
	}
}

// A log without samples begins with this screen; one with samples does not.
func TestFirst(t *testing.T) {
	if !Kind.First(open(t).C) {
		t.Error("a run-time system's log does not begin with the heap")
	}
	if Kind.First(screentest.Open(t, Kind, fixture.Profile(t, fixture.Options{Samples: 100}), nil).C) {
		t.Error("a log with samples begins with the heap")
	}
}

// Bands stack up to the sizes of the series, and the rest is marked as such.
func TestCompute(t *testing.T) {
	s := open(t)
	s.Answer()
	h := s.Screen.(*Screen).heap()
	if h == nil || len(h.Names) != len(h.Series.Rows) || h.What != "closure type" {
		t.Fatalf("the answer is %+v", h)
	}
	for x, total := range h.Series.Total {
		sum := h.Series.Other[x]
		for i := range h.Series.Rows {
			sum += h.At(i)[x]
		}
		if sum != total {
			t.Errorf("column %d: bands sum to %d of %d bytes", x, sum, total)
		}
	}
}

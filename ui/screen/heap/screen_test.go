package heap

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/printer"
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

// Bands of which a random part was counted have intervals: on screen, as text and in JSON.
func TestDrawnBands(t *testing.T) {
	p, err := profile.Load(bytes.NewReader(logtest.Drawn().End()))
	if err != nil {
		t.Fatal(err)
	}
	s := screentest.Open(t, Kind, p, nil)
	if got := s.Draw(120, 40); !strings.Contains(got, "~300B") {
		t.Errorf("the screen has no interval\n%s", got)
	}
	for _, to := range []uint64{0, 15e8} {
		var text, doc strings.Builder
		r := Report{Profile: p, Range: profile.Range{To: to}}
		if err := r.Text(&text, printer.Options{Width: 100}); err != nil {
			t.Fatal(err)
		}
		if err := r.JSON(&doc, printer.Options{}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"±", "64 of 400 megablocks", "95 of 100"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("the text to %d has no %q\n%s", to, want, text.String())
			}
		}
		if to == 0 && !strings.Contains(text.String(), "±500 B") || to > 0 && !strings.Contains(text.String(), " 300 B") {
			t.Errorf("the text to %d has not the interval\n%s", to, text.String())
		}
		for _, want := range []string{`"margin_bytes"`, `"megablocks": 400`, `"counted": 64`} {
			if !strings.Contains(doc.String(), want) {
				t.Errorf("the JSON to %d has no %q\n%s", to, want, doc.String())
			}
		}
	}
}

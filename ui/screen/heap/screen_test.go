package heap

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/eventlog"
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

// Bands stand below the chart if there is room, pauses beside them if that is wide, else as a line at their foot, which
// leaves room for the bands' names.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		w, h                int
		bands, pauses, line bool
	}{{200, 60, true, true, false}, {120, 40, true, true, false}, {80, 24, true, false, true}, {60, 12, false, false, false}, {20, 5, false, false, false}} {
		got := open(t).Draw(c.w, c.h)
		for what, want := range map[string]bool{" bands ": c.bands, " gc pauses ": c.pauses, "gc pauses: 87, 305ms in all, longest 54.8ms": c.line, "ghc-prim:GHC.Types.I#": c.bands, "gen 1, copied 2.1M, live": c.pauses} {
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

// At first the cursor is on the largest census, and growth is counted from the first one on screen, which marks show. A window that
// begins between two censuses begins with what the earlier one counted, and so it is where none lies in it.
func TestBetweenCensuses(t *testing.T) {
	s := screentest.Open(t, Kind, loaded(t, logtest.Growing()), nil)
	got := s.Draw(120, 40)
	h, w := s.Screen.(*Screen).heap(), &s.C.Window
	if at := h.Series.Total[w.Cursor]; at != h.Series.Peak || !h.Series.Taken[w.Cursor] || h.First() == 0 {
		t.Errorf("the cursor is on %d bytes, the peak is %d; the heap is known from column %d", at, h.Series.Peak, h.First())
	}
	for i := range h.Names {
		if got, want := h.Growth(i, s.Screen.(*Screen).markColumn(), w.Cursor), int64(h.At(i)[w.Cursor])-int64(h.At(i)[h.First()]); got != want {
			t.Errorf("%s has grown by %d, want %d", h.Names[i], got, want)
		}
	}
	marks := ""
	for _, line := range strings.Split(got, "\n") {
		if strings.Contains(line, " census ") || strings.HasPrefix(strings.TrimLeft(line, "|│"), "census ") {
			marks = line
		}
	}
	if n := strings.Count(strings.Trim(marks, "|"), "|"); n != h.Series.Censuses {
		t.Errorf("%d marks of %d censuses: %q", n, h.Series.Censuses, marks)
	}
	before := h.Series.Total[w.Cursor]
	for range 12 {
		s.Do(keymap.ZoomIn)
		s.Draw(120, 40)
	}
	h = s.Screen.(*Screen).heap()
	if h.Series.Censuses > 1 || h.First() != 0 || h.Series.Total[w.Cursor] == 0 || h.Series.Total[w.Cursor] > before {
		t.Errorf("zoomed in, %d censuses, the heap is known from column %d, and %d bytes at the cursor (%d before)", h.Series.Censuses, h.First(), h.Series.Total[w.Cursor], before)
	}
}

// What is to be known of figures stands beside them: that a part was counted, or garbage too.
func TestNotesOfCensuses(t *testing.T) {
	s := screentest.Open(t, Kind, loaded(t, logtest.Drawn()), nil)
	has(t, s.Draw(120, 40), []string{"a random part was counted", "95 of 100"})
	rest := oneCensus()
	rest.Write(2e9, &eventlog.HeapCensus{PID: 1, AtRest: true})
	rest.Write(2e9, &eventlog.HeapSampleBegin{Era: 2})
	rest.Write(2e9, &eventlog.HeapSampleString{Bytes: 3000, Label: "main:Main.Node"})
	rest.Write(2e9, &eventlog.HeapSampleEnd{Era: 2})
	s = screentest.Open(t, Kind, loaded(t, rest), nil)
	has(t, s.Draw(120, 40), []string{"The program was counted where it stood, not at the end of a collection"})
}

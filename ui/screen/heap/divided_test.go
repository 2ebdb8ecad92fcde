package heap

import (
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
)

func divided(t testing.TB) *screentest.Session {
	return screentest.Open(t, Kind, loaded(t, logtest.Divided()), nil)
}

func TestDividedConforms(t *testing.T) {
	screentest.Conforms(t, Kind, func() *screentest.Session { return divided(t) })
}

// A band by closure type opens to where its closures are written, and that to the source.
func TestBandsByTypeThenSource(t *testing.T) {
	s := divided(t)
	has(t, s.Draw(120, 40), []string{"heap by closure type", "THUNK_1_0"}, "thunk Main.main")
	h := s.Screen.(*Screen)
	h.Find(&screen.Pattern{RE: nil}, 1)
	for h.band != "THUNK_1_0" {
		s.Do(keymap.Down)
	}
	s.Do(keymap.Open)
	has(t, s.Draw(120, 40), []string{"heap by source: THUNK_1_0", "thunk Main.main  Main.hs:3:8"}, "STACK", "(stacks)")
	s.Do(keymap.Open)
	if s.C.Goto != screen.Source || s.C.Line != 3 {
		t.Errorf("opening it goes to %q, line %d", s.C.Goto, s.C.Line)
	}
	s.C.Goto = ""
	if !s.Screen.Back() {
		t.Error("there is no way back")
	}
	has(t, s.Draw(120, 40), []string{"heap by closure type", "STACK"})
	if h.band != "THUNK_1_0" {
		t.Errorf("the cursor is on %q", h.band)
	}
	for _, want := range []string{"values of data types", "(stacks)", "thunk Main.main", "src/Main.hs", "module", "package", "closure type"} {
		s.Do(keymap.Collapse)
		has(t, s.Draw(120, 40), []string{want})
	}
}

// The report says by how much the code of a line has grown.
func TestGrowthBySource(t *testing.T) {
	r := Report{Profile: loaded(t, logtest.Divided()), Level: closures.BySpan}
	var text, doc strings.Builder
	if err := r.Text(&text, printer.Options{Width: 120}); err != nil {
		t.Fatal(err)
	}
	has(t, text.String(), []string{"heap by source", "+3.12 KiB", "+80    2/2  thunk Main.main  Main.hs:3:8"})
	r.Band, r.Range = "thunk", profile.Range{From: 15e8}
	if err := r.JSON(&doc, printer.Options{}); err != nil {
		t.Fatal(err)
	}
	has(t, doc.String(), []string{`"source": "src/Main.hs:3:8-3:9"`, `"growth_bytes": 1600`, `"growth_closures": 40`, `"breakdown": "source"`}, "STACK", "stacks")
	r = Report{Profile: loaded(t, logtest.Growing()), Level: closures.ByModule}
	text.Reset()
	if err := r.Text(&text, printer.Options{Width: 120}); err != nil {
		t.Fatal(err)
	}
	has(t, text.String(), []string{"by their own bands alone"})
}

// What is allocated and what of it survives are a mode of the screen, and a report.
func TestFatesShown(t *testing.T) {
	s := divided(t)
	s.Answer()
	for s.Screen.(*Screen).mode() != allocatedMode {
		s.Do(keymap.Mode)
	}
	has(t, s.Draw(140, 40), []string{"[allocated]", "781 KiB were allocated in small objects, and 3.12 KiB more is live", "Main.Node", "none", "thunk Main.main  Main.hs:3:8", "2 sampled blocks"})
	var text, doc strings.Builder
	r := FatesReport{Profile: s.C.Profile}
	if err := r.Text(&text, printer.Options{Width: 140}); err != nil {
		t.Fatal(err)
	}
	has(t, text.String(), []string{"allocated, then retained", "what survives", "+3.12 KiB"})
	if err := r.JSON(&doc, printer.Options{}); err != nil {
		t.Fatal(err)
	}
	has(t, doc.String(), []string{`"problem": null`, `"growth_bytes": 3200`, `"survives": 0.008`, `"live_bytes": 4800`})
	if err := (FatesReport{Profile: loaded(t, logtest.Growing())}).Text(&text, printer.Options{Width: 140}); err != nil {
		t.Fatal(err)
	}
	screentest.Conforms(t, Kind, func() *screentest.Session {
		s := divided(t)
		s.Answer()
		for s.Screen.(*Screen).mode() != allocatedMode {
			s.Do(keymap.Mode)
		}
		return s
	})
}

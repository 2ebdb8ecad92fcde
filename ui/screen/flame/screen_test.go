package flame

import (
	"strings"
	"testing"

	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/screen"
)

func open(t testing.TB) *screentest.Session {
	return screentest.Open(t, Kind, fixture.Profile(t, fixture.Options{Samples: 4000}), nil)
}

func TestConforms(t *testing.T) {
	screentest.Conforms(t, Kind, func() *screentest.Session { return open(t) })
}

// The graph stands over the tree; below the smallest terminal the tree is alone.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		w, h        int
		graph, bars bool
	}{{200, 60, true, true}, {120, 40, true, true}, {80, 24, true, true}, {60, 12, false, false}, {20, 5, false, false}} {
		got := open(t).Draw(c.w, c.h)
		for title, want := range map[string]bool{"flame graph": c.graph, "call tree": true, "#self": c.bars} {
			if strings.Contains(got, title) != want {
				t.Errorf("%dx%d: %q is there: %v, want %v\n%s", c.w, c.h, title, !want, want, got)
			}
		}
	}
}

// Direction and sandwich are parts of the query.
func TestQuery(t *testing.T) {
	s := open(t)
	s.Answer()
	seen := map[any]bool{}
	for _, want := range []part{{}, {invert: true}, {sandwich: screen.Function{Name: "Physics.step", Module: "Physics", Package: "main"}}} {
		s.C.Invert, s.C.Sandwich = want.invert, want.sandwich
		q := s.Screen.Query()
		if q.Part != want || seen[q] {
			t.Errorf("asks %+v, want %+v", q.Part, want)
		}
		seen[q] = true
	}
}

// A sandwich has the function's callers and callees; leaving it gives the tree back.
func TestSandwich(t *testing.T) {
	s := open(t)
	before := s.Draw(120, 40)
	for range 50 {
		if s.Screen.Subject().Name == "Physics.step" {
			break
		}
		s.Do(keymap.Right)
	}
	s.Do(keymap.Sandwich)
	got := s.Draw(120, 40)
	for _, want := range []string{"sandwich of Physics.step", "callers", "callees", "Main.simulate"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if !s.Screen.Back() || strings.Contains(s.Draw(120, 40), "sandwich") || !strings.Contains(before, "call tree") {
		t.Errorf("the sandwich stays:\n%s", s.Draw(120, 40))
	}
}

// Turning the tree and turning it back computes nothing anew.
func TestTreesAreRemembered(t *testing.T) {
	s := open(t)
	s.Answer()
	tree := s.Screen.(*Screen).answer().tree
	for _, invert := range []bool{true, false} {
		s.C.Invert = invert
		s.Answer()
		if got := s.Screen.(*Screen).answer().tree; (got == tree) == invert || got.Invert != invert {
			t.Errorf("inverted %v: the tree is inverted %v, the first one: %v", invert, got.Invert, got == tree)
		}
	}
}

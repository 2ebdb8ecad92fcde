package centres

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
)

func open(t testing.TB) *screentest.Session {
	return screentest.Open(t, Kind, fixture.Profile(t, fixture.Options{Samples: 4000}), nil)
}

func TestConforms(t *testing.T) {
	screentest.Conforms(t, Kind, func() *screentest.Session { return open(t) })
}

// Columns beside the name come with the width.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		w, h         int
		forced, foot bool
	}{{200, 60, true, true}, {120, 40, true, true}, {80, 24, true, true}, {60, 12, false, false}, {40, 8, false, false}, {20, 5, false, false}} {
		got := open(t).Draw(c.w, c.h)
		for what, want := range map[string]bool{" forced ": c.forced, "individual sums to": c.foot} {
			if strings.Contains(got, what) != want {
				t.Errorf("%dx%d: %q is there: %v, want %v\n%s", c.w, c.h, what, !want, want, got)
			}
		}
	}
}

// The choice is the screen's part of the query: dropping a centre changes it, undo brings
// the former back, and individual figures always sum to the same.
func TestQuery(t *testing.T) {
	s := open(t)
	s.Answer()
	before := s.Screen.Query().Part
	sum := s.Screen.(*Screen).data.Sum
	s.Do(keymap.Top, keymap.Down, keymap.Down, keymap.Mark)
	if q := s.Screen.Query(); q.Part == before || q.Part.(Choice).Dropped == "" {
		t.Errorf("a centre is dropped, and the query is %+v", q)
	}
	if got := s.Screen.(*Screen).data.Sum; got < sum-1e-9 || got > sum+1e-9 {
		t.Errorf("dropping a centre changes the sum from %v to %v", sum, got)
	}
	s.Do(keymap.Undo)
	if s.Screen.Query().Part != before {
		t.Errorf("after undo the query is %+v, before %+v", s.Screen.Query(), before)
	}
}

// The prompts of the screen read what they begin with.
func TestPrompts(t *testing.T) {
	s := open(t)
	s.Answer()
	s.Do(Choose)
	ask := s.C.Ask
	if ask == nil || ask.Check(ask.Value) != nil || ask.Check("@nothing") == nil {
		t.Fatalf("the prompt is %+v", ask)
	}
	if said, err := ask.Accept("@modules"); said != "" || err != nil {
		t.Errorf("accepted: %q, %v", said, err)
	}
	if got := s.Screen.(*Screen).choice.Set; got != presetSet(centres.PresetModules) {
		t.Errorf("chosen: %q", got)
	}
	s.Do(SaveSet)
	path := filepath.Join(t.TempDir(), "set")
	if _, err := s.C.Ask.Accept(path); err != nil {
		t.Error(err)
	}
	if _, err := s.C.Ask.Accept(path); err == nil {
		t.Error("a file was written over")
	}
}

// Every ending that is registered is written.
func TestExport(t *testing.T) {
	s := open(t)
	s.Answer()
	sel := s.C.Profile.Select(profile.Filter{})
	for ending, want := range map[string]string{".prof": "COST CENTRE", ".dot": "digraph", ".svg": "<svg"} {
		var b bytes.Buffer
		if err := s.Screen.(*Screen).Export(ending)(&b, sel); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s: %v, no %q in\n%.300s", ending, err, want, &b)
		}
	}
	if len(Kind.Endings) != 3 {
		t.Errorf("endings are %v", Kind.Endings)
	}
}

package hot

import (
	"strings"
	"testing"

	"ccagent/profile/reasons"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
)

func open(t testing.TB) *screentest.Session {
	return screentest.Open(t, Kind, fixture.Profile(t, fixture.Options{Samples: 4000}), nil)
}

func TestConforms(t *testing.T) {
	screentest.Conforms(t, Kind, func() *screentest.Session { return open(t) })
}

// What is drawn follows from the size: all panes and columns on a large terminal, fewer
// columns on a small one, one pane below the smallest.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		w, h      int
		has, lack []string
	}{
		{200, 60, []string{"timeline", "hot  by share", "src/Physics.hs", "range: all", "=sel", "a sample counts for every cause"}, nil},
		{120, 40, []string{"timeline", "hot  by share", "src/Physics.hs", "pairwise", "share ", "95%  only"}, nil},
		{80, 24, []string{"timeline", "hot  by share", "pairwise", "95%"}, []string{"range: all", "=sel"}},
		{60, 12, []string{"hot  by share"}, []string{"timeline"}},
		{20, 5, []string{"hot"}, []string{"timeline", "src/"}},
	} {
		got := open(t).Draw(c.w, c.h)
		for _, want := range c.has {
			if !strings.Contains(got, want) {
				t.Errorf("%dx%d: no %q in\n%s", c.w, c.h, want, got)
			}
		}
		for _, not := range c.lack {
			if strings.Contains(got, not) {
				t.Errorf("%dx%d: %q in\n%s", c.w, c.h, not, got)
			}
		}
	}
}

// The screen asks for the timeline's window, and for Core only where that is shown.
func TestQuery(t *testing.T) {
	s := open(t)
	if q := s.Screen.Query(); q.Window != s.C.Window.Window || q.Part != nil {
		t.Errorf("asks %+v", q)
	}
	before := s.Screen.Query()
	s.Do(keymap.Core)
	if q := s.Screen.Query(); q.Part != (pane.CorePart{}) || q == before {
		t.Errorf("with Core asks %+v", q)
	}
	if got := s.Draw(120, 40); !strings.Contains(got, "Core of ") {
		t.Errorf("no Core in\n%s", got)
	}
}

// The order is that of the column it names; a filter leaves what matches and its file.
func TestOrderAndFilter(t *testing.T) {
	s := open(t)
	s.Answer()
	for _, by := range []screen.Sort{screen.ByShare, screen.ByOnly, screen.ByInclusive} {
		s.C.Sort = by
		s.Draw(120, 40)
		h := s.Screen.(*Screen).hot
		last := 2.0
		for _, i := range h.rows {
			r := &s.C.Data.Hot.Rows[i]
			if r.Parent >= 0 {
				continue
			}
			v := [...]float64{r.Share, r.Only, r.Inclusive}[by]
			if v > last {
				t.Errorf("by %s: %s has %v, after %v", by, r.Full, v, last)
			}
			last = v
		}
	}
	var err error
	if s.C.Filter, err = screen.Compile("pairwise", true); err != nil {
		t.Fatal(err)
	}
	got := s.Draw(120, 40)
	if !strings.Contains(got, "pairwise") || strings.Contains(got, "| force") {
		t.Errorf("filtered by pairwise:\n%s", got)
	}
}

// The row under the cursor is the selection of all screens.
func TestCursorSelects(t *testing.T) {
	s := open(t)
	s.Answer()
	seen := map[model.Key]bool{s.C.Selected: true}
	s.Do(keymap.Top)
	for range 3 {
		s.Do(keymap.Down)
		if sub := s.Screen.Subject(); sub.Key != s.C.Selected {
			t.Errorf("the subject is %v, the selection %v", sub.Key, s.C.Selected)
		}
		seen[s.C.Selected] = true
	}
	if len(seen) < 3 {
		t.Errorf("moving selected %d elements", len(seen))
	}
}

// The first line is the fullest form of the sentence that has room, with the keys that show more.
func TestSentenceFits(t *testing.T) {
	for width, want := range map[int]string{120: "Long; more: see 3  ", 80: "A shorter one: see 3  "} {
		s := open(t)
		s.Answer()
		s.C.Key = func(name string) string { return map[string]string{screen.Stacks: "3"}[name] }
		s.C.Data.Sentence = &reasons.Sentence{
			Text: strings.Repeat("-", 90) + "Long", More: "; more", See: []reasons.See{reasons.SeeStacks},
			Shorter: []string{strings.Repeat("-", 50) + "A shorter one", strings.Repeat("-", 30) + "Short"},
		}
		if first := strings.Split(s.Draw(width, 24), "\n")[1] + "  "; !strings.Contains(first, want) {
			t.Errorf("%d columns: %q has no %q", width, first, want)
		}
	}
}

// Where the second half of the sentence has no room, the keys that belong to it are not named either.
func TestSentenceNamesKeysOfWhatItSays(t *testing.T) {
	for width, want := range map[int]string{120: "Accumulated; 23.0% is garbage collection: see 5", 80: "GHC.List.lengthAccumulated  "} {
		s := open(t) // a screen of another width asks again, and is answered with the profile's own sentence
		s.Answer()
		s.C.Key = func(name string) string { return map[string]string{screen.Heap: "5", screen.Stacks: "3"}[name] }
		s.C.Data.Sentence = &reasons.Sentence{
			Text: "48.2% of CPU time is in GHC.List.lengthAccumulated", See: []reasons.See{reasons.SeeElement},
			More: "; 23.0% is garbage collection", SeeMore: []reasons.See{reasons.SeePauses},
		}
		first := strings.Split(s.Draw(width, 24), "\n")[1] + "  "
		if !strings.Contains(first, want) {
			t.Errorf("%d columns: %q has no %q", width, first, want)
		}
	}
}

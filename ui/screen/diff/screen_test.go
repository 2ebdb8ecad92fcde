package diff

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/screen"
)

// compared is two builds of a program in n runs each; see logtest.Run.
func compared(t testing.TB, n int) *screen.Compared {
	t.Helper()
	c := &screen.Compared{}
	for i := range n {
		for _, side := range []struct {
			changed bool
			to      *[]*profile.Profile
			names   *[]string
		}{{false, &c.A, &c.NamesA}, {true, &c.B, &c.NamesB}} {
			number := uint64(i)
			if side.changed {
				number += 100
			}
			p, err := profile.Load(bytes.NewReader(logtest.Run(number, side.changed).End()))
			if err != nil {
				t.Fatal(err)
			}
			*side.to, *side.names = append(*side.to, p), append(*side.names, "x.eventlog")
		}
	}
	return c
}

func open(t testing.TB, c *screen.Compared) *screentest.Session {
	return screentest.Open(t, Kind, c.B[0], c)
}

func TestConforms(t *testing.T) {
	c := compared(t, 5)
	screentest.Conforms(t, Kind, func() *screentest.Session { return open(t, c) })
}

// Verdicts are given for several runs and never for one; p needs a wide terminal.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		n, w, h              int
		verdict, p, each, no bool
	}{
		{5, 200, 60, true, true, true, false}, {5, 120, 40, true, true, true, false}, {5, 80, 24, true, true, true, false},
		{5, 60, 12, false, false, false, false}, {1, 120, 40, false, false, true, true},
	} {
		got := open(t, compared(t, c.n)).Draw(c.w, c.h)
		for what, want := range map[string]bool{"verdict ": c.verdict, "p=": c.verdict || c.n > 1, "runs of ": c.each, "n=1: no test": c.no} {
			if strings.Contains(strings.ReplaceAll(got, "sorted by verdict", ""), what) != want {
				t.Errorf("%d runs, %dx%d: %q is there: %v, want %v\n%s", c.n, c.w, c.h, what, !want, want, got)
			}
		}
	}
}

// Level, metric and normalising are parts of the query; the order of rows is not.
func TestQuery(t *testing.T) {
	s := open(t, compared(t, 1))
	s.Answer()
	seen := map[any]bool{s.Screen.Query(): true}
	for _, a := range []keymap.Action{keymap.Left, keymap.Mode, keymap.Base} {
		s.Do(a)
		if q := s.Screen.Query(); seen[q] {
			t.Errorf("after %s the query is one of those before: %+v", a, q)
		} else {
			seen[q] = true
		}
	}
	s.Do(keymap.Sort, keymap.NonZero)
	if !seen[s.Screen.Query()] {
		t.Error("the order of rows changes the query")
	}
}

// There is no such screen for one log, and the viewer begins with it for two.
func TestOff(t *testing.T) {
	s := open(t, compared(t, 1))
	if Kind.Off(s.C) != "" || !Kind.First(s.C) {
		t.Error("two logs do not begin with their difference")
	}
	s.C.Compared = nil
	if Kind.Off(s.C) == "" || Kind.First(s.C) {
		t.Error("one log has a difference")
	}
}

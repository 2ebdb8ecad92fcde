package source

import (
	"strings"
	"testing"

	"ccagent/profile/columns"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
)

// open opens the screen on the file with the most samples.
func open(t testing.TB) *screentest.Session {
	p := fixture.Profile(t, fixture.Options{Samples: 4000})
	s := screentest.Open(t, Kind, p, nil)
	for f := range p.Files() {
		if strings.HasSuffix(p.File(columns.FileID(f)).Path, "Physics.hs") {
			s.C.File = columns.FileID(f)
		}
	}
	return s
}

func TestConforms(t *testing.T) {
	screentest.Conforms(t, Kind, func() *screentest.Session { return open(t) })
}

// The tables about the line are there if the terminal has room for them.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		w, h   int
		tables []string
	}{
		{200, 60, []string{"causes of line", "same samples", "code blocks", "also attributed to"}},
		{120, 40, []string{"causes of line", "same samples", "code blocks", "also attributed to"}},
		{80, 24, []string{"causes of line", "code blocks", "also attributed to"}},
		{60, 12, nil}, {20, 5, nil},
	} {
		got := open(t).Draw(c.w, c.h)
		for _, title := range []string{"causes of line", "same samples", "code blocks", "also attributed to"} {
			want := false
			for _, x := range c.tables {
				want = want || x == title
			}
			if strings.Contains(got, title) != want {
				t.Errorf("%dx%d: %q is there: %v, want %v\n%s", c.w, c.h, title, !want, want, got)
			}
		}
	}
}

// The line under the cursor and Core are parts of the query; the screen has no time axis.
func TestQuery(t *testing.T) {
	s := open(t)
	s.Answer()
	if q := s.Screen.Query(); q.Part != (part{line: s.C.Line}) || q.Window.Cols != 0 {
		t.Errorf("asks %+v", q)
	}
	before := s.Screen.Query()
	s.Do(keymap.Down)
	if s.Screen.Query() == before {
		t.Error("another line gives the same query")
	}
	s.Do(keymap.Up)
	if s.Screen.Query() != before {
		t.Error("the line before gives another query")
	}
	s.Do(keymap.Core)
	if q := s.Screen.Query(); !q.Part.(part).core {
		t.Errorf("with Core asks %+v", q)
	}
}

// Open steps to the next line by falling share, and from the last to the first.
func TestOpenStepsThroughHotLines(t *testing.T) {
	s := open(t)
	s.Answer()
	hot := s.C.Data.Source.Hottest
	for i := range len(hot) {
		if s.C.Line != hot[i] {
			t.Fatalf("at line %d, want %d of %v", s.C.Line, hot[i], hot)
		}
		s.Do(keymap.Open)
	}
	if s.C.Line != hot[0] {
		t.Errorf("after the last line at %d, want %d", s.C.Line, hot[0])
	}
}

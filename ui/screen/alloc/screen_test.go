package alloc

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
)

func log(t testing.TB) *profile.Profile {
	p, err := profile.Load(bytes.NewReader(logtest.Allocated().End()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func open(t testing.TB) *screentest.Session { return screentest.Open(t, Kind, log(t), nil) }

func TestConforms(t *testing.T) {
	screentest.Conforms(t, Kind, func() *screentest.Session { return open(t) })
}

// Rows have their share with its interval, kind, name and place, as far as they fit.
func TestDraw(t *testing.T) {
	for _, c := range []struct {
		w, h         int
		there, hides []string
	}{
		{120, 40, []string{"60.0%", "~2.0", "constructor", "Main.Node", "thunk", "Main.main", "Main.hs:3:8", "(evaluated thunks)", "40 blocks"}, nil},
		{40, 12, []string{"60.0%", "Main.Node"}, []string{"constructor"}},
	} {
		got := open(t).Draw(c.w, c.h)
		for _, want := range c.there {
			if !strings.Contains(got, want) {
				t.Errorf("%dx%d: no %q in\n%s", c.w, c.h, want, got)
			}
		}
		for _, not := range c.hides {
			if strings.Contains(got, not) {
				t.Errorf("%dx%d: %q in\n%s", c.w, c.h, not, got)
			}
		}
	}
}

// The range that is chosen decides what is asked, and nothing else of the timeline.
func TestQuery(t *testing.T) {
	s := open(t)
	s.Answer()
	if q := s.Screen.Query(); q.Part != (part{}) {
		t.Errorf("asks %+v", q.Part)
	}
	s.C.Applied.Push(model.Transform{Op: model.OpRange, From: 20, To: 30})
	s.Answer()
	if q := s.Screen.Query(); q.Part != (part{20, 30}) || s.Screen.(*Screen).table().Blocks != 10 {
		t.Errorf("of a range asks %+v and has %d blocks", q.Part, s.Screen.(*Screen).table().Blocks)
	}
}

// Enter on a closure goes to where it is written, and says why not on one of which that is not
// known.
func TestOpen(t *testing.T) {
	s := open(t)
	s.Answer()
	s.Do(keymap.Top)
	if s.Screen.Why(keymap.Open) == "" {
		t.Error("a constructor's place is known")
	}
	s.Do(keymap.Down, keymap.Open)
	if s.C.Goto != screen.Source || s.C.Line != 3 || s.C.File == 0 {
		t.Errorf("goes to %q, file %d, line %d", s.C.Goto, s.C.File, s.C.Line)
	}
}

// A log without blocks says why there is nothing, in both forms.
func TestNothing(t *testing.T) {
	p, err := profile.Load(bytes.NewReader(logtest.New().End()))
	if err != nil {
		t.Fatal(err)
	}
	var text, doc bytes.Buffer
	r := Report{Profile: p}
	if err := r.Text(&text, printer.Options{}); err != nil || !strings.Contains(text.String(), "-e alloc") {
		t.Errorf("%v: %q", err, text.String())
	}
	if err := r.JSON(&doc, printer.Options{}); err != nil || !strings.Contains(doc.String(), "-e alloc") {
		t.Errorf("%v: %q", err, doc.String())
	}
}

package alloc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
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

// A click moves the cursor; a double click opens the row, unless there is nothing to open.
func TestDoubleClick(t *testing.T) {
	s := open(t)
	s.Draw(120, 40)
	rows := s.Screen.(*Screen).inner
	s.Screen.Mouse(screen.Mouse{X: rows.Min.X, Y: rows.Min.Y, Double: true})
	if s.C.Goto != "" {
		t.Errorf("a closure whose place is not known opens %q", s.C.Goto)
	}
	second := screen.Mouse{X: rows.Min.X, Y: rows.Min.Y + 1}
	s.Screen.Mouse(second)
	if got := s.Screen.Subject().Line; s.C.Goto != "" || got != 3 {
		t.Errorf("a click opens %q, and leaves the cursor at line %d", s.C.Goto, got)
	}
	second.Double = true
	s.Screen.Mouse(second)
	if s.C.Goto != screen.Source || s.C.Line != 3 {
		t.Errorf("a double click opens %q at line %d", s.C.Goto, s.C.Line)
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

// A table of few blocks says so before its rows, and what they are worth where some stand for more;
// rows in an order within noise are marked.
func TestSure(t *testing.T) {
	l := logtest.New()
	for i, name := range []string{"A", "B", "C"} {
		l.Write(1, &eventlog.Closure{ID: uint32(i + 1), Module: logtest.Module, Addr: uint64(i+1) * 0x100, Type: uint32(ghc.Constr20), Name: "main:Main." + name})
	}
	for i := range uint64(10) {
		more := uint32(i % 2 * 200)
		l.Write(10+i, &eventlog.NurseryBlock{PID: 1, Places: 100 + 900*(i/9), Used: 4000, Read: 4000, Closures: []eventlog.ClosureCount{
			{Closure: 1, Count: 100, Bytes: 2400}, {Closure: 2, Count: 30, Bytes: 710 + more}, {Closure: 3, Count: 30, Bytes: 890 - more}}})
	}
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	var text, doc bytes.Buffer
	r := Report{Profile: p}
	if err := errors.Join(r.Text(&text, printer.Options{Width: 100}), r.JSON(&doc, printer.Options{})); err != nil {
		t.Fatal(err)
	}
	got := text.String()
	only, first := strings.Index(got, "Only 10 blocks of 4 KiB sampled, worth 3"), strings.Index(got, "Main.A")
	if only < 0 || first < only {
		t.Errorf("a list of ten blocks does not begin by saying so:\n%s", got)
	}
	for _, line := range strings.Split(got, "\n") {
		name := strings.Contains(line, "Main.")
		if marked := strings.Contains(line, "≈"); name && marked != strings.Contains(line, "Main.C") && !strings.Contains(line, "Main.B") {
			t.Errorf("marked %v: %s", marked, line)
		}
	}
	if !strings.Contains(got, "≈ the order after the row above") {
		t.Errorf("the mark is not explained:\n%s", got)
	}
	var out allocJSON
	if err := json.Unmarshal(doc.Bytes(), &out); err != nil {
		t.Fatal(err)
	}
	if out.Effective < 3 || out.Effective > 4 || len(out.Rows) != 3 || !(out.Rows[1].Tied || out.Rows[2].Tied) || out.Rows[0].Effective == nil || *out.Rows[0].High <= *out.Rows[0].Low {
		t.Errorf("as JSON %+v", out)
	}
	screen := screentest.Open(t, Kind, p, nil).Draw(100, 20)
	if !strings.Contains(screen, "only 10 blocks") {
		t.Errorf("the screen does not say that it rests on ten blocks:\n%s", screen)
	}
}

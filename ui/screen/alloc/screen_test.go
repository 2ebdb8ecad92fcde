package alloc

import (
	"bytes"
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

// log has blocks with a constructor, a thunk that is written in a file, and evaluated thunks.
func log(t testing.TB) *profile.Profile {
	l := logtest.New()
	file := l.File("src/Main.hs", "module Main where\n\nmain = f\n")
	b := l.Binding("main", "Main", "main", 0)
	thunk := l.Block(b, l.Span(file, 3, 8, 3, 9, b))
	l.Sample(1, 1, l.Stack(thunk))
	l.Write(1, &eventlog.Closure{ID: 1, Module: logtest.Module, Addr: 0x77, Type: uint32(ghc.Constr20), Name: "main:Main.Node"})
	l.Write(1, &eventlog.Closure{ID: 2, Module: logtest.Module, Addr: thunk.Addr, Type: uint32(ghc.Thunk10)})
	l.Write(1, &eventlog.Closure{ID: 3, Module: logtest.Module, Addr: 0x99, Type: uint32(ghc.Blackhole)})
	for i := range uint64(40) {
		l.Write(10+i, &eventlog.NurseryBlock{PID: 1, Places: 256, Used: 4000, Read: 4000, Closures: []eventlog.ClosureCount{
			{Closure: 1, Count: 100, Bytes: 2400}, {Closure: 2, Count: 40, Bytes: 1000 - uint32(i)}, {Closure: 3, Count: 15, Bytes: 600 + uint32(i)}}})
	}
	p, err := profile.Load(bytes.NewReader(l.End()))
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
	s.C.Stack.Push(model.Transform{Op: model.OpRange, From: 20, To: 30})
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

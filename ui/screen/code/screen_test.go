package code

import (
	"strings"
	"testing"

	"ccagent/profile/machinecode"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/screen"
)

// open opens the screen on a function of a program whose file is not here.
func open(t testing.TB, name string) *screentest.Session {
	s := screentest.Open(t, Kind, fixture.Profile(t, fixture.Options{Samples: 4000}), nil)
	s.C.Code = screen.CodeOf{Name: name, Selected: s.C.Selected}
	return s
}

func TestConforms(t *testing.T) {
	screentest.Conforms(t, Kind, func() *screentest.Session { return open(t, "Physics.step") })
	t.Run("nothing", func(t *testing.T) {
		screentest.Conforms(t, Kind, func() *screentest.Session { return open(t, "") })
	})
}

// What is missing is said: the file, a function without code of its own, and that none is selected.
func TestSaysWhatIsMissing(t *testing.T) {
	for name, want := range map[string][]string{
		"Physics.step": {"/usr/bin/nbody, which has the code, is not here", "machine code of Physics.step", "share", "address"},
		"Main.nothing": {"no sample that is kept is in machine code of Main.nothing"},
		"":             {"no function is selected"},
	} {
		got := open(t, name).Draw(120, 40)
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%q: no %q in\n%s", name, w, got)
			}
		}
	}
	s := open(t, "Physics.step")
	s.C.Sealed = "it may have more rights than you"
	if got := s.Draw(120, 40); !strings.Contains(got, "is not read: it may have more rights than you") {
		t.Errorf("sealed:\n%s", got)
	}
}

// listed gives the session a listing of two pieces.
func listed(t *testing.T) *session {
	s := open(t, "Main.f")
	s.Answer()
	at := func(addr uint64, text string, weight uint64, row uint32) machinecode.Line {
		l := machinecode.Line{Instruction: machinecode.Instruction{Addr: addr, Text: text}, Weight: weight, Samples: weight, Share: float64(weight) / 100}
		if row > 0 {
			l.File, l.FileID, l.Row, l.Source = "Main.hs", 1, row, "f x = x + 1"
		}
		return l
	}
	ranges := []machinecode.Range{
		{Procedure: "Main.f", Path: "/bin/p", Lo: 0x10, Hi: 0x20, Share: 0.6, Lines: []machinecode.Line{at(0x10, "push %rax", 0, 0), at(0x11, "add %rax,%rbx", 20, 7), at(0x14, "ret", 40, 7)}},
		{Procedure: "Main.g", Path: "/bin/p", Lo: 0x40, Guessed: true, Share: 0.3, Lines: []machinecode.Line{at(0x40, "jmp *%rbp", 30, 9)}},
	}
	d := *s.C.Data
	d.Part = &answer{name: "Main.f", listing: &machinecode.Listing{Name: "Main.f", Share: 0.9, Samples: 90, Ranges: ranges}}
	s.C.Data = &d
	x := s.Screen.(*Screen)
	x.refresh()
	return &session{s, x}
}

type session struct {
	*screentest.Session
	screen *Screen
}

// The cursor begins at the hottest instruction; n goes to the next by weight and passes none; lines of
// source stand between, and enter opens them.
func TestHottest(t *testing.T) {
	s := listed(t)
	var got []string
	for range 4 {
		got = append(got, s.screen.text(s.screen.row()))
		if !s.screen.Find(&screen.Pattern{}, 1) {
			t.Fatal("no next instruction")
		}
	}
	want := []string{"14  ret", "40  jmp *%rbp", "11  add %rax,%rbx", "14  ret"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("went %q, want %q", got, want)
	}
	var all []string
	for i := range s.screen.rows {
		all = append(all, s.screen.text(&s.screen.rows[i]))
	}
	if text := strings.Join(all, "\n"); text != "60.0%  Main.f  0x10-0x20 in p\nMain.hs:7  f x = x + 1\n10  push %rax\n11  add %rax,%rbx\n14  ret\n30.0%  Main.g  0x40-… in p\nMain.hs:9  f x = x + 1\n40  jmp *%rbp" {
		t.Errorf("rows:\n%s", text)
	}
	if why := s.screen.Why(keymap.Open); why != "" {
		t.Error(why)
	}
	s.screen.Do(keymap.Open)
	if s.C.Goto != screen.Source || s.C.File != 1 || s.C.Line != 9 {
		t.Errorf("opens line %d of file %d on %q", s.C.Line, s.C.File, s.C.Goto)
	}
	s.screen.Do(keymap.Top)
	if s.screen.Why(keymap.Open) == "" || s.screen.Subject().Key != model.NoKey {
		t.Error("the heading of a piece has a source line")
	}
}

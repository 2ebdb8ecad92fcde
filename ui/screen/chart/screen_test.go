package chart

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/screentest"
	"ccagent/ui/keymap"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
)

// log is of 100 ms: f calls g, then h, then nothing runs, then samples are lost, then f calls g again.
func log(t testing.TB) *profile.Profile {
	t.Helper()
	l := logtest.New()
	block := func(name string) logtest.Frame { return l.Block(l.Binding("main", "M", name, 0)) }
	f, g, h := block("f"), block("g"), block("h")
	fg, fh := l.Stack(f, g), l.Stack(f, h)
	const ms = uint64(1e6)
	for i := range uint64(60) {
		l.Sample(i*ms/2, ms/2, fg)
		l.Sample(30*ms+i*ms/7, ms/7, fh)
	}
	for i := range uint64(60) {
		l.Write(50*ms+i*ms/2, &eventlog.Loss{Count: 1, Reason: eventlog.LossRingFull})
	}
	for i := range uint64(40) {
		l.Sample(80*ms+i*ms/2, ms/2, fg)
	}
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func open(t testing.TB) *screentest.Session { return screentest.Open(t, Kind, log(t), nil) }

func TestConforms(t *testing.T) {
	p := log(t)
	screentest.Conforms(t, Kind, func() *screentest.Session { return screentest.Open(t, Kind, p, nil) })
}

// Blocks are where they happened, runs of the same frame are one, and what was not watched has its own
// glyph, not that of a program that does not run.
func TestDraw(t *testing.T) {
	s := open(t)
	got := strings.Split(s.Draw(120, 40), "\n")
	body := got[1:]
	for !strings.Contains(body[0], "M.f") && len(body) > 3 {
		body = body[1:]
	}
	for y, name := range []string{"M.f", "M.g"} {
		if !strings.HasPrefix(body[y][2:], name) {
			t.Errorf("no %s at the left of row %d: %q", name, y, body[y])
		}
		if strings.Count(body[y], name) != 2 {
			t.Errorf("%s is not two blocks: %q", name, body[y])
		}
	}
	at := func(x int) byte { return body[0][1+x] }
	if at(53) != '.' || at(77) != '~' {
		t.Errorf("idle is %q, not watched is %q\n%s", at(53), at(77), strings.Join(got, "\n"))
	}
	s.C.Window.Cursor = 77
	if text := s.Draw(120, 40); !strings.Contains(text, "not watched: ") || !strings.Contains(text, "lost here, and none taken") {
		t.Errorf("the cursor on what was not watched:\n%s", text)
	}
}

// Enter gives a block's time the width, esc all of it back, and [ and ] set the range of all screens.
func TestKeys(t *testing.T) {
	s := open(t)
	s.Draw(120, 40)
	s.C.Window.Cursor = 38
	s.Do(keymap.Down)
	if name := s.Screen.Subject().Name; name != "M.h" {
		t.Errorf("the cursor is on %q", name)
	}
	s.Do(keymap.Open)
	if w := s.C.Window; w.From < 28e6 || w.From > 32e6 || w.To < 38e6 || w.To > 42e6 {
		t.Errorf("h fills %d to %d", w.From, w.To)
	}
	s.Do(keymap.RangeFrom)
	if r, ok := s.C.Applied.Range(); !ok || r.From != s.C.Window.From {
		t.Errorf("range %+v", r)
	}
	if !s.Screen.Back() || s.C.Window.From != 0 {
		t.Error("esc does not zoom out")
	}
	s.Answer()
	if pat, _ := screen.Compile("h$", false); !s.Screen.Find(&pat, 1) || s.Screen.Subject().Name != "M.h" {
		t.Errorf("found %q", s.Screen.Subject().Name)
	}
}

// The text has stretches of time with the frames that most samples had.
func TestReport(t *testing.T) {
	p := log(t)
	var text bytes.Buffer
	r := Report{Selection: p.Select(profile.Filter{}), Columns: 10}
	if err := r.Text(&text, printer.Options{File: "x.eventlog"}); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for l := range strings.Lines(text.String()) {
		if f := strings.Fields(l); len(f) > 2 && strings.HasSuffix(f[1], "s") && strings.HasSuffix(f[0], "s") && f[0][0] == '0' {
			rows = append(rows, strings.Join(f[2:], " "))
		}
	}
	want := []string{"60 100.0% M.f > M.g", "60 100.0% M.f > M.h", "0 (nothing ran)", "0 (not watched: samples were lost)", "40 100.0% M.f > M.g"}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("rows %q, want %q in\n%s", rows, want, &text)
	}
}

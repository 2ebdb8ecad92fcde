package ui

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

const attack = "\x1b]0;owned\x07\x1b[2J\u202e\u009b31m\xff\xfe\t漢字\x00\r\n"

// attacking is a log whose samples, heap bands and markers try to talk to the
// terminal, in names of 10 000 characters too.
func attacking(t testing.TB, weight uint64) *profile.Profile {
	t.Helper()
	long := strings.Repeat(attack+"name", 700)
	l := logtest.New()
	b := l.Binding(attack, attack, attack, 0)
	f := l.File(attack+".hs", attack+"\nx = 1\n")
	big := l.Binding("main", "Main", long, 0)
	code := l.Block(b, l.Span(f, 1, 1, 2, 5, b))
	deep := l.Block(big, l.Span(f, 2, 1, 2, 5, big))
	l.Write(1, &eventlog.RTSIdentifier{Text: attack})
	l.Write(1, &eventlog.HeapProfBegin{Breakdown: eventlog.BreakdownClosureType, Module: attack})
	for i := range uint64(6) {
		at := i * 1e6
		l.Sample(at, weight, l.Stack(code, deep))
		l.Write(at, &eventlog.HeapSampleBegin{Era: i})
		for _, name := range []string{attack, long, "", "\x00"} {
			l.Write(at, &eventlog.HeapSampleString{Bytes: 1 << (10 + i), Label: name})
		}
		l.Write(at, &eventlog.HeapSampleEnd{Era: i})
		l.Write(at, &eventlog.HeapLive{Bytes: ^uint64(0) >> i})
		l.Write(at, &eventlog.UserMarker{Text: attack + long})
	}
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// No key on any screen brings what the target wrote to the terminal as it is, or
// makes a line too wide.
func TestAttacksOnEveryScreen(t *testing.T) {
	g := &Against{}
	for i := range 4 {
		source := func(side string, weight uint64) Source {
			return Source{Name: attack + side, Load: func(func(int64, int64)) (*profile.Profile, error) { return attacking(t, weight), nil }}
		}
		g.A, g.B = append(g.A, source(fmt.Sprint("a", i), 10)), append(g.B, source(fmt.Sprint("b", i), 20))
	}
	for _, size := range [][2]int{{80, 24}, {160, 45}, {30, 8}} {
		s := startDiff(t, g, size[0], size[1])
		for _, k := range []string{"Z", "j", "enter", "6", "l", "1", "tab", "tab", "2", "3", "i", "4", "5", "j", "enter", "s", "v", "/", "esc", "1", "z", "?", "esc", "R", "y"} {
			s.keys(k)
			checkSize(t, s, size[0], size[1])
			for _, r := range s.screen() {
				if r != '\n' && (r < ' ' || r >= 0x7f) {
					t.Fatalf("after %s: %U on a screen of ASCII:\n%s", k, r, s.screen())
				}
			}
		}
		if title := s.app.View().WindowTitle; strings.ContainsAny(title, "\x1b\x07\x00") {
			t.Errorf("window title %q", title)
		}
	}
}

// Where nothing is selected, every screen says so and none fails.
func TestEmptySelectionOnEveryScreen(t *testing.T) {
	s := startDiff(t, against(t, 5), 120, 40)
	s.keys("F", "'nothing matches this", "enter")
	s.has("no sample is left on either side")
	for _, c := range [][2]string{{"1", "no sample is left by the transforms"}, {"2", "0 of 323 samples kept"}, {"3", "0 of 323 samples kept"}, {"4", "0 of 323 samples kept"}, {"5", "heap"}} {
		s.keys(c[0])
		s.has(c[1])
		checkSize(t, s, 120, 40)
	}
	s.keys("backspace", "6")
	s.has("Work.heavy")
}

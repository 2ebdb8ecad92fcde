package ui

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/keymap"
)

// mode is a screen in one of its states.
type mode struct {
	name string
	open func(w, h int) *session
	keys []string
}

// modes are all screens, each with its panes and what it can be switched to.
func modes(t *testing.T) []mode {
	t.Helper()
	capture, heap := fixture.Profile(t, fixture.Options{Samples: 300}), fixture.Recorded(t, "bands-hT")
	dump, err := profile.Open(filepath.Join("screen", "dump", "testdata", "standstill.eventlog"), nil)
	if err != nil {
		t.Fatal(err)
	}
	g := against(t, 2)
	of := func(p *profile.Profile) func(w, h int) *session {
		return func(w, h int) *session { return start(t, p, w, h, Options{ASCII: true}) }
	}
	compared := func(w, h int) *session { return startDiff(t, g, w, h) }
	var out []mode
	for _, m := range []struct {
		name, keys string
		open       func(w, h int) *session
	}{
		{"main", "j", of(capture)}, {"main, timeline", "shift+tab", of(capture)}, {"main, source", "tab", of(capture)},
		{"main, flat", "a j", of(capture)}, {"main, zoomed", "j z", of(capture)}, {"main, focused", "j f", of(capture)},
		{"main, searching", "/ 'step enter", of(capture)}, {"main, filtered", "& 'step enter", of(capture)},
		{"main, Core", "j K", of(capture)}, {"main, brushing", "v l l", of(capture)},
		{"source", "2", of(capture)}, {"source, Core", "j j 2 K", of(capture)}, {"source, searching", "2 / 'step enter", of(capture)},
		{"tree", "3 j", of(capture)}, {"flame graph", "3 tab j", of(capture)}, {"tree, inverted", "3 i j", of(capture)}, {"sandwich", "3 j j p", of(capture)},
		{"centres", "4 j", of(capture)}, {"centres, evaluation", "4 M j", of(capture)}, {"centres, stacks", "4 M M j", of(capture)},
		{"heap", "5", of(heap)}, {"heap, one band", "5 j enter", of(heap)}, {"heap, none", "5", of(capture)},
		{"allocation", "7 j", of(capture)}, {"chart", "9", of(capture)}, {"tracks", "alt+0", of(capture)},
		{"dump", "j", of(dump)}, {"dump, stack", "j tab", of(dump)},
		{"machine code", "j j I", of(capture)},
		{"difference", "Z j", compared}, {"difference, by span", "l l j", compared}, {"main, compared", "1 j", compared}, {"tree, compared", "3 j", compared},
		{"differential flame graph", "8 j", compared}, {"differential flame graph, list", "8 tab j", compared},
	} {
		out = append(out, mode{m.name, m.open, strings.Fields(m.keys)})
	}
	return out
}

// at opens the mode.
func (m *mode) at(w, h int) *session {
	s := m.open(w, h)
	s.keys(m.keys...)
	s.app.said = message{}
	s.app.draw()
	s.app.out.fresh = true
	return s
}

// state is all that a key can change.
func (s *session) state() string {
	return fmt.Sprintf("%s\n%d %v", s.app.View().Content, len(s.out), s.app.c.Samples())
}

// leaves are the actions that end or suspend the program, or start another.
var leaves = []keymap.Action{keymap.Quit, keymap.Suspend, keymap.Edit}

// On every screen and in every mode: the keys in the last line do something, a click on one and on a tab does
// what its key does, and every key either does something or says why it does not, in the last line and whole in the help.
func TestEveryKeyOnEveryScreen(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	for _, m := range modes(t) {
		t.Run(m.name, func(t *testing.T) {
			m.hints(t, 80, 24)
			if strings.ContainsAny(m.name, ",") { // a mode of a screen that is in the table
				return
			}
			m.hints(t, 200, 50)
			m.tabs(t, 80, 24)
			m.every(t)
			m.help(t)
		})
	}
}

// hints presses and clicks what the last line names.
func (m *mode) hints(t *testing.T, w, h int) {
	s := m.at(w, h)
	hints := slices.Clone(s.app.out.hints)
	if len(hints) == 0 {
		t.Errorf("%dx%d: the last line names no key", w, h)
	}
	was := s.state()
	for _, hint := range hints {
		if slices.Contains(leaves, hint.binding.Action) {
			continue
		}
		pressed := m.at(w, h)
		pressed.keys(hint.binding.Keys[0])
		if pressed.app.said.warn {
			t.Errorf("%dx%d: %s in the last line says %q", w, h, hint.binding.FirstKey(), pressed.app.said.text)
		}
		if pressed.state() == was && !m.moved(hint.binding) {
			t.Errorf("%dx%d: %s in the last line does nothing", w, h, hint.binding.FirstKey())
		}
		clicked := m.at(w, h)
		clicked.send(clickAt(hint.r.Min.X, hint.r.Min.Y))
		if clicked.state() != pressed.state() {
			t.Errorf("%dx%d: a click on %s gives\n%s\nand the key\n%s", w, h, hint.binding.FirstKey(), clicked.screen(), pressed.screen())
		}
	}
}

// tabs presses the keys of tabs, and clicks them.
func (m *mode) tabs(t *testing.T, w, h int) {
	s := m.at(w, h)
	if len(s.app.deck.tabs) == 0 {
		t.Errorf("%dx%d: no tabs", w, h)
	}
	for _, tab := range slices.Clone(s.app.deck.tabs) {
		b := keyTable.Of(keymap.OpenScreen(tab.screen))
		pressed, clicked := m.at(w, h), m.at(w, h)
		pressed.keys(b.Keys[0])
		clicked.send(clickAt(tab.x+1, s.app.deck.row))
		if pressed.app.deck.at != tab.screen || clicked.state() != pressed.state() {
			t.Errorf("%dx%d: tab %q leads to screen %d by its key, and by a click to %d", w, h, tab.text, pressed.app.deck.at+1, clicked.app.deck.at+1)
		}
	}
}

// moved reports whether a key does something after the cursor has been moved; it may stand at an end, or in a
// list of one row.
func (m *mode) moved(b *keymap.Binding) bool {
	switch {
	case b.Action == keymap.Down && strings.Contains(m.name, ","),
		b.Action == keymap.ZoomIn && m.name == "centres": // all centres are chosen from the start
		return true
	}
	for _, before := range [][]string{{"G"}, {"g"}, {"j"}, {"l", "l", "l"}, {"g", "l"}, {"+", "+"}, {"+", "l", "l", "+"}, {"b", "l"}, {"f"}, {"/", "'e", "enter"}} {
		s := m.at(120, 40)
		s.keys(before...)
		s.app.said = message{}
		s.app.draw()
		s.app.out.fresh = true
		was := s.state()
		s.keys(b.Keys[0])
		if !s.app.said.warn && s.state() != was {
			return true
		}
	}
	return false
}

// mayRest reports keys that are on in a mode and need not change anything there.
func mayRest(b *keymap.Binding) bool {
	switch b.Action {
	case keymap.Back, keymap.Reload: // nothing to go back from; the log is as it was
		return true
	}
	_, opens := keymap.ScreenOf(b.Action)
	return opens // the screen that is shown
}

// every presses every key that is bound.
func (m *mode) every(t *testing.T) {
	const w, h = 120, 40
	s := m.at(w, h)
	was := s.state()
	for _, section := range keyTable.Sections {
		for i := range section.Bindings {
			b := &section.Bindings[i]
			if slices.Contains(leaves, b.Action) {
				continue
			}
			if why := s.app.why(b.Action); why != "" {
				for _, key := range b.Keys {
					s.keys(key)
					if want := b.FirstKey() + ": " + why; s.app.said.text != want || !s.app.said.warn {
						t.Errorf("%s is off and says %q, want %q", key, s.app.said.text, want)
					}
				}
				if strings.Contains(why, "no key does that") {
					t.Errorf("%s: %s", b.FirstKey(), why)
				}
				continue
			}
			on := m.at(w, h)
			on.keys(b.Keys[0])
			if strings.Contains(on.app.said.text, "no key does that") {
				t.Errorf("%s: %s", b.FirstKey(), on.app.said.text)
			}
			if on.state() == was && !mayRest(b) && !m.moved(b) {
				t.Errorf("%s (%s) is on and does nothing", b.FirstKey(), b.Action)
			}
		}
	}
	s.keys("ctrl+q")
	if !strings.Contains(s.app.said.text, "no key does that; ? lists all") {
		t.Errorf("a key that is not bound says %q", s.app.said.text)
	}
}

// help looks for the reasons of all keys that are off, as a whole, in the overlay.
func (m *mode) help(t *testing.T) {
	s := m.at(100, 50) // all of the width is the overlay's
	s.keys("?")
	var words []string
	for was := ""; was != s.screen(); s.keys("pgdown") {
		was = s.screen()
		for line := range strings.Lines(was) {
			if line = strings.TrimRight(line, "\n"); len(line) > 15 && line[0] == '|' {
				words = append(words, strings.Fields(line[14:len(line)-1])...)
			}
		}
	}
	text := strings.Join(words, " ")
	for _, section := range keyTable.Sections {
		for i := range section.Bindings {
			b := &section.Bindings[i]
			if why := s.app.why(b.Action); why != "" && !strings.Contains(text, "Off here: "+strings.Join(strings.Fields(why), " ")) {
				t.Errorf("the help does not say of %s that %q", b.FirstKey(), why)
			}
		}
	}
}

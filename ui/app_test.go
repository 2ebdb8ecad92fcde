package ui

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"ccagent/profile"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/golden"
	"ccagent/ui/theme"
)

// session drives an App as the event loop would, with every command run to its
// end at once.
type session struct {
	t   testing.TB
	app *App
	out []tea.Msg // what left the loop: quit, clipboard, suspend
}

func start(t testing.TB, p *profile.Profile, w, h int, o Options) *session {
	t.Helper()
	if o.Theme == "" {
		o.Theme = "plain"
	}
	src := Source{Name: "nbody.eventlog", Load: func(func(int64, int64)) (*profile.Profile, error) { return p, nil }}
	app, err := newApp(src, o)
	if err != nil {
		t.Fatal(err)
	}
	app.log.noTicks = true
	s := &session{t: t, app: app}
	s.run(app.Init())
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	return s
}

func (s *session) send(msg tea.Msg) {
	_, cmd := s.app.Update(msg)
	s.run(cmd)
}

func (s *session) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	switch msg := cmd().(type) {
	case nil:
	case tea.BatchMsg:
		for _, c := range msg {
			s.run(c)
		}
	case loadedMsg, progressMsg, dataMsg, editedMsg, feedMsg, pollMsg, grownMsg, reloadMsg, exportedMsg, sideMsg, dumpedMsg:
		s.send(msg)
	default:
		s.out = append(s.out, msg)
	}
}

// keys sends keys by name: "j", "tab", "ctrl+d", or a text in quotes.
func (s *session) keys(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		if text, ok := strings.CutPrefix(k, "'"); ok {
			for _, r := range text {
				s.send(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
			continue
		}
		s.send(press(k))
	}
}

var named = map[string]rune{
	"tab": tea.KeyTab, "enter": tea.KeyEnter, "esc": tea.KeyEscape, "backspace": tea.KeyBackspace, "up": tea.KeyUp, "down": tea.KeyDown,
	"left": tea.KeyLeft, "right": tea.KeyRight, "home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown,
}

func press(k string) tea.KeyPressMsg {
	var m tea.KeyPressMsg
	for {
		switch {
		case strings.HasPrefix(k, "ctrl+"):
			m.Mod |= tea.ModCtrl
			k = k[len("ctrl+"):]
			continue
		case strings.HasPrefix(k, "alt+"):
			m.Mod |= tea.ModAlt
			k = k[len("alt+"):]
			continue
		case strings.HasPrefix(k, "shift+"):
			m.Mod |= tea.ModShift
			k = k[len("shift+"):]
			continue
		}
		break
	}
	if c, ok := named[k]; ok {
		m.Code = c
		return m
	}
	if k == "space" {
		k = " "
	}
	m.Code = []rune(k)[0]
	if m.Mod == 0 {
		m.Text = k
	}
	return m
}

// screen is what the terminal shows, without styles.
func (s *session) screen() string { return ansi.Strip(s.app.View().Content) }

func (s *session) has(want string) {
	s.t.Helper()
	if !strings.Contains(s.screen(), want) {
		s.t.Errorf("no %q on the screen:\n%s", want, s.screen())
	}
}

func (s *session) hasNot(want string) {
	s.t.Helper()
	if strings.Contains(s.screen(), want) {
		s.t.Errorf("%q on the screen:\n%s", want, s.screen())
	}
}

var small = fixture.Options{Samples: 4000}

func TestScreens(t *testing.T) {
	p := fixture.Profile(t, small)
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}, {60, 12}, {20, 5}} {
		for _, c := range []struct {
			name string
			keys []string
		}{
			{"main", nil},
			{"source", []string{"2"}},
			{"source-line", []string{"2", "n"}},
			{"core", []string{"/", "'pairwise", "enter", "K"}},
			{"tree", []string{"3"}},
			{"inverted", []string{"3", "i"}},
			{"sandwich", []string{"/", "'pairwise", "enter", "p"}},
			{"zoomed-flame", []string{"3", "/", "'step", "enter", "shift+tab", "enter"}},
			{"centres", []string{"4"}},
			{"centre-stacks", []string{"4", "M", "M"}},
			{"help", []string{"?"}},
		} {
			s := start(t, p, size[0], size[1], Options{ASCII: true})
			s.keys(c.keys...)
			golden.Check(t, fmt.Sprintf("%s-%dx%d.txt", c.name, size[0], size[1]), trimmed(s.screen()))
		}
	}
	s := start(t, p, 120, 40, Options{})
	golden.Check(t, "unicode-120x40.txt", trimmed(s.screen()))
}

func trimmed(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

func TestThemes(t *testing.T) {
	p := fixture.Profile(t, small)
	for _, name := range theme.Names() {
		s := start(t, p, 80, 24, Options{Theme: name})
		golden.Check(t, "theme-"+name+".ansi", s.app.View().Content+"\n")
	}
}

package ui

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"ccagent/profile"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/golden"
)

// line is the first line of the screen that contains all of the words.
func (s *session) line(words ...string) string {
	s.t.Helper()
next:
	for l := range strings.Lines(s.screen()) {
		for _, w := range words {
			if !strings.Contains(l, w) {
				continue next
			}
		}
		return strings.TrimRight(l, "\n")
	}
	s.t.Fatalf("no line with %q:\n%s", words, s.screen())
	return ""
}

func TestTransformsNarrowAndUndo(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	before := s.screen()
	s.has("4 000 of 4 000 samples kept")
	s.keys("/", "'force", "enter", "f")
	s.has("focus Physics.force")
	s.hasNot("4 000 of 4 000")
	s.keys("d") // drops what was focused: nothing is left
	s.has("0 of 4 000 samples kept")
	s.has("no sample is left by the transforms")
	s.keys("backspace")
	s.has("focus Physics.force")
	s.keys("u", "u", "u", "u")
	s.has("4 000 of 4 000 samples kept")
	s.keys("ctrl+r")
	s.has("focus Physics.force")
	s.keys("u", "/", "'step", "enter", "esc")
	if after := s.screen(); trimmed(after) != trimmed(before) {
		t.Errorf("undoing all did not give the first screen back:\n%s\nwas\n%s", after, before)
	}
}

// Until new figures are there, the old ones are not shown as theirs.
func TestStaleFiguresAreMarked(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	_, cmd := s.app.Update(press("f"))
	s.hasNot("samples kept")
	s.has("computing")
	s.run(cmd)
	s.has("samples kept")
}

// Every transform holds on every screen, is in the breadcrumb, and can be undone.
func TestTransformsHoldEverywhere(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("/", "'force", "enter", "c")
	s.has("collapse Physics ")
	s.hasNot("| force:18")
	s.line(">", "68.0%", "Physics")
	s.keys("3")
	s.line("Physics", "v Physics")
	s.keys("1", "c")
	s.has("collapse Physics > collapse main")
	s.line(">", "68.0%", "main")
	s.keys("u", "u", "/", "'step", "enter", "m")
	s.has("merge Physics.step")
	s.line("14.5%  ~1.2  14.5%", "simulate:10") // who called step has its own cost
	s.keys("3")
	s.hasNot("Physics.step  src")
	s.keys("r")
	s.has("merge Physics.step > fold recursion")
	s.keys("r")
	s.hasNot("fold recursion")
	s.keys("1", "T")
	s.has("there are: cap 0 1, thread 3 4 5 6")
	// Of categories, those that samples hit.
	if hint := s.app.prompt.hint; !strings.Contains(hint, " unresolved") || strings.Contains(hint, "stg") || strings.Contains(hint, "rts") {
		t.Errorf("the hint is %q", hint)
	}
	s.keys("'thread x")
	s.has("thread needs a number")
	s.keys("backspace", "'3", "enter")
	s.has("merge Physics.step > thread 3")
	s.has("1 000 of 4 000 samples kept")
	s.keys("T", "'thread 4", "enter", "T", "'gc", "enter")
	s.has("thread 4 > category gc")
	s.line("100%", "(GC)")
	for range 8 {
		s.keys("u")
	}
	s.has("4 000 of 4 000 samples kept")
}

func TestFocusByExpression(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("F", "'^memc(", "enter")
	s.has("missing closing )")
	s.keys("backspace", "'py$", "enter")
	s.has("focus /(?i)^memcpy$/")
	s.line("100%", "(foreign)")
}

func TestSelectionMarksOverlap(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("/", "'force", "enter")
	if l := s.line("step:8"); !strings.Contains(l, "=44.0%") {
		t.Errorf("step does not show what it shares with force: %q", l)
	}
	if l := s.line("(GC)"); strings.Contains(l, "=") {
		t.Errorf("GC shares nothing with force: %q", l)
	}
	s.has("shares sum to 188%")
	s.has("selection: 53.5%") // on the timeline
}

func TestTimelineRange(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	w := &s.app.c.Window
	s.keys("tab", "tab", "home") // the timeline
	for range w.Cols / 3 {
		s.keys("right")
	}
	s.keys("[")
	for range w.Cols / 3 {
		s.keys("l")
	}
	s.keys("]")
	s.has("range 3.95-8.05s")
	kept := s.app.c.Data.Summary.Kept
	if kept < 1300 || kept > 1400 {
		t.Errorf("a third of 4000 samples lies in the range, %d are kept", kept)
	}
	s.keys("+", "+")
	if got := w.To - w.From; got != 3e9 {
		t.Errorf("zoomed twice, the window is %d ns", got)
	}
	s.keys("0")
	if w.From != 0 || w.To != s.app.c.Profile.Duration {
		t.Errorf("fit gives %d-%d", w.From, w.To)
	}
	s.keys("v", "right", "right", "esc") // a brush that is left changes nothing
	s.has("range 3.95-8.05s")
	s.keys("v", "right", "v")
	s.hasNot("range 3.95-8.05s")
	s.keys("u")
	s.has("range 3.95-8.05s")
}

func TestMouse(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	clock := time.Unix(0, 0)
	s.app.clicks.now = func() time.Time { clock = clock.Add(time.Second); return clock }
	at := func(word string) (x, y int) {
		for i, l := range strings.Split(s.screen(), "\n") {
			if c := strings.Index(l, word); c >= 0 {
				return c, i
			}
		}
		t.Fatalf("no %q:\n%s", word, s.screen())
		return 0, 0
	}
	x, y := at("| force:18")
	s.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
	if l := s.line("| force:18"); !strings.HasPrefix(l, "|>") {
		t.Errorf("a click did not select: %q", l)
	}
	// Drag over the timeline.
	_, y = at("| all")
	s.send(tea.MouseClickMsg{X: 30, Y: y, Button: tea.MouseLeft})
	s.send(tea.MouseMotionMsg{X: 50, Y: y, Button: tea.MouseLeft})
	s.send(tea.MouseReleaseMsg{X: 60, Y: y, Button: tea.MouseLeft})
	if _, ok := s.app.c.Applied.Range(); !ok {
		t.Error("dragging chose no range")
	}
	s.has("range 3.")
	// The wheel scrolls what is under the pointer, not what has the keys.
	x, y = at("module Physics")
	s.send(tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelDown})
	if l := s.line("| force:18"); !strings.HasPrefix(l, "|>") {
		t.Errorf("the wheel over the source moved the list: %q", l)
	}
	x, y = at("3Flame")
	s.send(tea.MouseClickMsg{X: x + 2, Y: y, Button: tea.MouseLeft})
	s.has("call tree")
	x, y = at("? help") // a key in the last line
	s.send(tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft})
	s.has("type to search, esc closes")
}

// A key that nothing is bound to says so.
func TestUnknownKey(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("Q")
	s.has("Q: no key does that; ? lists all")
}

func TestSearchAndFilter(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("/", "'p[a")
	s.has("missing closing ]")
	s.keys("esc")
	s.keys("/", "'PAIR", "enter")
	s.has("no match for PAIR") // upper case matches only itself
	s.keys("/", "'pair", "enter")
	if l := s.line("| pairwise"); !strings.HasPrefix(l, "|>") {
		t.Errorf("search did not move: %q", l)
	}
	s.keys("&", "'!physics", "enter")
	s.hasNot("| pairwise:15")
	s.has("& !physics")
	s.keys("&", "backspace")
	for range 12 {
		s.keys("backspace")
	}
	s.keys("enter")
	s.has("| pairwise:15")
	s.keys("L", "'50", "enter")
	s.hasNot("| pairwise:15")
	s.has("min 50.0%")
	s.keys("L", "'x")
	s.has("type a number from 0 to 100")
	s.keys("esc")
}

func TestEscNeverQuits(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	for _, k := range []string{"/", "?", "z", "3", "2", "v", "tab"} {
		s.keys(k, "esc", "esc", "esc", "esc")
		s.has("timeline")
		s.has("hot  by share")
	}
	if slices.ContainsFunc(s.out, isQuit) {
		t.Error("esc quit")
	}
	s.keys("q")
	if !slices.ContainsFunc(s.out, isQuit) {
		t.Error("q did not quit")
	}
}

func isQuit(m tea.Msg) bool { _, ok := m.(tea.QuitMsg); return ok }

func TestDisabledKeysSayWhy(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	for key, want := range map[string]string{
		"M": "this screen has no modes; 4 has", "C": "this is for cost centres; 4 shows them", "u": "no transform to undo", "ctrl+r": "nothing to redo",
		"backspace": "no transform to take off", "n": "no search yet", "i": "3 shows it", "e": "$EDITOR", "-": "all of the time is on screen",
		"%": "no transform holds",
	} {
		s.keys(key)
		s.has(want)
	}
	// Every action that a screen turns off gives a reason, and the help shows it.
	s.keys("?", "'undo")
	s.has("Off here: no transform to undo")
}

func TestCopyAndSuspend(t *testing.T) {
	s := start(t, fixture.Profile(t, fixture.Options{Samples: 400, Hostile: true}), 120, 40, Options{})
	s.keys("tab", "g", "y", "ctrl+z")
	if len(s.out) != 2 {
		t.Fatalf("%d messages left the loop", len(s.out))
	}
	if text := fmt.Sprint(s.out[0]); text == "" || strings.ContainsAny(text, "\x1b\x07\u009b") {
		t.Errorf("copied %q", text)
	}
	if _, ok := s.out[1].(tea.SuspendMsg); !ok {
		t.Errorf("ctrl-z gave %T", s.out[1])
	}
}

func TestEditCommand(t *testing.T) {
	for _, c := range []struct {
		editor string
		want   string
	}{
		{"vim", "vim +7 ./-rf.hs"}, {"emacs -nw", "emacs -nw +7 ./-rf.hs"}, {"/usr/bin/code --wait", "/usr/bin/code --wait --goto ./-rf.hs:7"}, {"hx", "hx ./-rf.hs:7"},
	} {
		if got := strings.Join(editCommand(strings.Fields(c.editor), "-rf.hs", 7).Args, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.editor, got, c.want)
		}
	}
}

func TestEditNeedsTheFile(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{})
	t.Setenv("EDITOR", "true")
	t.Chdir(t.TempDir())
	s.keys("e")
	s.has("src/Physics.hs is not here")
	if err := os.MkdirAll("src", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("src", "Physics.hs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	n := len(s.out)
	s.keys("e")
	if len(s.out) == n {
		t.Error("no editor was started")
	}
}

func TestRawSymbol(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("/", "'pairwise", "enter", "R")
	s.has("symbol: Physics_pairwise_info")
	s.line("|>", "Physics_pairwise_info")
	s.keys("3")
	s.has("Physics_step_info")
	s.keys("R")
	s.hasNot("Physics_step_info  src")
}

func TestMetricBaseAndSort(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("t")
	s.has("alloc: 100 samples")
	s.keys("t", "s")
	s.has("hot  by only")
	s.keys("/", "'force", "enter", "f")
	if l := s.line("|>", "force:18"); strings.Contains(l, "53.5%") {
		t.Errorf("shares are not of what is kept: %q", l)
	}
	s.keys("%")
	s.line("|>", "53.5%", "force:18")
}

func TestBadLogs(t *testing.T) {
	for _, c := range []struct {
		name string
		o    fixture.Options
		want []string
	}{
		{"empty", fixture.Options{Empty: true}, []string{"no samples of cycles", "cycles (cpu-clock): 0"}},
		{"cut", fixture.Options{Samples: 400, Cut: true}, []string{"cut off: the log has no end"}},
		{"no text", fixture.Options{Samples: 400, NoText: true}, []string{"the text of this file is not in the log", "line 11"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, fixture.Profile(t, c.o), 120, 40, Options{ASCII: true})
			for _, w := range c.want {
				s.has(w)
			}
			golden.Check(t, "bad-"+strings.ReplaceAll(c.name, " ", "-")+".txt", trimmed(s.screen()))
		})
	}
}

// Nothing the target wrote reaches the terminal as it is.
func TestHostileLog(t *testing.T) {
	p := fixture.Profile(t, fixture.Options{Samples: 400, Hostile: true})
	for _, o := range []Options{{}, {ASCII: true}} {
		s := start(t, p, 100, 30, o)
		for _, k := range []string{"1", "2", "3", "1", "G", "tab", "G", "/", "esc"} {
			s.keys(k)
			text := s.screen()
			for _, r := range text {
				if r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069) {
					t.Fatalf("after %s: %U on the screen:\n%s", k, r, text)
				}
				if o.ASCII && r > 0x7f {
					t.Fatalf("after %s: %U with ASCII:\n%s", k, r, text)
				}
			}
			checkSize(t, s, 100, 30)
		}
		if title := s.app.View().WindowTitle; strings.ContainsAny(title, "\x1b\x07") {
			t.Errorf("window title %q", title)
		}
	}
}

func TestLoadingShowsProgressAndErrors(t *testing.T) {
	block := make(chan struct{})
	src := Source{Name: "big.eventlog", Load: func(progress func(int64, int64)) (*profile.Profile, error) {
		progress(50, 200)
		<-block
		return nil, errors.New("no log")
	}}
	app, err := newApp(src, Options{Theme: "plain", ASCII: true})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, app: app}
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	s.has("reading big.eventlog")
	done := make(chan tea.Msg)
	go func() { done <- app.log.load() }()
	s.app.handle(app.log.awaitProgress())
	s.app.draw()
	s.has("25.0%")
	s.keys("j", "f", "?") // harmless while there is nothing
	close(block)
	s.run(func() tea.Msg { return <-done })
	if app.err == nil || !slices.ContainsFunc(s.out, isQuit) {
		t.Error("a log that cannot be read does not end the viewer")
	}
}

func TestResizeKeepsSelection(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("/", "'pairwise", "enter")
	for _, size := range [][2]int{{80, 24}, {20, 5}, {200, 60}, {120, 40}} {
		s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		if got := s.app.deck.screens[0].Subject().Name; got != "Physics.pairwise" {
			t.Fatalf("at %v %q is selected", size, got)
		}
	}
	if l := s.line("| pairwise"); !strings.HasPrefix(l, "|>") {
		t.Errorf("%q", l)
	}
}

// The manual's table of keys is the program's.
func TestManualHasTheKeys(t *testing.T) {
	path := filepath.Join("..", "docs", "viewer.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if golden.Updating() {
		before, rest, _ := strings.Cut(string(b), "| Key | Does |\n")
		_, after, _ := strings.Cut(rest, "\n\n")
		b = []byte(before + keyTable.Markdown() + "\n" + after)
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(string(b), keyTable.Markdown()) {
		t.Errorf("docs/viewer.md does not contain this table:\n%s", keyTable.Markdown())
	}
}

// checkSize asserts that a frame is exactly as high and no wider than it may be.
func checkSize(t testing.TB, s *session, w, h int) {
	t.Helper()
	lines := strings.Split(s.app.View().Content, "\n")
	if len(lines) != h {
		t.Fatalf("%dx%d: %d lines:\n%s", w, h, len(lines), s.screen())
	}
	for i, l := range lines {
		if got := max(ansi.StringWidth(l), ansi.StringWidthWc(l)); got > w {
			t.Fatalf("%dx%d: line %d is %d wide: %q", w, h, i, got, l)
		}
	}
}

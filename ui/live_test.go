package ui

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"ccagent/eventlog"
	"ccagent/ui/internal/fixture"
)

// growing is a log that is being written, and the viewer that follows it.
type growing struct {
	*session
	file *os.File
	log  []byte
	at   int
}

func follow(t *testing.T, path string) *growing {
	t.Helper()
	g := &growing{log: fixture.Log(t, small)}
	g.create(t, path)
	app, err := newApp(Follow(path), Options{Theme: "plain", ASCII: true})
	if err != nil {
		t.Fatal(err)
	}
	app.log.noTicks = true
	g.session = &session{t: t, app: app}
	t.Cleanup(func() { app.log.live.feed.Close() })
	return g
}

func (g *growing) create(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := eventlog.Lock(f); err != nil {
		t.Fatal(err)
	}
	g.file, g.at = f, 0
}

// grow writes the log up to a part of it, and has the viewer look.
func (g *growing) grow(part float64) {
	g.t.Helper()
	to := int(part * float64(len(g.log)))
	if _, err := g.file.Write(g.log[g.at:to]); err != nil {
		g.t.Fatal(err)
	}
	g.at = to
	g.send(pollMsg{})
}

// A log is shown while it grows, with what was selected and transformed kept,
// and in the end is what it would be if it had been opened whole.
func TestFollowedLogGrows(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nbody.eventlog")
	g := follow(t, path)
	g.send(size(120, 40))
	g.has("waiting for nbody.eventlog")
	g.run(g.app.log.openFeed())
	g.grow(0.3)
	g.has("live nbody.eventlog")
	g.has("no names yet")
	g.line("(unresolved)", "96.")
	g.has("(unresolved)  not yet")
	g.has("unresolved 0.0%  names pending for 96.")
	first := g.app.c.Data.Summary.Samples
	g.keys("T", "'cap 0", "enter", "3")
	g.has("call tree")
	g.grow(0.6)
	if now := g.app.c.Data.Summary.Samples; now <= first {
		t.Errorf("%d samples, and before %d", now, first)
	}
	g.has("cap 0")
	g.has("call tree")
	g.keys("P")
	g.has("paused nbody")
	paused := g.app.c.Data.Summary.Samples
	g.grow(0.8)
	if now := g.app.c.Data.Summary.Samples; now != paused {
		t.Errorf("paused at %d samples, there are %d", paused, now)
	}
	g.keys("P", "u", "1")
	g.grow(1)
	g.has("the capture has ended; this is all of it")
	g.hasNot("no names yet")
	g.hasNot("not yet")
	g.hasNot("pending")
	g.hasNot("live nbody")
	whole := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	whole.keys("/", "'force", "enter")
	g.keys("/", "'force", "enter")
	if a, b := trimmed(g.screen()), trimmed(whole.screen()); a != b {
		t.Errorf("followed to its end:\n%s\nopened whole:\n%s", a, b)
	}
}

func TestFollowedLogIsReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nbody.eventlog")
	g := follow(t, path)
	g.send(size(120, 40))
	g.run(g.app.log.openFeed())
	g.grow(0.5)
	g.file.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	g.create(t, path)
	g.send(pollMsg{})
	g.has("the log was replaced by another")
	g.send(pollMsg{}) // opens it
	g.grow(0.2)
	g.has("live nbody")
	few := g.app.c.Data.Summary.Samples
	g.file.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	g.send(pollMsg{})
	g.has("the log is removed")
	if now := g.app.c.Data.Summary.Samples; now != few {
		t.Errorf("%d samples are left of %d", now, few)
	}
}

// Where names are looked up beside the capture, they are said to be on their way, not to
// come at its end.
func TestNamesAreLookedUp(t *testing.T) {
	g := follow(t, filepath.Join(t.TempDir(), "nbody.eventlog"))
	g.app.log.src.Live = true
	g.send(size(120, 40))
	g.run(g.app.log.openFeed())
	g.grow(0.3)
	g.has("names are being looked up")
	g.hasNot("no names yet")
	g.grow(1)
	g.hasNot("looked up")
}

func TestFollowingWhatIsNoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.eventlog")
	g := follow(t, path)
	g.send(size(80, 24))
	g.log = []byte(strings.Repeat("this is no log. ", 100))
	g.run(g.app.log.openFeed())
	g.grow(1)
	if g.app.err == nil {
		t.Error("a file that is no log did not end the viewer")
	}
}

// A log that was opened whole and is another by now: said, and read again on
// demand with everything kept.
func TestChangedLogIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nbody.eventlog")
	write := func(o fixture.Options) {
		t.Helper()
		if err := os.WriteFile(path, fixture.Log(t, o), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(fixture.Options{Samples: 400})
	app, err := newApp(File(path), Options{Theme: "plain", ASCII: true})
	if err != nil {
		t.Fatal(err)
	}
	app.log.noTicks = true
	s := &session{t: t, app: app}
	s.run(app.Init())
	s.send(size(120, 40))
	s.keys("/", "'pairwise", "enter", "f")
	write(fixture.Options{Samples: 800})
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	s.send(stampMsg{now: st})
	s.has("the log has changed since it was read; ctrl-l reads it again")
	s.keys("ctrl+l")
	s.has("of 800 samples kept")
	s.has("focus Physics.pairwise")
	s.line("|>", "pairwise:15")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.keys("ctrl+l")
	s.has("no such file")
	s.has("of 800 samples kept")
}

func size(w, h int) tea.WindowSizeMsg { return tea.WindowSizeMsg{Width: w, Height: h} }

// Where the viewer runs the capture, a key has the program's threads read, and shows them as soon as they are in the log.
func TestThreadsOfAFollowedLog(t *testing.T) {
	g := follow(t, filepath.Join(t.TempDir(), "nbody.eventlog"))
	g.log = fixture.Log(t, fixture.Options{Samples: small.Samples, Dump: true})
	g.send(size(120, 40))
	g.run(g.app.log.openFeed())
	g.grow(0.3)
	g.keys("W")
	g.has("W: threads are read by ccagent top")
	asked, problem := 0, errors.New("a collection ran at each attempt")
	g.app.log.src.Dump = func() error {
		asked++
		return problem
	}
	g.keys("W")
	g.has("a collection ran at each attempt")
	problem = nil
	g.keys("W")
	g.has("reading the threads")
	g.keys("W")
	g.has("W: the threads are being read")
	if asked != 2 {
		t.Errorf("the threads were asked for %d times, want 2", asked)
	}
	g.grow(0.6)
	g.hasNot("1 Haskell thread")
	g.grow(1)
	g.has("1 Haskell thread: 1 mvar")
}

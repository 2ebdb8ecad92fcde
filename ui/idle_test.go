package ui

import (
	"bytes"
	"io"
	"sync"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"ccagent/profile"
	"ccagent/ui/internal/fixture"
)

// screenBytes is what a program has written to its terminal.
type screenBytes struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screenBytes) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *screenBytes) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Len()
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) { // between polls
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// A viewer that is left alone stops the library's ticks, and draws again when a key is pressed.
func TestIdleStopsTicks(t *testing.T) {
	log := fixture.Profile(t, fixture.Options{Samples: 400})
	app, err := newApp(Source{Load: func(func(int64, int64)) (*profile.Profile, error) { return log, nil }}, Options{Theme: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	var out screenBytes
	in, keys := io.Pipe()
	p := tea.NewProgram(app, tea.WithInput(in), tea.WithOutput(&out), tea.WithWindowSize(120, 40), tea.WithoutSignals(), tea.WithFPS(framesPerSecond))
	app.out.idle.program = p
	ended := make(chan error, 1)
	go func() { _, err := p.Run(); ended <- err }()
	stopped := func() bool {
		app.out.idle.mu.Lock()
		defer app.out.idle.mu.Unlock()
		return app.out.idle.stopped
	}
	eventually(t, "the ticks stop", stopped)
	drawn := out.size()
	if drawn == 0 {
		t.Error("the ticks stopped before the first frame was drawn")
	}
	if _, err := io.WriteString(keys, "?"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "help is drawn", func() bool { return out.size() > drawn })
	eventually(t, "the ticks stop again", stopped)
	p.Quit()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

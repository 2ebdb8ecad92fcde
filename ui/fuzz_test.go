package ui

import (
	"math/rand/v2"
	"testing"

	tea "charm.land/bubbletea/v2"

	"ccagent/profile"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/keymap"
)

// everyKey is every key that is bound, and some that are not.
func everyKey() []string {
	keys := []string{"x", "W", "a", "1", "ctrl+q", "'force", "'[", "'!", "'50"}
	for _, s := range keyTable.Sections {
		for _, b := range s.Bindings {
			if b.Action != keymap.Quit && b.Action != keymap.Edit && b.Action != keymap.Export {
				keys = append(keys, b.Keys...)
			}
		}
	}
	return keys
}

// Random keys, clicks and sizes: no panic, and every frame fits the terminal.
func FuzzKeys(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed, []byte("some steps, and then more of them to go deeper"))
	}
	profiles := []*profile.Profile{
		fixture.Profile(f, fixture.Options{Samples: 300}), fixture.Profile(f, fixture.Options{Samples: 50, Hostile: true}),
		fixture.Profile(f, fixture.Options{Empty: true}), fixture.Profile(f, fixture.Options{Samples: 60, NoText: true, Cut: true}),
	}
	keys := everyKey()
	f.Fuzz(func(t *testing.T, seed uint64, steps []byte) {
		t.Chdir(t.TempDir()) // some keys write files
		rnd := rand.New(rand.NewPCG(seed, 0))
		w, h := 1+rnd.IntN(210), 1+rnd.IntN(70)
		s := start(t, profiles[rnd.IntN(len(profiles))], w, h, Options{ASCII: rnd.IntN(2) == 0})
		checkSize(t, s, w, h)
		for _, b := range steps[:min(len(steps), 200)] {
			switch {
			case b < 8:
				w, h = 1+rnd.IntN(210), 1+rnd.IntN(70)
				s.send(tea.WindowSizeMsg{Width: w, Height: h})
			case b < 40:
				s.send(mouse(rnd, w, h))
			default:
				s.keys(keys[(int(b)+rnd.IntN(len(keys)))%len(keys)])
			}
			checkSize(t, s, w, h)
		}
	})
}

func mouse(rnd *rand.Rand, w, h int) tea.Msg {
	x, y := rnd.IntN(w), rnd.IntN(h)
	switch rnd.IntN(5) {
	case 0:
		return tea.MouseReleaseMsg{X: x, Y: y, Button: tea.MouseLeft}
	case 1:
		return tea.MouseMotionMsg{X: x, Y: y, Button: tea.MouseLeft}
	case 2:
		return tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelDown}
	case 3:
		return tea.MouseWheelMsg{X: x, Y: y, Button: tea.MouseWheelUp}
	default:
		return tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft}
	}
}

// A walk with every key at each of the sizes of the issue, for those who do not fuzz.
func TestRandomKeys(t *testing.T) {
	keys := everyKey()
	t.Chdir(t.TempDir()) // some keys write files
	for _, o := range []fixture.Options{{Samples: 300}, {Samples: 50, Hostile: true}, {Empty: true}} {
		p := fixture.Profile(t, o)
		for i, size := range [][2]int{{80, 24}, {120, 40}, {200, 60}, {20, 5}, {1, 1}, {79, 23}, {300, 3}, {3, 100}} {
			rnd := rand.New(rand.NewPCG(uint64(i), 42))
			s := start(t, p, size[0], size[1], Options{ASCII: i%2 == 0})
			for range 150 {
				k := keys[rnd.IntN(len(keys))]
				s.keys(k)
				checkSize(t, s, size[0], size[1])
			}
		}
	}
}

// One frame of the main screen with a million samples loaded.
func BenchmarkFrame(b *testing.B) {
	p := fixture.Profile(b, fixture.Options{Samples: 1_000_000})
	for _, c := range []struct {
		name string
		keys []string
	}{{"main", nil}, {"source", []string{"2"}}, {"tree", []string{"3"}}} {
		b.Run(c.name, func(b *testing.B) {
			s := start(b, p, 120, 40, Options{Theme: "dark"})
			s.keys(c.keys...)
			b.ReportAllocs()
			for b.Loop() {
				s.app.draw()
			}
		})
	}
}

// A key that moves the selection, to its first frame (the data follows).
func BenchmarkKeyToFrame(b *testing.B) {
	p := fixture.Profile(b, fixture.Options{Samples: 1_000_000})
	s := start(b, p, 120, 40, Options{Theme: "dark"})
	down, up := press("j"), press("k")
	i := 0
	for b.Loop() {
		i++
		if i%2 == 0 {
			s.app.Update(down)
		} else {
			s.app.Update(up)
		}
		s.app.busy = false
	}
}

// The data of a new selection, and of a new transform, at a million samples.
func BenchmarkCompute(b *testing.B) {
	p := fixture.Profile(b, fixture.Options{Samples: 1_000_000})
	s := start(b, p, 120, 40, Options{Theme: "dark"})
	q := s.app.deck.current().Query()
	for b.Loop() {
		q.Window.From++ // another window: nothing remembered helps
		s.app.engine.Compute(q)
	}
}

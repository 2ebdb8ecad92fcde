package ui

import (
	"fmt"
	"testing"

	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/golden"
)

func TestChartAndTracksScreens(t *testing.T) {
	p := fixture.Profile(t, fixture.Options{Samples: 300})
	for _, size := range [][2]int{{80, 24}, {120, 40}, {60, 12}, {20, 5}} {
		for name, key := range map[string]string{"chart": "9", "threads": "alt+0"} {
			s := start(t, p, size[0], size[1], Options{ASCII: true})
			s.keys(key)
			golden.Check(t, fmt.Sprintf("%s-%dx%d.txt", name, size[0], size[1]), trimmed(s.screen()))
		}
	}
}

// A range that is set on the flame chart, and a thread that is chosen, hold on the other screens.
func TestChartAndTracksNarrowAllScreens(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys(":", "'chart", "enter", "l", "l", "l", "[", "1")
	s.line("range ", "of 4 000 samples kept")
	s.keys("u", ":", "'threads", "enter", "g", "enter", "3")
	s.line("thread ", "of 4 000 samples kept")
}

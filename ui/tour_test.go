package ui

import (
	"strings"
	"testing"

	"ccagent/ui/internal/fixture"
)

// The tour has three steps; enter goes on, left back, esc ends it, and any other key ends it and does what it
// always does. ?t opens it again, and a search in the help for what begins with t begins with a space.
func TestTour(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 80, 24, Options{ASCII: true})
	s.hasNot("a tour")
	s.keys("?", "t")
	s.has("1 of 3: what is hot")
	s.keys("enter")
	s.has("2 of 3: look closer")
	s.keys("left")
	s.has("1 of 3")
	s.keys("enter", "enter")
	s.has("3 of 3")
	s.has("?t shows this tour again")
	s.keys("enter")
	s.hasNot("a tour")
	s.keys("?", "t", "esc")
	s.hasNot("a tour")
	s.keys("?", "t", "3")
	s.hasNot("a tour")
	s.has("[3Flame]")
	s.keys("?", "space", "t", "i", "m", "e", "l")
	s.has("timel")
	s.hasNot("a tour")
}

// Its lines are whole in every size that has room for them; a smaller terminal has none.
func TestTourFits(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}, {60, 16}, {40, 10}} {
		s := start(t, fixture.Profile(t, small), size[0], size[1], Options{ASCII: true})
		s.keys("?", "t")
		for range tourSteps() {
			if room := size[0] >= tourWidth; room != strings.Contains(s.screen(), "a tour") {
				t.Errorf("%v: tour on screen %v:\n%s", size, !room, s.screen())
			}
			s.keys("enter")
		}
	}
}

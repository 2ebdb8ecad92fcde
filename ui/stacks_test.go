package ui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"ccagent/ui/internal/fixture"
)

func TestSandwichScreen(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("3", "/", "'pairwise", "enter", "p")
	s.has("sandwich of Physics.pairwise")
	s.has("56.1%, callers above, callees below")
	lines := strings.Split(s.screen(), "\n")
	at := func(word string) int {
		for i, l := range lines[2:] {
			if strings.Contains(l, word) {
				return i
			}
		}
		t.Fatalf("no %q:\n%s", word, s.screen())
		return 0
	}
	if main, step, self, below := at("Main.main"), at("Physics.step"), at("Physics.pairwise"), at("foldlM_loop"); main >= step || step >= self || self >= below {
		t.Errorf("callers are not above, or callees not below:\n%s", s.screen())
	}
	// Of something else that is in it.
	s.keys("j", "p")
	s.has("sandwich of Physics.step")
	s.keys("f")
	s.has("focus Physics.step")
	s.has("sandwich of Physics.step")
	s.keys("u", "d")
	s.has("no stack that is kept has Physics.step")
	s.keys("u", "esc")
	s.has("call tree  from the roots down")
	s.keys("1", "/", "'force", "enter", "p")
	s.has("sandwich of Physics.force")
	s.keys("esc", "esc")
	s.has("hot  by share")
}

func TestFlameGraph(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("3", "/", "'step", "enter", "shift+tab")
	wide := func() int {
		l := s.line("|>Physics.step")
		return strings.IndexByte(l[2:], '|')
	}
	before := wide()
	s.keys("enter")
	if after := wide(); after <= before || after != 118-1 {
		t.Errorf("enter made a block of %d columns %d wide", before, after)
	}
	s.line("|Main.simulate") // its callers stay above
	s.keys("up")
	s.line("|>Main.simulate")
	s.keys("down", "down", "right")
	s.keys("esc")
	s.keys("g")
	s.line("|>(root)")
	// A click selects a block, a double click opens it.
	for y, l := range strings.Split(s.screen(), "\n") {
		if x := strings.Index(l, "|Physics.pairwise"); x >= 0 {
			s.send(tea.MouseClickMsg{X: x + 3, Y: y, Button: tea.MouseLeft})
			break
		}
	}
	s.line("|>Physics.pairwise")
}

package ui

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"ccagent/profile/centres"
	"ccagent/ui/internal/fixture"
)

const conserved = "individual sums to 100% of the samples"

// Choosing and dropping moves costs at once, never changes the total, and can
// be taken back.
func TestCentresAreChosenAfterTheRun(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("4")
	s.has("5 of 5 chosen")
	s.has(conserved)
	first := trimmed(s.screen())
	s.keys("/", "'step", "enter")
	s.line(">[x]", "Physics.step")
	s.keys("space")
	s.has("4 of 5 chosen")
	s.line(">[ ]", "-", "alone", "Physics.step")
	s.line("+", "Main.simulate") // bears what step had
	s.has(conserved)
	s.keys("~")
	s.has("1 of 5 chosen")
	s.has(conserved)
	s.keys("u")
	s.has("4 of 5 chosen")
	s.keys("*")
	s.has("1 of 5 chosen")
	s.line("[x]", "Physics.step")
	s.line("MAIN")
	s.keys("-")
	s.has("0 of 5 chosen")
	s.has(conserved)
	s.keys("+")
	s.line("[x]", "Physics.force") // of the same module
	s.keys("u", "u", "u", "u", "g", "/", "esc")
	if got := trimmed(s.screen()); got != first {
		t.Errorf("after undoing all:\n%s\nat first\n%s", got, first)
	}
	s.keys("ctrl+r")
	s.has("4 of 5 chosen")
}

func TestCentreModes(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("4", "M")
	s.has("cost centres  evaluation")
	s.has(conserved)
	s.keys("M")
	s.has("cost centres  stacks")
	s.has("most expensive:")
	s.has(" on MAIN")
	s.has(conserved)
	s.keys("M")
	s.has("cost centres  lexical") // no exact stacks in this log
	s.keys("x")
	s.has("cost centres  stacks")
	if l := s.line("|>[x]"); !strings.Contains(l, strings.Fields(s.line("most expensive:"))[4]) {
		t.Errorf("x did not go to the most expensive stack: %q", l)
	}
	s.keys("Z")
	s.has("non-zero")
	s.keys("enter")
	s.has("[2Src]")
}

func TestCentresByGlob(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	t.Chdir(t.TempDir())
	s.keys("4", "C")
	s.has("centres: @bindings")
	s.keys("ctrl+u", "'@nothing")
	s.has("unknown preset")
	s.keys("ctrl+u", "'@modules", "enter")
	s.line("[x]", "Physics")
	s.keys("C", "ctrl+u", "'Main.*,Physik.*", "enter")
	s.has(`cost centre "Physik.*" names no code that the log has samples of: the nearest are`)
	s.has("2 of 2 chosen")
	s.keys("/", "'simulate", "enter", "space", "w", "enter")
	s.has("centres written to centres.ccs")
	b, err := os.ReadFile(filepath.Join("centres.ccs"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := centres.ParseSet(string(b))
	if err != nil || len(set.Patterns) != 1 || set.Patterns[0].Glob != "Main.main" {
		t.Errorf("the set file is\n%s: %v", b, err)
	}
	s.keys("w", "enter")
	s.has("centres.ccs is there already")
	s.keys("F", "'^nothing$", "enter")
	s.has("no sample is left by the transforms")
}

func TestMouseChoosesCentres(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("4")
	for y, l := range strings.Split(s.screen(), "\n") {
		if strings.Contains(l, "Physics.force") && strings.Contains(l, "[x]") {
			s.send(clickAt(3, y))
			break
		}
	}
	s.line(">[ ]", "Physics.force")
}

func clickAt(x, y int) tea.MouseClickMsg { return tea.MouseClickMsg{X: x, Y: y, Button: tea.MouseLeft} }

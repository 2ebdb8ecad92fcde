package ui

import (
	"testing"

	"ccagent/ui/internal/fixture"
)

func TestCorePane(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("/", "'pairwise", "enter", "K")
	s.has("Core of Physics.pairwise")
	s.line("44.0", "D# x -> case *## x (sqrtDouble") // the innermost note that is a cause
	s.keys("tab", "/", "'acc$", "enter")
	s.line(">", "1# -> acc")
	s.keys("2")
	s.has("Core of Physics.pairwise")
	s.keys("K")
	s.hasNot("Core of")
	s.has("code blocks")
	s.keys("3", "K")
	s.has("Core stands where the source does")
	none := start(t, fixture.Profile(t, fixture.Options{Samples: 100, NoText: true}), 120, 40, Options{ASCII: true})
	none.keys("K")
	none.has("the log holds no Core: build with")
}

// Code blocks share a line's samples out.
func TestCodeBlocks(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 200, 60, Options{ASCII: true})
	s.keys("2") // at the hottest line of what is selected
	s.line("44.0%  ~2.1 0x3100 Physics.$w$sgo +0x80")
	s.line("4.1%  ~0.8 0x3000 Physics.step +0x80")
}

package ui

import (
	"fmt"
	"testing"

	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/golden"
)

func TestAllocScreens(t *testing.T) {
	p := fixture.Profile(t, fixture.Options{Samples: 300})
	for _, size := range [][2]int{{80, 24}, {120, 40}, {60, 12}, {20, 5}} {
		s := start(t, p, size[0], size[1], Options{ASCII: true})
		s.keys("7")
		golden.Check(t, fmt.Sprintf("alloc-%dx%d.txt", size[0], size[1]), trimmed(s.screen()))
	}
}

// Enter on a thunk goes to the source where it is written.
func TestAllocOpensSource(t *testing.T) {
	s := start(t, fixture.Profile(t, fixture.Options{Samples: 300}), 120, 40, Options{ASCII: true})
	s.keys("7", "j", "enter")
	s.has("kick dt p f")
}

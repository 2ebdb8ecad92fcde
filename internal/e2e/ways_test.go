package e2e

import (
	"testing"

	"ccagent/internal/testprog"
)

// Nearly every stack of Haskell code is walked to its root in programs that are not optimised too. How
// they are linked is the matter of TestProgramsOfTheTable.
func TestWaysAreComplete(t *testing.T) {
	for _, c := range []struct {
		way  string
		opts testprog.Options
	}{
		{"-O0", testprog.Options{O0: true}},
		{"-O0 -threaded -prof", testprog.Options{O0: true, Threaded: true, Prof: true}},
	} {
		t.Run(c.way, func(t *testing.T) {
			exe := testprog.Build(t, "maps", c.opts)
			compileCalls(t, exe, "20", "1")
			log, _ := record(t, []string{"-e", "cpu-clock", "-F", "1999", "--max-overhead", "0"}, exe, "20000", "30")
			l := readLog(t, log)
			l.wantWhole(t)
			if haskell := l.wantRooted(t); haskell < 100 {
				t.Errorf("%d samples of Haskell code", haskell)
			}
		})
	}
}

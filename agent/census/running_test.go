package census

import (
	"testing"

	"ccagent/internal/testprog"
)

// What a running thread holds is known where its registers are, and said to be unknown where it is not seen that the OS
// thread runs Haskell code.
func TestRunningIsKnownOrNot(t *testing.T) {
	r := idle(t, testprog.Options{}, "spinner", "register", "1000")
	for _, seen := range []bool{true, false} {
		if !seen {
			r.run = runCode{}
		}
		c, err := r.AtRest(t.Context(), Options{Keep: 1 << 28})
		if err != nil {
			t.Fatal(err)
		}
		c.Copy.Close()
		known, unknown := 0, 1
		if seen {
			known, unknown = 1, 0
		}
		if len(c.Running) != known || c.Unknown != unknown {
			t.Errorf("seen: %v; it knows of %d threads that run, and not of %d", seen, len(c.Running), c.Unknown)
		}
	}
}

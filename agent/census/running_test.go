package census

import (
	"errors"
	"runtime"
	"testing"

	"ccagent/internal/testprog"
)

// What a running thread holds is known where its registers are, and said to be unknown where it is not seen that the OS
// thread runs Haskell code.
func TestRunningIsKnownOrNot(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "registers of x86-64"})
	}
	r := idle(t, testprog.Options{}, "spinner", "register", "1000")
	for _, seen := range []bool{true, false} {
		if !seen {
			r.run = runCode{}
		}
		known, unknown := 0, 1
		if seen {
			known, unknown = 1, 0
		}
		is := false
		// A busy machine does not stop it in time, or whenever it is in the scheduler.
		for tries := 0; !is && tries < 20; tries++ {
			c, err := r.AtRest(t.Context(), Options{Keep: 1 << 28})
			if errors.Is(err, ErrBusy) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Copy.Close()
			if is = len(c.Running) == known && c.Unknown == unknown; !is {
				t.Logf("seen: %v; it knows of %d threads that run, and not of %d", seen, len(c.Running), c.Unknown)
			}
			if !seen && len(c.Running) > 0 {
				t.Error("a running thread is known where the OS thread is not seen to run Haskell code")
			}
		}
		if !is {
			t.Errorf("seen: %v; no census knows of %d threads that run, and not of %d", seen, known, unknown)
		}
	}
}

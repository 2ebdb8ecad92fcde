package agent

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ccagent/agent/process"
)

// However a census is taken, one of a program that executes another meanwhile, or ends, fails with that reason, and says what to do.
func TestCensusOfAProgramThatIsGone(t *testing.T) {
	for name, o := range counts {
		t.Run(name, func(t *testing.T) {
			executing := startRestless(t, false, "exec", "100000")
			for err := error(nil); !errors.Is(err, process.ErrExecuted); {
				if _, err = executing.count(t.Context(), t, o); err == nil {
					continue // it was in time
				}
				if text := err.Error(); strings.Contains(text, "EOF") || errors.Is(err, process.ErrExecuted) != strings.Contains(text, "run ccagent heap again") {
					t.Fatal(err)
				}
			}
			// It is killed at some moment of a census, and of the next.
			for err := error(nil); !errors.Is(err, process.ErrEnded); {
				r := startRestless(t, true, "fork")
				begun := time.Now()
				_, _ = r.count(t.Context(), t, o) // one says how long they take here
				kill := time.AfterFunc(rand.N(time.Since(begun)), func() { _ = r.Process.Kill() })
				for err = nil; err == nil; {
					_, err = r.count(t.Context(), t, o)
				}
				kill.Stop()
				if text := err.Error(); strings.Contains(text, "EOF") || errors.Is(err, process.ErrEnded) != strings.Contains(text, "ccagent record") {
					t.Fatal(err)
				}
				_ = r.Process.Kill()
				r.status()
			}
		})
	}
}

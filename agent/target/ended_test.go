package target

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A program that somebody kills before its first instruction has the exit status that shells give it, not that of one which
// cannot be executed.
func TestEndedBeforeItRan(t *testing.T) {
	for status, want := range map[unix.WaitStatus]int{unix.WaitStatus(unix.SIGKILL): 137, unix.WaitStatus(unix.SIGSEGV) | 0x80: 139, 3 << 8: 3} {
		err := startError("program", endedError(status))
		var start *StartError
		if !errors.As(err, &start) || start.Status != want || !strings.Contains(err.Error(), "before its first instruction") {
			t.Errorf("%v: %v, status %d", status, err, want)
		}
	}
}

package hold

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestWaits(t *testing.T) {
	for _, c := range []struct {
		number int64
		result int64
		want   bool
	}{
		{unix.SYS_FUTEX, -512, true},
		{unix.SYS_PPOLL, -514, true},
		{unix.SYS_FUTEX, -516, true},
		{unix.SYS_EPOLL_PWAIT, -int64(unix.EINTR), true},
		{unix.SYS_READ, -512, true},
		{unix.SYS_READ, 1, false},                    // it had ended
		{unix.SYS_FUTEX, -int64(unix.EAGAIN), false}, // it had, too
		{unix.SYS_SCHED_YIELD, 0, false},             // did not wait
		{unix.SYS_WRITE, -512, false},                // a collection may do so
		{-1, -512, false},                            // no system call: an interrupt
	} {
		if got := waits(c.number, uint64(c.result)); got != c.want {
			t.Errorf("system call %d that returns %d: %v", c.number, c.result, got)
		}
	}
}

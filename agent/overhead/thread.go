package overhead

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// CPUShare is the part of the agent's CPU time that is charged as the target's: the agent has a CPU
// of its own unless all are busy.
func CPUShare() float64 { return 1 / float64(max(runtime.NumCPU(), 1)) }

// ThreadCPU is the CPU time of the calling OS thread, in ns; 0 if that cannot be had.
func ThreadCPU() uint64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return uint64(t.Nano())
}

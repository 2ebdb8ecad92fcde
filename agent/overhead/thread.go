package overhead

import "golang.org/x/sys/unix"

// ThreadCPU is the CPU time of the calling OS thread, in ns; 0 if that cannot be had.
func ThreadCPU() uint64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return 0
	}
	return uint64(t.Nano())
}

package overhead

import (
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Hasten gives the calling goroutine's thread real-time priority, if the kernel allows
// it, and returns a function that undoes that. With all CPUs busy, a window in which dear probes
// are in place, or in which the target stands, would otherwise last many times its length, at its cost.
func Hasten() (undo func()) {
	runtime.LockOSThread()
	const lowest = 1
	usual, unknown := unix.SchedGetAttr(0, 0)
	first := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: lowest, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	err := unix.SchedSetAttr(0, &first, 0)
	if relaxed && err != nil { // real-time threads are woken in time
		_ = setSlack(usualSlack)
	}
	return func() {
		if relaxed && err != nil {
			_ = setSlack(Slack)
		}
		if err == nil {
			if unknown != nil || unix.SchedSetAttr(0, usual, 0) != nil {
				return // the thread ends with the goroutine that is locked to it
			}
		}
		runtime.UnlockOSThread()
	}
}

// usualSlack is the kernel's.
const usualSlack = 50 * time.Microsecond

// ShortSleep is how long the kernel is asked to wait at once: the timers of Go's runtime may
// be a millisecond late.
const ShortSleep = 2 * time.Millisecond

// Sleep sleeps by the kernel's timer. Callers pass times so short that the end of a capture need not
// interrupt it.
func Sleep(length time.Duration) {
	ts := unix.NsecToTimespec(int64(length))
	if length < ShortSleep {
		// A raw system call, so that Go's scheduler does not hand the processor to another goroutine.
		unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
	} else {
		unix.Nanosleep(&ts, nil)
	}
}

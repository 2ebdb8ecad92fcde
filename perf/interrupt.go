package perf

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Interrupt is how an event's overflow calls the kernel.
type Interrupt uint8

const (
	// NoInterrupt: the kernel is where the event happens already.
	NoInterrupt Interrupt = iota
	// TimerInterrupt: an hrtimer's, of the clocks.
	TimerInterrupt
	// CounterInterrupt: a counter's of the PMU, mostly not maskable.
	CounterInterrupt
	// Interrupts is how many kinds there are.
	Interrupts
)

// Interrupt tells how the event's overflows call the kernel.
func (e Event) Interrupt() Interrupt {
	switch {
	case e.Kind != "software":
		return CounterInterrupt
	case e.is(ClockEvent) || e.is("task-clock"):
		return TimerInterrupt
	}
	return NoInterrupt
}

// DefaultInterruptNs is what an interrupt is taken to cost where it could not be
// measured: a guess at what it takes without a hypervisor in between.
const DefaultInterruptNs = 2000

// Where the measured figure is out of these bounds, it is of something else.
const (
	leastInterruptNs = 100
	mostInterruptNs  = 500_000
)

const (
	// interruptPeriod and interruptCycles make about a thousand overflows a second, as
	// is usual: in a virtual machine those that follow each other sooner cost less, by a
	// third at ten thousand.
	interruptPeriod = 1003 * time.Microsecond
	interruptCycles = 3_000_000
	// interruptsSeen do for a median; interruptTime is for how long they are waited for,
	// and interruptsLeast without which there is none.
	interruptsSeen  = 41
	interruptTime   = 200 * time.Millisecond
	interruptsLeast = 9
)

// MeasureInterrupt measures what an interrupt of that kind takes of the thread that it
// hits, in ns: entering and leaving the kernel and, in a virtual machine, the exits to
// the hypervisor, which no clock of the kernel tells apart. The calling goroutine's
// thread looks at the clock all the time, with an event of its own, and sees how long
// it is kept from it. It takes about 40 ms.
func MeasureInterrupt(kind Interrupt) (ns float64, err error) {
	var e Event
	rate := Rate{Period: uint64(interruptPeriod)}
	switch kind {
	case NoInterrupt:
		return 0, nil
	case TimerInterrupt:
		e, err = Lookup(ClockEvent)
	case CounterInterrupt:
		e, err = Lookup("cycles")
		rate.Period = interruptCycles
	}
	if err != nil {
		return 0, err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := attributes(e, rate)[0]
	attr.Bits &^= unix.PerfBitInherit
	attr.Sample_type = unix.PERF_SAMPLE_IP
	fd, err := open(&attr, 0)
	if err != nil {
		return 0, explainOpen(e, err)
	}
	defer unix.Close(fd)
	// Read-only, so that the kernel writes over what was not read: only the head,
	// which tells how many there were, is looked at.
	ring, err := unix.Mmap(fd, 0, 2*unix.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, fmt.Errorf("map the ring of %s: %w", e, err)
	}
	defer unix.Munmap(ring)
	head := (*uint64)(unsafe.Pointer(&ring[unsafe.Offsetof(unix.PerfEventMmapPage{}.Data_head)]))
	if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
		return 0, fmt.Errorf("enable %s: %w", e, err)
	}
	costs := gaps(head)
	if len(costs) < interruptsLeast {
		return 0, fmt.Errorf("measure interrupts: %s: %w", e, errFewOverflows)
	}
	slices.Sort(costs)
	if ns = float64(costs[len(costs)/2]); ns < leastInterruptNs || ns > mostInterruptNs {
		return 0, fmt.Errorf("measure interrupts: %.0f ns each is not plausible", ns)
	}
	return ns, nil
}

var errFewOverflows = errors.New("it hardly overflows; others may take the CPU")

// gaps gives how long the thread did not get to look at the clock whenever the head of
// an event's ring had moved, less what looking takes.
func gaps(head *uint64) (found []time.Duration) {
	begin := time.Now()
	seen := atomic.LoadUint64(head)
	last, before, usual := time.Duration(0), time.Duration(0), time.Hour
	for last < interruptTime && len(found) < interruptsSeen {
		at := atomic.LoadUint64(head)
		now := time.Since(begin)
		gap := now - last
		last = now
		if at != seen {
			seen = at
			// The head may have moved right after it was looked at.
			found = append(found, max(gap, before))
		} else {
			usual = min(usual, gap)
		}
		before = gap
	}
	for i := range found {
		found[i] -= usual
	}
	return found
}

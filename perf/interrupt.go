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

// Interrupt is the way in which an event's overflow enters the kernel.
type Interrupt uint8

const (
	// NoInterrupt: the event happens in the kernel.
	NoInterrupt Interrupt = iota
	// TimerInterrupt: an hrtimer's interrupt, for clock events.
	TimerInterrupt
	// CounterInterrupt: the interrupt of a PMU's counter, usually not maskable.
	CounterInterrupt
	// Interrupts is the number of kinds.
	Interrupts
)

// Interrupt returns how the event's overflows enter the kernel.
func (e Event) Interrupt() Interrupt {
	switch {
	case e.Kind != "software":
		return CounterInterrupt
	case e.Clock():
		return TimerInterrupt
	}
	return NoInterrupt
}

// DefaultInterruptNs is the assumed cost of an interrupt if it could not be measured: an
// estimate for machines without a hypervisor.
const DefaultInterruptNs = 2000

// A measurement outside these bounds is rejected.
const (
	leastInterruptNs = 100
	mostInterruptNs  = 500_000
)

const (
	// interruptPeriod and interruptCycles cause about a thousand overflows a second, the
	// usual rate: in a virtual machine interrupts cost less at higher rates, by a third at
	// ten thousand a second.
	interruptPeriod = 1003 * time.Microsecond
	interruptCycles = 3_000_000
	// interruptsSeen overflows suffice for a median, interruptTime limits the time to wait
	// for them, and with fewer than interruptsLeast the measurement fails.
	interruptsSeen  = 41
	interruptTime   = 200 * time.Millisecond
	interruptsLeast = 9
)

// MeasureInterrupt measures the time that an interrupt of that kind takes from the
// interrupted thread, in ns: entering and leaving the kernel and, in a virtual machine, the
// exits to the hypervisor, which no clock of the kernel shows. The calling goroutine's
// thread has an event of its own; it reads the clock in a loop and sees the gaps. It takes
// about 40 ms.
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
	// The ring is mapped read-only, so that the kernel overwrites unread records: only the
	// head is read, which shows the number of overflows.
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

var errFewOverflows = errors.New("it hardly overflows; other processes may use the CPU")

// gaps returns the durations of the gaps between two readings of the clock during which the
// head of an event's ring moved, less the duration of a reading.
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
			// The head may have moved right after it was read.
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

package perf

import (
	"errors"
	"fmt"
	"math"
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
	// interruptsSeen overflows suffice for what is usual, interruptTime limits the time to wait
	// for them, and with fewer than interruptsLeast the measurement fails. The lowest of
	// interruptsTurns figures are taken: what else a busy machine does only adds.
	interruptsSeen  = 15
	interruptTime   = 70 * time.Millisecond
	interruptsLeast = 5
	interruptsTurns = 3
)

// MeasureInterrupt measures the time that an interrupt of that kind takes from the
// interrupted thread, in ns: entering and leaving the kernel, the exits to the hypervisor in a
// virtual machine, which no clock of the kernel shows, and what the thread loses because the
// kernel's code and data have displaced its own in the caches. It is how much longer work takes
// during which an overflow comes than without. The calling goroutine's thread has an event
// of its own. work has to take about the same time at each call, some tens of µs, and to use the caches as
// programs do. It takes about 40 ms.
func MeasureInterrupt(kind Interrupt, work func()) (ns float64, err error) {
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
	const never = time.Duration(math.MaxInt64)
	lowestHit, lowestWhole := never, never
	for range interruptsTurns {
		hit, whole := interrupted(head, work)
		if len(hit) >= interruptsLeast && len(whole) >= interruptsLeast {
			lowestHit, lowestWhole = min(lowestHit, usual(hit)), min(lowestWhole, usual(whole))
		}
	}
	ns = float64(lowestHit - lowestWhole)
	switch {
	case lowestHit == never:
		return 0, fmt.Errorf("measure interrupts: %s: %w", e, errFewOverflows)
	case ns < leastInterruptNs || ns > mostInterruptNs:
		return 0, fmt.Errorf("measure interrupts: %.0f ns each is not plausible", ns)
	}
	return ns, nil
}

var errFewOverflows = errors.New("it hardly overflows; other processes may use the CPU")

// interrupted returns how long work took each time that the head of an event's ring moved
// meanwhile, and each time that it did not.
func interrupted(head *uint64, work func()) (hit, whole []time.Duration) {
	begin := time.Now()
	seen := atomic.LoadUint64(head)
	for last := time.Duration(0); last < interruptTime && len(hit) < interruptsSeen; {
		work()
		now := time.Since(begin)
		took := now - last
		last = now
		// An overflow between the two readings would be taken for one of the next work; they are
		// some ns apart.
		if at := atomic.LoadUint64(head); at != seen {
			seen = at
			hit = append(hit, took)
		} else {
			whole = append(whole, took)
		}
	}
	return hit, whole
}

// usual is the duration that a third does not exceed: about the median, were it not that on a busy machine
// some were interrupted by other processes, too.
func usual(x []time.Duration) time.Duration {
	slices.Sort(x)
	return x[len(x)/3]
}

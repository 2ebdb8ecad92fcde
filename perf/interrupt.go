package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
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
// measured: about what it takes without a hypervisor in between, with cold caches.
const DefaultInterruptNs = 2000

// Where the measured figure is out of these bounds, it is of something else.
const (
	leastInterruptNs = 100
	mostInterruptNs  = 500_000
)

const (
	interruptSlice  = 2 * time.Millisecond
	interruptRounds = 9
	// interruptPeriod is that of overflows meanwhile: by it neither is a slow
	// virtual machine flooded, nor the kernel's default limit reached.
	interruptPeriod = 100 * time.Microsecond
	// interruptCycles is about as much at the clock rates of today.
	interruptCycles = 300_000
)

// MeasureInterrupt measures what an interrupt of that kind takes of the CPU time of
// the thread that it hits, in ns: entering and leaving the kernel and, in a virtual
// machine, the exits to the hypervisor, which no clock of the kernel tells apart. The
// calling goroutine's thread counts in slices of time, every other with an event of
// its own; what it counts less is the interrupts'. It takes about 40 ms.
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
	overflows := func() uint64 {
		return binary.NativeEndian.Uint64(ring[unsafe.Offsetof(unix.PerfEventMmapPage{}.Data_head):]) / interruptRecord
	}
	var costs []float64
	for range interruptRounds {
		free, err := spin(interruptSlice)
		if err != nil {
			return 0, err
		}
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return 0, fmt.Errorf("enable %s: %w", e, err)
		}
		before := overflows()
		held, err := spin(interruptSlice)
		if err != nil {
			return 0, err
		}
		n := float64(overflows() - before)
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0); err != nil {
			return 0, fmt.Errorf("disable %s: %w", e, err)
		}
		if n > 0 {
			costs = append(costs, (held.time-held.counted*free.time/free.counted)/n)
		}
	}
	if len(costs) == 0 {
		return 0, errNoOverflow
	}
	slices.Sort(costs)
	if ns = costs[len(costs)/2]; ns < leastInterruptNs || ns > mostInterruptNs {
		return 0, fmt.Errorf("measure interrupts: %.0f ns each is not plausible", ns)
	}
	return ns, nil
}

var errNoOverflow = errors.New("measure interrupts: the event does not overflow")

// interruptRecord is the size of a record with an address, header and all.
const interruptRecord = 16

// slice is how much was counted in some time on a CPU, ns, interrupts and all.
type slice struct{ counted, time float64 }

// spin counts for a while.
func spin(length time.Duration) (s slice, err error) {
	const chunk = 1000 // about a microsecond
	waited, err := runDelay()
	if err != nil {
		return s, err
	}
	begin := time.Now()
	passed, x := time.Duration(0), uint64(1)
	for ; passed < length; passed = time.Since(begin) {
		for range chunk {
			x = x*6364136223846793005 + 1442695040888963407
		}
		s.counted++
	}
	runtime.KeepAlive(x)
	still, err := runDelay()
	s.time = float64(passed) - (still - waited)
	return s, err
}

// runDelay is for how long the calling thread has waited for a CPU that others had,
// ns. CPU time would be simpler, but many kernels leave that of interrupts out.
func runDelay() (float64, error) {
	b, err := os.ReadFile("/proc/thread-self/schedstat")
	if err != nil {
		return 0, fmt.Errorf("measure interrupts: %w", err)
	}
	var ran, waited float64
	if _, err := fmt.Sscan(string(b), &ran, &waited); err != nil {
		return 0, fmt.Errorf("measure interrupts: %w", err)
	}
	return waited, nil
}

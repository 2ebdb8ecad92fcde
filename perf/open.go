package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Rate is how often an event is sampled: Frequency samples a second if that is set, else one
// in Period counts.
type Rate struct {
	Frequency uint64 // Hz
	Period    uint64
}

// attributes returns the attributes to open, one for each PMU that counts the event. They
// are the kernel's own because go-perf's cannot request precise addresses.
func attributes(e Event, r Rate) []unix.PerfEventAttr {
	attr := unix.PerfEventAttr{
		Type: uint32(e.Type), Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Config: e.Config, Ext1: e.Config1, Ext2: e.Config2, Sample: r.Period,
		Read_format: unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
		Bits:        unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitExcludeHv,
	}
	if r.Frequency != 0 {
		attr.Sample = r.Frequency
		attr.Bits |= unix.PerfBitFreq
	}
	if e.OnlyUser {
		attr.Bits |= unix.PerfBitExcludeKernel
	}
	if e.OnlyKernel {
		attr.Bits |= unix.PerfBitExcludeUser
	}
	if e.Precise&1 != 0 {
		attr.Bits |= unix.PerfBitPreciseIPBit1
	}
	if e.Precise&2 != 0 {
		attr.Bits |= unix.PerfBitPreciseIPBit2
	}
	if len(e.Cores) == 0 {
		return []unix.PerfEventAttr{attr}
	}
	// Generic events have the PMU in the upper half of config (PERF_PMU_TYPE_SHIFT).
	var each []unix.PerfEventAttr
	for _, p := range e.Cores {
		on := attr
		on.Config |= uint64(p.Type) << 32
		each = append(each, on)
	}
	return each
}

func open(attr *unix.PerfEventAttr, tid int) (int, error) { return openPerf(attr, tid, -1) }

// openPerf opens an event on a thread, or on a CPU; −1 for any.
func openPerf(attr *unix.PerfEventAttr, tid, cpu int) (int, error) {
	for {
		fd, err := unix.PerfEventOpen(attr, tid, cpu, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

// Sampled holds the open file descriptors of one event on a target's threads.
type Sampled struct {
	Event Event
	fds   []int
	past  Count // counts of descriptors that Switch has replaced
}

// ErrNoThreads is returned if a process ends before its threads can be opened.
var ErrNoThreads = errors.New("the process has no threads left")

// Open opens the event on each of the threads, disabled, with the program to run at every
// overflow. Threads and processes that they create are sampled too. Threads that have ended
// are left out. The error is an *UnavailableError if the event cannot be sampled here.
func Open(e Event, r Rate, prog *ebpf.Program, tids []int) (_ *Sampled, err error) {
	s := &Sampled{Event: e}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	attrs := attributes(e, r)
	for _, tid := range tids {
		for i := range attrs {
			fd, err := open(&attrs[i], tid)
			if errors.Is(err, unix.ESRCH) {
				continue
			}
			if errors.Is(err, unix.EMFILE) {
				return nil, fmt.Errorf("open %s on thread %d: %w; raise the limit on open files (ulimit -n)", e, tid, err)
			}
			if err != nil {
				return nil, explainOpen(e, err)
			}
			s.fds = append(s.fds, fd)
			if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_SET_BPF, prog.FD()); err != nil {
				return nil, fmt.Errorf("attach the stack walker to %s: %w", e, err)
			}
		}
	}
	if len(s.fds) == 0 {
		return nil, ErrNoThreads
	}
	return s, nil
}

// Enable starts sampling.
func (s *Sampled) Enable() error {
	for _, fd := range s.fds {
		if err := unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_ENABLE, 0); err != nil {
			return fmt.Errorf("enable %s: %w", s.Event, err)
		}
	}
	return nil
}

// Disable stops sampling; records in the ring buffer can still be read.
func (s *Sampled) Disable() error {
	var err error
	for _, fd := range s.fds {
		err = errors.Join(err, unix.IoctlSetInt(fd, unix.PERF_EVENT_IOC_DISABLE, 0))
	}
	return err
}

// Switch replaces this opening of the event by another one, which is not enabled yet. Each
// thread loses its current partial period, as at the end of sampling; nothing is counted
// twice. Afterwards other is empty.
func (s *Sampled) Switch(other *Sampled) error {
	if err := s.Disable(); err != nil {
		return err
	}
	if err := other.Enable(); err != nil {
		return err
	}
	past, err := s.Count()
	if err != nil {
		return err
	}
	err = s.Close()
	s.past = past
	s.fds, other.fds = other.fds, nil
	return err
}

// Count is what an event has counted since it was enabled.
type Count struct {
	Value uint64 // in the event's unit, while it was on a counter
	// EnabledNs is the CPU time of the threads. RunningNs is the part of it in which the
	// event was on a counter; it is smaller if events take turns on the counters.
	EnabledNs, RunningNs uint64
}

// Files is the number of file descriptors that Count reads.
func (s *Sampled) Files() int { return len(s.fds) }

// Count sums the counts of all threads.
func (s *Sampled) Count() (c Count, err error) {
	c = s.past
	for _, fd := range s.fds {
		one, err := readCount(fd)
		if err != nil {
			return c, fmt.Errorf("read count of %s: %w", s.Event, err)
		}
		c.add(one)
	}
	return c, nil
}

func (c *Count) add(other Count) {
	c.Value += other.Value
	c.EnabledNs += other.EnabledNs
	c.RunningNs += other.RunningNs
}

// readCount reads the count of one file descriptor; it is zero if the event is in an error
// state.
func readCount(fd int) (c Count, err error) {
	var b [24]byte
	n, err := unix.Read(fd, b[:])
	if err != nil || n < len(b) {
		return c, err
	}
	return Count{
		Value:     binary.NativeEndian.Uint64(b[:]),
		EnabledNs: binary.NativeEndian.Uint64(b[8:]),
		RunningNs: binary.NativeEndian.Uint64(b[16:]),
	}, nil
}

// Close closes the event on every thread.
func (s *Sampled) Close() error {
	var err error
	for _, fd := range s.fds {
		err = errors.Join(err, unix.Close(fd))
	}
	s.fds = nil
	return err
}

// Threads lists the kernel threads of a process. The error wraps os.ErrNotExist if there is
// no such process.
func Threads(pid int) ([]int, error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, fmt.Errorf("list threads of process %d: %w", pid, err)
	}
	tids := make([]int, 0, len(entries))
	for _, e := range entries {
		if tid, err := strconv.Atoi(e.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	slices.Sort(tids)
	return tids, nil
}

// NewThreads reports whether the process has threads that are not in tids, which is sorted.
func NewThreads(pid int, tids []int) (bool, error) {
	now, err := Threads(pid)
	if err != nil {
		return false, err
	}
	for _, tid := range now {
		if _, known := slices.BinarySearch(tids, tid); !known {
			return true, nil
		}
	}
	return false, nil
}

// OpenBare opens the event on the calling thread for the programs that it executes and for
// its children, without anything that runs at overflows: it shows the cost of the interrupts
// alone. It ends with the thread and those children.
func OpenBare(e Event, r Rate) error {
	for _, attr := range attributes(e, r) {
		attr.Bits |= unix.PerfBitEnableOnExec
		if _, err := open(&attr, 0); err != nil {
			return explainOpen(e, err)
		}
	}
	return nil
}

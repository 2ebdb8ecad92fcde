package perf

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
	goperf "github.com/elastic/go-perf"
	"golang.org/x/sys/unix"
)

// Rate says how often an event is sampled: by frequency if Frequency is set,
// else every Period counts.
type Rate struct {
	Frequency uint64 // Hz
	Period    uint64
}

func attributes(e Event, r Rate) *goperf.Attr {
	attr := &goperf.Attr{Label: e.Name, Type: e.Type, Config: e.Config}
	attr.Options.Disabled = true
	attr.Options.Inherit = true
	attr.Options.ExcludeHypervisor = true
	if r.Frequency != 0 {
		attr.SetSampleFreq(r.Frequency)
	} else {
		attr.SetSamplePeriod(r.Period)
	}
	return attr
}

// Sampled are the open file descriptors of one event on a target's threads.
type Sampled struct {
	Event  Event
	events []*goperf.Event
}

// ErrNoThreads is returned when a process ended before its threads could be
// opened.
var ErrNoThreads = errors.New("the process has no threads left")

// Open opens the event on each of the threads, disabled, running the program
// at every overflow. Threads and processes that they create are sampled as
// well. Threads that have ended meanwhile are left out. The error is an
// *UnavailableError where the event is to blame.
func Open(e Event, r Rate, prog *ebpf.Program, tids []int) (_ *Sampled, err error) {
	s := &Sampled{Event: e}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	attr := attributes(e, r)
	for _, tid := range tids {
		ev, err := goperf.OpenWithFlags(attr, tid, goperf.AnyCPU, nil, unix.PERF_FLAG_FD_CLOEXEC)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if errors.Is(err, unix.EMFILE) {
			return nil, fmt.Errorf("open %s on thread %d: %w; raise the limit on open files (ulimit -n)", e.Name, tid, err)
		}
		if err != nil {
			return nil, explainOpen(e, err)
		}
		s.events = append(s.events, ev)
		if err := ev.SetBPF(uint32(prog.FD())); err != nil {
			return nil, fmt.Errorf("attach the stack walker to %s: %w", e.Name, err)
		}
	}
	if len(s.events) == 0 {
		return nil, ErrNoThreads
	}
	return s, nil
}

// Enable starts sampling.
func (s *Sampled) Enable() error {
	for _, ev := range s.events {
		if err := ev.Enable(); err != nil {
			return fmt.Errorf("enable %s: %w", s.Event.Name, err)
		}
	}
	return nil
}

// Disable stops sampling; what is in the ring buffer stays readable.
func (s *Sampled) Disable() error {
	var err error
	for _, ev := range s.events {
		err = errors.Join(err, ev.Disable())
	}
	return err
}

// Close closes the event on every thread.
func (s *Sampled) Close() error {
	var err error
	for _, ev := range s.events {
		err = errors.Join(err, ev.Close())
	}
	s.events = nil
	return err
}

// Threads lists the kernel threads of a process. The error wraps
// os.ErrNotExist when there is no such process.
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

// NewThreads reports whether the process has threads that are not in tids,
// which is sorted.
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

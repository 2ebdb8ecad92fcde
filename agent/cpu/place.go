package cpu

import (
	"errors"
	"slices"

	"ccagent/agent/procfs"
	"ccagent/eventlog"
	"ccagent/perf"

	"golang.org/x/sys/unix"
)

// placed is an event that is open, on CPUs or on threads.
type placed interface {
	Enable() error
	Disable() error
	Count() (perf.Count, error)
	Files() int
	Close() error
}

// open opens an event, disabled: clocks on CPUs, since on threads they would cost the program at
// every switch of threads, and events of a PMU too where the kernel lets it; what happens in the
// kernel anyway on threads, where it costs nothing and counts are exact.
func (s *cpu) open(e *event, tids []int) error {
	if e.tick != nil {
		if !e.tick.stopped && !e.tick.stays(s.cpus) {
			if err := s.stopTick(e); err != nil {
				return err
			}
		}
		e.rate = e.tick.eventRate()
	}
	e.now, e.method = e.rate, eventlog.MethodOnThreads
	if e.event.Clock() || e.event.Kind != "software" {
		on, err := perf.OpenOnCPUs(e.event, e.now, e.program, s.cpus)
		if err == nil {
			e.counter, e.method = newCounter(e.event, on), eventlog.MethodOnCPUs
			if e.tick != nil && !e.tick.stopped {
				e.method = eventlog.MethodTick
			}
			return nil
		}
		if unavailable := (*perf.UnavailableError)(nil); e.event.Clock() || !errors.As(err, &unavailable) {
			return err
		}
	}
	on, err := perf.Open(e.event, e.now, e.program, tids)
	if err != nil {
		return err
	}
	e.counter = newCounter(e.event, on)
	return nil
}

// onCPUs is what is open on CPUs, nil if that is threads.
func (e *event) onCPUs() *perf.OnCPUs {
	if e.counter == nil {
		return nil
	}
	on, _ := e.counter.placed.(*perf.OnCPUs)
	return on
}

// onThreads is what is open on threads, nil if that is CPUs.
func (e *event) onThreads() *perf.Sampled {
	if e.counter == nil {
		return nil
	}
	on, _ := e.counter.placed.(*perf.Sampled)
	return on
}

// move has events open where the target may run by now: CPUs come and go, and so do its
// permissions to run there.
func (s *cpu) move() error {
	var tids []int
	var err error
	if !s.joined {
		if tids, _, err = s.host.Threads(); err != nil {
			return err
		}
	}
	cpus, err := s.mayRunOn(tids)
	if err != nil {
		return err
	}
	if len(cpus) > 0 {
		s.cpus = cpus
	}
	open := []*perf.OnCPUs{s.boosts.on}
	for _, e := range s.events {
		open = append(open, e.onCPUs())
	}
	for _, on := range open {
		if on == nil {
			continue
		}
		if err := on.Move(s.cpus); err != nil {
			return err
		}
		if _, err := on.Revive(); err != nil {
			return err
		}
	}
	return nil
}

// manyThreads is from how many threads on their permissions are not asked for: they are taken
// to run anywhere.
const manyThreads = 256

// mayRunOn lists the CPUs on which some of the threads may run.
func (s *cpu) mayRunOn(tids []int) ([]int, error) {
	online, err := procfs.OnlineCPUs()
	if err != nil || s.joined || len(tids) > manyThreads {
		return online, err
	}
	var allowed [maxCPUs]bool
	for _, tid := range tids {
		var set unix.CPUSet
		err := unix.SchedGetaffinity(tid, &set)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil { // more CPUs than a set has room for
			return online, nil
		}
		for _, cpu := range online {
			if cpu < maxCPUs && set.IsSet(cpu) {
				allowed[cpu] = true
			}
		}
	}
	return slices.DeleteFunc(online, func(cpu int) bool { return cpu < maxCPUs && !allowed[cpu] }), nil
}

// maxCPUs is how many a unix.CPUSet has room for.
const maxCPUs = 1024

// processesOf lists the processes of threads.
func processesOf(tids []int) []uint32 {
	var pids []uint32
	for _, tid := range tids {
		status, err := procfs.ReadStatus(tid)
		if err != nil { // it has ended
			continue
		}
		if pid := uint32(status.TGID); !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

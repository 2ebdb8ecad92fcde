package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// ThreadTime is the CPU time of a thread, ns.
type ThreadTime = samplerThreadTime

// ErrTooManyTargets is returned if there is no room for another target.
var ErrTooManyTargets = errors.New("too many processes are followed already")

// AddTarget has events that are opened on CPUs sampled in a process, by its id in the agent's
// pid namespace, and in what it forks from then on, if Targets is loaded.
func (s *Sampler) AddTarget(pid uint32) error {
	err := s.maps.Targets.Put(pid, uint32(0))
	if errors.Is(err, unix.E2BIG) {
		err = ErrTooManyTargets
	}
	if err != nil {
		return fmt.Errorf("sample process %d: %w", pid, err)
	}
	return nil
}

// RemoveTarget undoes AddTarget. It is no error if the process was no target.
func (s *Sampler) RemoveTarget(pid uint32) error {
	if err := s.maps.Targets.Delete(pid); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("stop sampling process %d: %w", pid, err)
	}
	return nil
}

// SetBoost has the event of BoostProgram sample a random part, in 0..1, of its overflows in a process that
// is a target; in what it forks there are none. It is no error if the process is no target any more.
func (s *Sampler) SetBoost(pid uint32, part float64) error {
	err := s.maps.Targets.Update(pid, threshold(part), ebpf.UpdateExist)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("boost process %d: %w", pid, err)
	}
	return nil
}

// BoostProgram is EventProgram of an event that is sampled in boosted processes only (SetBoost), beside the
// one with that index. Its samples have SampleBoosted set.
func (s *Sampler) BoostProgram(event int) (*ebpf.Program, error) {
	return s.load(samplerProgOnEvent, event, &s.programs, func(c *ebpf.CollectionSpec, _ map[string]*ebpf.Map) error {
		return c.Variables[samplerVarOnlyBoosted].Set(uint8(1))
	})
}

// SampleBoosted is set in SampleHeader.Flags of samples by BoostProgram.
const SampleBoosted = uint16(samplerSampleFlagsSAMPLE_BOOSTED)

// Others returns how often an event has hit processes that are not sampled.
func (s *Sampler) Others(event int) (n uint64, err error) {
	var perCPU []uint64
	if err := s.maps.Others.Lookup(uint32(event), &perCPU); err != nil {
		return 0, fmt.Errorf("read counts of hits in other processes: %w", err)
	}
	for _, on := range perCPU {
		n += on
	}
	return n, nil
}

// Targets is the part of the walker that follows what the targets fork, and knows the CPU time
// of their threads. RecordThreadEnds and RecordThreadEnded are its records.
type Targets struct {
	links []link.Link
	times *link.Iter
}

// LoadTargets loads it, and has it run. The programs are the sampler's own.
func (s *Sampler) LoadTargets() (_ *Targets, err error) {
	t := &Targets{}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	for _, name := range []string{samplerProgOnFork, samplerProgOnExit, samplerProgOnFree} {
		program, err := s.load(name, 0, &s.others, nil)
		if err != nil {
			return nil, err
		}
		l, err := link.AttachTracing(link.TracingOptions{Program: program})
		if err != nil {
			return nil, fmt.Errorf("follow forks and ends of threads: %w", err)
		}
		t.links = append(t.links, l)
	}
	program, err := s.load(samplerProgOnThread, 0, &s.others, nil)
	if err != nil {
		return nil, err
	}
	t.times, err = link.AttachIter(link.IterOptions{Program: program})
	if errors.Is(err, unix.EPERM) {
		// A filter of system calls refuses links, which tracing does without: see HasTimes.
		return t, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the CPU time of threads: %w", err)
	}
	return t, nil
}

// HasTimes reports whether Times can be asked: where the kernel's links are refused it cannot.
func (t *Targets) HasTimes() bool { return t.times != nil }

// Times appends the CPU time that each thread of the targets has used by now. That of a running
// thread is as of the last tick.
func (t *Targets) Times(times []ThreadTime) ([]ThreadTime, error) {
	times, err := appendThreads(times, t.times)
	if err != nil {
		return times, fmt.Errorf("read the CPU time of threads: %w", err)
	}
	return times, nil
}

// Close ends it. Targets remain sampled.
func (t *Targets) Close() error {
	var errs []error
	for _, l := range t.links {
		errs = append(errs, l.Close())
	}
	t.links = nil
	if t.times != nil {
		errs = append(errs, t.times.Close())
		t.times = nil
	}
	return errors.Join(errs...)
}

// Package cpu samples events that the kernel counts: CPU time, cycles, cache misses, and all
// others that perf knows, each by an event on every thread of the target.
package cpu

import (
	"errors"
	"sync"

	"ccagent/agent/overhead"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/perf"
)

// Kind makes the source of counted events. It takes every name for one of perf's, so it comes
// last in the list of kinds.
func Kind() source.Kind { return source.Kind{Grant: grant, New: open} }

// cpu is the source of all counted events of a capture.
type cpu struct {
	source.Base
	host     *source.Host
	events   []*event
	sampling *overhead.Sampling
	limit    limit
	thins    bool   // overflows are passed over, as their rate cannot be changed
	stale    bool   // counts are to be read before the next sample is weighed
	taken    uint64 // samples of all events
}

func open(h *source.Host, asked []*source.Event, _ source.Need) source.Source {
	if len(asked) == 0 {
		return nil
	}
	s := &cpu{host: h, sampling: h.Budget.Sampling(), stale: true}
	for _, a := range asked {
		e := a.Detail.(*event)
		s.events = append(s.events, e)
		h.Budget.Costs.NeedInterrupt(e.event.Interrupt())
	}
	return s
}

// Load loads what runs at overflows, side by side, since the kernel verifies programs for a
// while.
func (s *cpu) Load() error {
	errs := make([]error, len(s.events))
	var loads sync.WaitGroup
	for i, e := range s.events {
		loads.Go(func() { e.program, errs[i] = s.host.Walker.EventProgram(int(e.granted.Def.Index)) })
	}
	loads.Wait()
	return errors.Join(errs...)
}

// Follow opens the events, disabled, on threads.
func (s *cpu) Follow(tids []int) error {
	if err := s.Unfollow(); err != nil {
		return err
	}
	for _, e := range s.events {
		e.now = e.rate
		sampled, err := perf.Open(e.event, e.rate, e.program, tids)
		if err != nil {
			return err
		}
		e.counter = &counter{sampled: sampled, scale: 1}
	}
	return nil
}

// Unfollow closes the events.
func (s *cpu) Unfollow() error {
	var err error
	for _, e := range s.events {
		if e.counter != nil {
			err = errors.Join(err, e.counter.sampled.Close())
			e.counter = nil
		}
	}
	return err
}

// Start enables the events.
func (s *cpu) Start() error {
	c, err := s.Cost()
	if err != nil {
		return err
	}
	s.sampling.Begin(s.used(c, s.host.TargetCPU()))
	for _, e := range s.events {
		if err := e.counter.sampled.Enable(); err != nil {
			return err
		}
	}
	return nil
}

// Consume weighs a sample and writes it.
func (s *cpu) Consume(r *perf.Sample) error {
	if s.stale {
		if err := s.follow(false); err != nil {
			return err
		}
		s.stale = false
	}
	im, err := s.host.Image(r.Pid)
	if err != nil {
		return err
	}
	if e := s.at(r.Event); e != nil {
		r.Period = e.counter.weigh(r.Period)
		e.taken++
	}
	s.taken++
	_, err = s.host.Write(im, r)
	return err
}

// at returns the event of an index.
func (s *cpu) at(index uint16) *event {
	for _, e := range s.events {
		if e.granted.Def.Index == uint32(index) {
			return e
		}
	}
	return nil
}

// Throttle charges samples, and changes the events' rates where that is needed.
func (s *cpu) Throttle(u source.Use) error {
	s.stale = true
	before := s.sampling.Part()
	s.sampling.Pass(s.used(u.Cost, u.Target), u.Handling)
	if part := s.sampling.Part(); part != before {
		return s.resample(part)
	}
	return nil
}

func (s *cpu) used(c source.Cost, target uint64) overhead.Use {
	return overhead.Use{
		Target: target, BPF: c.Samples.Ns, Interrupts: c.InterruptNs, Overflows: c.Samples.Runs,
		Taken: s.taken, Walk: s.host.Walks.Mean(0.99),
	}
}

// Cost returns what overflows have cost.
func (s *cpu) Cost() (c source.Cost, err error) {
	for _, e := range s.events {
		runs, err := s.runs(e)
		if err != nil {
			return c, err
		}
		c.Samples.Runs += runs.Runs
		c.Samples.Ns += runs.Ns
		if kind := e.event.Interrupt(); kind != perf.NoInterrupt {
			c.Interrupts += runs.Runs
			c.InterruptNs += uint64(float64(runs.Runs) * s.host.Budget.Costs.Interrupt(kind))
		}
	}
	c.Handled, c.Part = s.taken, s.sampling.Part()
	return c, nil
}

// runs returns the runs of an event's program at overflows, and their time.
func (s *cpu) runs(e *event) (bpf.RunStats, error) {
	if !s.host.Timed { // the samples contain most of it
		return bpf.RunStats{Runs: e.taken, Ns: s.host.Walks.Sum() / uint64(len(s.events))}, nil
	}
	return bpf.RunStatsOf(e.program)
}

// Account writes losses and counts.
func (s *cpu) Account() error {
	for _, e := range s.events {
		if err := s.host.Lost(e.granted); err != nil {
			return err
		}
	}
	if err := s.watchLimit(); err != nil {
		return err
	}
	if err := s.follow(true); err != nil {
		return err
	}
	return s.writeCounts()
}

// Stop disables the events; what is in the ring buffer stays readable.
func (s *cpu) Stop() error {
	var err error
	for _, e := range s.events {
		if e.counter != nil {
			err = errors.Join(err, e.counter.sampled.Disable())
		}
	}
	return err
}

// Finish warns of events that were not on a counter all the time.
func (s *cpu) Finish(uint64) error {
	lines, err := s.shared()
	for _, line := range lines {
		s.host.Log.Warn(line)
	}
	return err
}

// Report adds the rates at which events were sampled to the summary.
func (s *cpu) Report(sum *source.Summary) {
	for _, e := range s.events {
		sum.Events[e.granted.Def.Index].Rates = e.rates
	}
}

// Close closes the events.
func (s *cpu) Close() error { return s.Unfollow() }

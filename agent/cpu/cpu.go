// Package cpu samples events that the kernel counts: CPU time, cycles, cache misses, and all
// others that perf knows.
//
// A clock, and an event of a PMU where the kernel lets it, is opened on each CPU where the
// target may run, and its hits in other processes are passed over in the kernel (bpf's
// targets.h). Opened on threads a clock would cost an arming of its timer at each switch of
// threads: a server that switches often took up to twice its time. What happens in the kernel
// anyway, as page faults, is opened on threads, where counts are exact.
//
// Samples of a clock are weighed by the CPU time of their threads, which the kernel knows
// exactly (times.go, window.go). The event of the kernel's tick (tick.go) is a clock beside whose
// samples the walker takes others, at ticks.
package cpu

import (
	"errors"
	"math"

	"golang.org/x/sync/errgroup"

	"ccagent/agent/overhead"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
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
	targets  *bpf.Targets
	times    *threadTimes
	cpus     []int // on which the target may run
	perLog   map[*sink.Sink]logTime
	joined   bool   // processes Join, and may run anywhere
	thins    bool   // overflows are passed over, as their rate cannot be changed
	stale    bool   // counts are to be read before the next sample is weighed
	taken    uint64 // samples of all events
	boosts   boosts
	spent    map[uint32]spent                // by process incarnation, where each has a log of its own
	walked   uint64                          // of all, ns
	passed   struct{ taken, boosted uint64 } // samples that Throttle has charged
}

// logTime is the CPU time of the processes of a log since it was begun, and that before for which no sample stood when it
// was, ns.
type logTime struct{ used, owed uint64 }

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
// while, and chooses rates where none is asked for.
func (s *cpu) Load() error {
	var loads errgroup.Group
	for _, e := range s.events {
		load := s.host.Walker.EventProgram
		if e.tick != nil {
			load = s.host.Walker.BesideTickProgram
		}
		loads.Go(func() (err error) {
			e.program, err = load(int(e.granted.Def.Index))
			return err
		})
	}
	loads.Go(func() (err error) {
		s.targets, err = s.host.Walker.LoadTargets()
		return err
	})
	for _, e := range s.events {
		if e.tick != nil {
			loads.Go(func() (err error) {
				e.tick.program, err = s.host.Walker.TickProgram(int(e.granted.Def.Index), e.tick.kernel)
				return err
			})
		}
	}
	if err := loads.Wait(); err != nil {
		return err
	}
	s.times = newThreadTimes(s.targets, s.host.Threads)
	for _, e := range s.events {
		if e.auto {
			e.choose(s.host.Budget)
		}
		if e.event.Clock() {
			e.window = newWindow(e.granted.Def.Index)
		}
	}
	return nil
}

// Receives returns the types of the records at the ends of threads.
func (s *cpu) Receives() []uint8 { return []uint8{bpf.RecordThreadEnds, bpf.RecordThreadEnded} }

// Follow has the threads' processes sampled, and opens the events, disabled.
func (s *cpu) Follow(tids []int) (err error) {
	if err := s.Unfollow(); err != nil {
		return err
	}
	for _, pid := range processesOf(tids) {
		if err := s.host.Walker.AddTarget(pid); err != nil {
			return err
		}
	}
	s.joined = len(tids) == 0
	if s.cpus, err = s.mayRunOn(tids); err != nil {
		return err
	}
	for _, e := range s.events {
		if err := s.open(e, tids); err != nil {
			return err
		}
	}
	return nil
}

// Join has a process sampled that runs already.
func (s *cpu) Join(pid uint32) error {
	if err := s.host.Walker.AddTarget(pid); err != nil {
		return err
	}
	return s.times.join(pid)
}

// Unfollow closes the events.
func (s *cpu) Unfollow() error {
	var err error
	if s.boosts.on != nil {
		err = s.boosts.on.Close()
		s.boosts.on = nil
	}
	for _, e := range s.events {
		if e.counter != nil {
			err = errors.Join(err, e.counter.Close())
			e.counter = nil
		}
		if e.tick != nil && e.tick.program != nil {
			err = errors.Join(err, e.tick.program.Stop())
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
	if err := s.times.start(); err != nil {
		return err
	}
	for _, e := range s.events {
		if err := e.counter.Enable(); err != nil {
			return err
		}
		if e.tick != nil && !e.tick.stopped {
			if err := e.tick.program.Start(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Consume weighs a sample and writes it; that of a clock is held until it can be weighed. Or
// it takes the record of a thread's end.
func (s *cpu) Consume(r *perf.Sample) error {
	if r.Record != bpf.RecordSample {
		s.times.consume(r)
		return nil
	}
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
	s.taken++
	e := s.at(r.Event)
	if e == nil {
		_, err = s.host.Write(im, r)
		return err
	}
	onTick, boosted := r.Flags&bpf.SampleOnTick != 0, r.Flags&bpf.SampleBoosted != 0
	s.spend(im, e, r.WalkNs, onTick)
	r.Flags &^= bpf.SampleOnTick | bpf.SampleBoosted // of no use in the log
	switch {
	case onTick:
		e.tick.taken++
		e.tick.ns += uint64(r.WalkNs)
	case boosted:
		s.boosts.took(r)
	default:
		e.taken++
	}
	if e.window == nil {
		r.Period = e.counter.weigh(r.Period)
		e.squares += float64(r.Period) * float64(r.Period)
		_, err = s.host.Write(im, r)
		return err
	}
	sample, err := s.host.Place(im, r)
	if err != nil {
		return err
	}
	h := held{image: im, time: r.Time, sample: sample, tick: onTick, boosted: boosted, age: r.Total, slept: r.Large}
	copy(h.code[:], r.Frames)
	e.window.held = append(e.window.held, h)
	if len(e.window.held) >= mostHeld {
		return s.settle()
	}
	return nil
}

// mostHeld bounds the samples that wait for the CPU time of their threads: some megabytes.
const mostHeld = 1 << 15

// settle writes the samples that were held, weighed by what their threads have used.
func (s *cpu) settle() error {
	if err := s.times.update(); err != nil {
		return err
	}
	used := s.times.settle()
	logs := map[*sink.Sink]logTime{} // without those that are closed
	_ = s.host.Log.Each(func(log *sink.Sink) error {
		t, known := s.perLog[log]
		if !known {
			t.owed = s.unsampled(log)
		}
		logs[log] = t
		return nil
	})
	for of, ns := range used {
		if log := s.host.LogOf(of.pid); log != nil {
			t := logs[log]
			t.used += ns
			logs[log] = t
		}
	}
	s.perLog = logs
	for _, e := range s.events {
		if e.window == nil {
			continue
		}
		gone := func(pid uint32) bool { return s.host.LogOf(pid) == nil }
		e.window.forget(gone)
		rate := e.perSecond()
		if e.tick != nil {
			e.tick.forget(gone)
			e.tick.weigh(e.window, used, rate)
			rate = 0
		}
		if e == s.boosts.beside {
			s.boosts.weigh(e.window, e.perSecondIn)
		}
		if err := e.window.close(used, rate, s.host.WriteAt); err != nil {
			return err
		}
	}
	return nil
}

// unsampled is the CPU time of a log's processes that no sample of a clock stands for so far, ns.
func (s *cpu) unsampled(log *sink.Sink) (ns uint64) {
	for _, e := range s.events {
		if e.window != nil {
			ns = max(ns, e.window.leftover(func(pid uint32) bool { return s.host.LogOf(pid) == log }))
		}
	}
	return ns
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
	for _, e := range s.events {
		if e.event.Clock() && (e.event.OnlyUser || e.event.OnlyKernel) {
			e.restricted.pass(u.Target, e.perSecond())
		}
	}
	regular, err := s.regular()
	if err != nil {
		return err
	}
	taken, boosted := s.taken-s.passed.taken, s.boosts.taken-s.passed.boosted
	s.passed.taken, s.passed.boosted = s.taken, s.boosts.taken
	s.sampling.Pass(s.used(regular, u.Target), u.Handling*float64(taken-boosted)/float64(max(taken, 1)))
	if err := s.throttleBoosts(); err != nil {
		return err
	}
	if part := s.sampling.Part(); part != before {
		return s.resample(part)
	}
	return nil
}

func (s *cpu) used(c source.Cost, target uint64) overhead.Use {
	return overhead.Use{
		Target: target, BPF: c.Samples.Ns, Interrupts: c.InterruptNs, Overflows: c.Samples.Runs,
		Taken: s.taken - s.boosts.taken, Walk: s.host.Walks.Mean(0.99),
	}
}

// Cost returns what overflows have cost the target. What hits in other processes cost those is
// no cost of the target.
func (s *cpu) Cost() (source.Cost, error) {
	c, err := s.regular()
	b := &s.boosts
	c.Samples.Runs += b.taken
	c.Samples.Ns += b.ns
	c.Interrupts += uint64(b.hits)
	c.InterruptNs += uint64(b.hits * s.interrupt(b.beside))
	return c, err
}

// regular is Cost without that of boosts, which have budgets of their own.
func (s *cpu) regular() (c source.Cost, err error) {
	for _, e := range s.events {
		runs, err := s.runs(e)
		if err != nil {
			return c, err
		}
		c.Samples.Runs += runs.Runs
		c.Samples.Ns += runs.Ns
		if kind := e.event.Interrupt(); kind != perf.NoInterrupt {
			n := e.restricted.interrupts(runs.Runs)
			c.Interrupts += n
			c.InterruptNs += e.interrupts.Count(n, s.host.Budget.Costs.Interrupt(kind))
		}
		if e.tick != nil { // its interrupts come anyway
			c.Samples.Runs += e.tick.taken
			c.Samples.Ns += e.tick.ns
		}
	}
	c.Handled, c.Part = s.taken, s.sampling.Part()
	return c, nil
}

// otherNs is what a hit in another process takes in BPF, ns: a look-up.
const otherNs = 200

// runs returns the runs of an event's program at overflows in the target, and their time.
func (s *cpu) runs(e *event) (bpf.RunStats, error) {
	if !s.host.Timed { // the samples contain most of it
		sum := s.host.Walks.Sum()
		return bpf.RunStats{Runs: e.taken, Ns: (sum - min(s.boosts.ns, sum)) / uint64(len(s.events))}, nil
	}
	r, err := bpf.RunStatsOf(e.program)
	if err != nil {
		return r, err
	}
	others, err := s.host.Walker.Others(int(e.granted.Def.Index))
	if err != nil {
		return r, err
	}
	r.Runs -= min(others, r.Runs)
	r.Ns -= min(others*otherNs, r.Ns)
	return r, nil
}

// Account writes the samples that were held, losses and counts, and follows the target to other
// CPUs.
func (s *cpu) Account() error {
	if err := s.settle(); err != nil {
		return err
	}
	for _, e := range s.events {
		if err := s.host.Lost(e.granted); err != nil {
			return err
		}
	}
	if err := s.watchTicks(); err != nil {
		return err
	}
	if err := s.watchLimit(); err != nil {
		return err
	}
	if err := s.follow(true); err != nil {
		return err
	}
	if err := s.writeCounts(); err != nil {
		return err
	}
	if err := s.writeSampling(); err != nil {
		return err
	}
	if err := s.move(); err != nil {
		return err
	}
	return s.writeBoosts()
}

// writeSampling writes how each event is sampled.
func (s *cpu) writeSampling() error {
	for _, e := range s.events {
		others, err := s.host.Walker.Others(int(e.granted.Def.Index))
		if err != nil {
			return err
		}
		err = s.host.Log.Each(func(log *sink.Sink) error {
			of := func(pid uint32) bool { return s.host.LogOf(pid) == log }
			d := &eventlog.Sampling{Event: e.granted.Def.Index, Method: e.method, Others: others}
			if on := e.onCPUs(); on != nil {
				d.CPUs = uint32(len(on.CPUs()))
				d.TotalError = uint64(math.Sqrt(e.squares))
			}
			if w := e.window; w != nil {
				// What the window knows is of all time since the start; a log may have begun later.
				t := s.perLog[log]
				left := w.leftover(of)
				d.CPUNs, d.UnsampledNs, d.InStepNs = t.used, min(left-min(t.owed, left), t.used), uint64(w.inStep(of)*float64(t.used))
			}
			if t := e.tick; t != nil {
				d.TickHz, d.EventHz = uint32(t.rate()+0.5), uint32(e.now.Frequency)
				d.InStepNs, d.Aside = t.stepped(of)
			}
			return log.Emit(sink.Now, d)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Stop disables the events; what is in the ring buffer stays readable.
func (s *cpu) Stop() error {
	var err error
	if s.boosts.on != nil {
		err = s.boosts.on.Disable()
	}
	for _, e := range s.events {
		if e.counter != nil {
			err = errors.Join(err, e.counter.Disable())
		}
		if e.tick != nil {
			err = errors.Join(err, e.tick.program.Stop())
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
		to := &sum.Events[e.granted.Def.Index]
		to.Rates = e.rates
		if t := e.tick; t != nil {
			to.Samples -= min(t.aside, to.Samples)
			sum.Samples -= min(t.aside, sum.Samples)
		}
		if e.window != nil {
			to.Weight = e.window.weight
		}
	}
}

// Close closes the events.
func (s *cpu) Close() error {
	err := s.Unfollow()
	if s.targets != nil {
		err = errors.Join(err, s.targets.Close())
		s.targets = nil
	}
	return err
}

package cpu

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/perf"
)

// boosts are processes that are sampled more often for a while. Beside the event of a clock that all
// processes are sampled by there is another of that clock at a higher rate, whose overflows in other processes
// are passed over in the kernel: what those cost is a look-up and, where the CPU is not idle, an interrupt.
//
// Both events find code in the same proportions, so samples of both weigh the same (weigh); and all
// samples of a process weigh together what its threads have used. What was sampled is weighed before a rate
// changes, so that each weight is by the rate at which its sample was taken.
type boosts struct {
	program *ebpf.Program // nil before the first boost; the walker owns it
	beside  *event        // nil before the first boost
	on      *perf.OnCPUs  // nil while no process is boosted
	rate    uint64        // of on, Hz
	of      map[uint32]*boost

	taken, ns uint64  // samples, and what they took in the walker
	hits      float64 // overflows in boosted processes
}

// boost is a process that is sampled more often.
type boost struct {
	image    *process.Image
	asked    uint64 // Hz
	rate     uint64 // as it is, Hz
	clock    overhead.Clock
	sampling *overhead.Sampling

	taken, ns uint64
	hits      float64
	told      *sink.Sink // the log that has its rate
}

// errNoClock is returned where no event could be sampled more often.
var errNoClock = errors.New("no clock is sampled: have cpu-clock or cpu-tick among the events")

// Boost has a process sampled more often from now on, rate times a second of its CPU time, beside the samples
// that are taken anyway. It may take a part of the process's CPU time, whose clock counts ns; the rate is
// lowered to keep within that. Again, it changes rate and part. The caller has drained records just now.
func (s *cpu) Boost(im *process.Image, rate uint64, part float64, clock overhead.Clock) error {
	b := &s.boosts
	if b.beside == nil {
		for _, e := range s.events {
			if b.beside == nil && e.window != nil && e.onCPUs() != nil {
				b.beside = e
			}
		}
	}
	if b.beside == nil {
		return errNoClock
	}
	if b.program == nil {
		var err error
		if b.program, err = s.host.Walker.BoostProgram(int(b.beside.granted.Def.Index)); err != nil {
			return err
		}
	}
	if err := s.settle(); err != nil {
		return err
	}
	one := &boost{image: im, asked: rate, clock: clock, sampling: overhead.Boost(part)}
	one.sampling.Begin(overhead.Use{Target: clock()})
	if b.of == nil {
		b.of = map[uint32]*boost{}
	}
	b.of[im.PID] = one
	return s.arrange()
}

// EndBoost undoes Boost. It is no error if the process is not boosted.
func (s *cpu) EndBoost(im *process.Image) error {
	b := &s.boosts
	if b.of[im.PID] == nil {
		return nil
	}
	if err := errors.Join(s.host.Walker.SetBoost(im.PID, 0), s.settle()); err != nil {
		return err
	}
	delete(b.of, im.PID)
	if err := s.arrange(); err != nil {
		return err
	}
	if log := s.host.LogOf(im.PID); log != nil {
		return s.writeBoost(log, im.PID, 0)
	}
	return nil
}

// Boosted returns how often a process is sampled by its boost in a second of its CPU time; false if it has none.
func (s *cpu) Boosted(im *process.Image) (rate uint64, ok bool) {
	one := s.boosts.of[im.PID]
	if one == nil {
		return 0, false
	}
	return one.rate, true
}

// arrange has the event at the highest of the boosts' rates, and each sampled at its own. All samples so far
// were weighed.
func (s *cpu) arrange() error {
	b := &s.boosts
	var rate uint64
	for _, one := range b.of {
		fit, _ := fitRate(b.beside.event, reduced(perf.Rate{Frequency: one.asked}, one.sampling.Part()))
		one.rate = fit.Frequency
		rate = max(rate, one.rate)
	}
	switch {
	case rate == 0 && b.on != nil:
		err := b.on.Close()
		b.on, b.rate = nil, 0
		return err
	case rate == 0:
		return nil
	case b.on == nil:
		on, err := perf.OpenOnCPUs(b.beside.event, perf.Rate{Frequency: rate}, b.program, s.cpus)
		if err != nil {
			return fmt.Errorf("boost a process: %w", err)
		}
		b.on, b.rate = on, rate
		if err := on.Enable(); err != nil {
			return err
		}
	case b.rate != rate:
		if err := b.on.SetRate(perf.Rate{Frequency: rate}); err != nil {
			return err
		}
		b.rate = rate
	}
	for pid, one := range b.of {
		if err := s.host.Walker.SetBoost(pid, float64(one.rate)/float64(rate)); err != nil {
			return err
		}
	}
	b.untold()
	return s.writeBoosts()
}

// took counts a sample.
func (b *boosts) took(r *perf.Sample) {
	b.taken++
	b.ns += uint64(r.WalkNs)
	one := b.of[r.Pid]
	if one == nil { // it has ended since
		b.hits++
		return
	}
	hits := float64(b.rate) / float64(max(one.rate, 1))
	b.hits += hits
	one.hits += hits
	one.taken++
	one.ns += uint64(r.WalkNs)
}

// weigh has all samples of a boosted process weigh the same. others is at what rate it is sampled
// besides, Hz.
func (b *boosts) weigh(w *window, others func(pid uint32) float64) {
	for _, h := range w.held {
		one := b.of[h.sample.PID]
		if one == nil {
			continue
		}
		rate := others(h.sample.PID)
		all := rate + float64(one.rate)
		if h.boosted {
			h.sample.Weight = uint64(1e9 / all)
		} else { // it may weigh more than one period, where overflows are passed over
			h.sample.Weight = uint64(float64(h.sample.Weight) * rate / all)
		}
	}
}

// interrupt is what an overflow's interrupt costs, ns.
func (s *cpu) interrupt(e *event) float64 {
	if e == nil {
		return 0
	}
	return s.host.Budget.Costs.Interrupt(e.event.Interrupt())
}

// throttleBoosts charges boosts, and lowers their rates where they take more than they may. The caller has
// drained records just now.
func (s *cpu) throttleBoosts() error {
	b := &s.boosts
	changed := false
	for _, one := range b.of {
		before := one.sampling.Part()
		one.sampling.Pass(overhead.Use{
			Target: one.clock(), BPF: one.ns, Interrupts: uint64(one.hits * s.interrupt(b.beside)), Overflows: uint64(one.hits),
			Taken: one.taken, Walk: s.host.Walks.Mean(0.99),
		}, 0)
		changed = changed || one.sampling.Part() != before
	}
	if !changed {
		return nil
	}
	if err := s.settle(); err != nil {
		return err
	}
	return s.arrange()
}

// untold notes that logs lack the rates of boosts.
func (b *boosts) untold() {
	for _, one := range b.of {
		one.told = nil
	}
}

// writeBoosts writes into the logs of boosted processes at what rates those are sampled, where they do
// not say so.
func (s *cpu) writeBoosts() error {
	for pid, one := range s.boosts.of {
		log := s.host.LogOf(pid)
		if log == nil || log == one.told {
			continue
		}
		one.told = log
		if err := s.writeBoost(log, pid, one.rate); err != nil {
			return err
		}
	}
	return nil
}

// writeBoost writes at what rate a process is sampled from now on, with that of its boost, Hz.
func (s *cpu) writeBoost(log *sink.Sink, pid uint32, rate uint64) error {
	e := s.boosts.beside
	interrupt := s.interrupt(e)
	return log.Emit(sink.Now, &eventlog.EventRate{Event: e.granted.Def.Index, Rate: rate + uint64(e.perSecondIn(pid)+0.5),
		InterruptNs: uint32(interrupt), SampleNs: uint32(max(s.sampling.Each()-interrupt, 0))})
}

// Enter writes the rate of a boosted process into its new log.
func (s *cpu) Enter(*process.Image, uint64) error { return s.writeBoosts() }

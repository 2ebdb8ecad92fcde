package cpu

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ccagent/agent/procfs"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// tick is the kernel's tick, beside an event of CPU time that is not in step with it. The tick
// costs no interrupt and wakes no idle CPU, but what is in step with it is not sampled as it is: the
// event, at a low rate, shows for each process whether that is so (compare.go). If it is, the event
// alone is used, at a higher rate; if not, both are.
type tick struct {
	kernel    bpf.Tick
	program   *bpf.TickProgram
	part      float64 // of the ticks that are sampled
	noTick    []int   // CPUs that stop to tick while one thread runs
	stopped   bool    // the program may run there: the event is used alone
	processes map[uint32]*comparison
	taken, ns uint64 // samples at ticks, and what they took
	aside     uint64 // of them, those that are not used
}

// checkRate is the rate of the event beside the tick, Hz, and raisedRate that where it is used
// alone.
const checkRate, raisedRate = 47, leastAuto

// grantTick grants the event of the kernel's tick, which has a rate of its own.
func grantTick(asked perf.Rate) (*source.Event, error) {
	kernel, err := perf.FindTick()
	if err != nil {
		return nil, &source.EventError{Err: err, Available: availableEvents()}
	}
	clock, err := perf.Lookup(perf.ClockEvent)
	if err != nil {
		return nil, err
	}
	if err := perf.Probe(clock); err != nil {
		return nil, err
	}
	noTick, err := procfs.NoTickCPUs()
	if err != nil {
		return nil, err
	}
	t := &tick{kernel: kernel, part: 1, noTick: noTick, processes: map[uint32]*comparison{}}
	g := &source.Event{Samples: true, Def: eventlog.EventDef{
		Requested: perf.TickEvent, Granted: perf.TickEvent, Unit: clock.Unit,
		RateMode: eventlog.RateFrequency, Rate: uint64(t.rate() + 0.5),
	}}
	if asked != (perf.Rate{}) {
		g.Notes = append(g.Notes, fmt.Sprintf("%s is sampled at %.0f Hz, which is the kernel's; -F and -c are of other events", perf.TickEvent, t.rate()))
	}
	g.Detail = &event{granted: g, event: clock, rate: perf.Rate{Frequency: checkRate}, tick: t}
	return g, nil
}

// rate is how many ticks a second are sampled on a CPU.
func (t *tick) rate() float64 {
	return t.part * float64(time.Second) / float64(t.kernel.Period) / float64(t.kernel.Share)
}

// stays reports whether the tick is to be expected on all of the CPUs.
func (t *tick) stays(cpus []int) bool {
	return !slices.ContainsFunc(t.noTick, func(cpu int) bool { return slices.Contains(cpus, cpu) })
}

// weigh decides for each process whether it is in step with the tick, gives the samples of a window
// weights that are all alike, and takes those away that are not to be used.
func (t *tick) weigh(w *window, used map[thread]uint64, events float64) {
	if t.stopped {
		for _, h := range w.held {
			if !h.boosted {
				h.sample.Weight = uint64(1e9 / events)
			}
		}
		return
	}
	slept := map[thread]struct{ from, to uint64 }{}
	for i := range w.held {
		h := &w.held[i]
		if h.boosted {
			continue
		}
		t.of(h.sample.PID).add(h)
		of := thread{h.sample.PID, h.sample.TID}
		s, known := slept[of]
		if s.to = max(s.to, h.slept); !known || h.slept < s.from {
			s.from = h.slept
		}
		slept[of] = s
	}
	for i := range w.held {
		h := &w.held[i]
		of := thread{h.sample.PID, h.sample.TID}
		if s := slept[of]; !h.boosted && float64(s.to-s.from) > sleepy*float64(used[of])/1e9 {
			t.of(of.pid).addAge(h, float64(t.kernel.Period))
		}
	}
	for of, ns := range used {
		t.of(of.pid).spend(of.tid, ns, t.rate())
	}
	for _, c := range t.processes {
		c.decide()
	}
	for of, ns := range used {
		if c := t.of(of.pid); c.inStep {
			c.inStepNs += ns
		}
	}
	w.held = slices.DeleteFunc(w.held, func(h held) bool {
		if h.boosted {
			return false
		}
		rate := events
		if c := t.of(h.sample.PID); !c.inStep {
			rate += t.rate()
		} else if h.tick {
			c.aside++
			t.aside++
			return true
		}
		h.sample.Weight = uint64(1e9 / rate)
		return false
	})
}

// forget forgets processes that are no more.
func (t *tick) forget(gone func(pid uint32) bool) {
	maps.DeleteFunc(t.processes, func(pid uint32, _ *comparison) bool { return gone(pid) })
}

// stepped gives the CPU time in which some processes were in step with the tick, ns, and their
// samples that are left out.
func (t *tick) stepped(of func(pid uint32) bool) (ns, aside uint64) {
	for pid, c := range t.processes {
		if of(pid) {
			ns += c.inStepNs
			aside += c.aside
		}
	}
	return ns, aside
}

func (t *tick) of(pid uint32) *comparison {
	c := t.processes[pid]
	if c == nil {
		c = newComparison()
		t.processes[pid] = c
	}
	return c
}

// eventRate is the rate at which the event is to be.
func (t *tick) eventRate() perf.Rate {
	if t.stopped {
		return perf.Rate{Frequency: raisedRate}
	}
	for _, c := range t.processes {
		if c.inStep {
			return perf.Rate{Frequency: raisedRate}
		}
	}
	return perf.Rate{Frequency: checkRate}
}

// watchTicks has the events beside the tick at the rates that are needed by now.
func (s *cpu) watchTicks() error {
	for _, e := range s.events {
		if e.tick == nil || e.counter == nil {
			continue
		}
		if !e.tick.stopped && !e.tick.stays(s.cpus) {
			if err := s.stopTick(e); err != nil {
				return err
			}
		}
		if want := e.tick.eventRate(); want != e.rate {
			e.rate = want
			if err := s.setRates(map[*event]perf.Rate{e: s.reducedEvent(e, s.sampling.Part())}); err != nil {
				return err
			}
		}
	}
	return nil
}

// stopTick does without the tick, and says why.
func (s *cpu) stopTick(e *event) error {
	e.tick.stopped = true
	s.host.Log.Warn(fmt.Sprintf("%s: the program may run on CPUs that stop their tick (nohz_full, %s): it is sampled by %s at %d Hz alone",
		perf.TickEvent, cpuList(e.tick.noTick), e.event, raisedRate))
	return e.tick.program.Stop()
}

func cpuList(cpus []int) string {
	if len(cpus) == 1 {
		return fmt.Sprintf("CPU %d", cpus[0])
	}
	return fmt.Sprintf("%d CPUs from %d on", len(cpus), cpus[0])
}

// reducedEvent is the rate of the event beside the tick of which part is taken.
func (s *cpu) reducedEvent(e *event, part float64) perf.Rate {
	return perf.Rate{Frequency: max(reduced(e.rate, part).Frequency, checkRate)}
}

// setTickPart has a part of the ticks sampled, which keeps within the budget.
func (s *cpu) setTickPart(part float64) error {
	for _, e := range s.events {
		if e.tick == nil || e.tick.part == part {
			continue
		}
		if err := s.settle(); err != nil {
			return err
		}
		if err := s.host.Walker.SetTickPart(part); err != nil {
			return err
		}
		e.tick.part = part
		if err := s.writeRate(e, uint64(e.tick.rate()+0.5)); err != nil {
			return err
		}
	}
	return nil
}

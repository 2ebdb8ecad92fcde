package agent

import (
	"math"

	"ccagent/eventlog"
	"ccagent/perf"
)

// What measuring may take of the target's CPU time is divided between samples of
// events and of allocation and each group of the timeline's probes, so that none
// starves the others. The timeline's part is of the time that passes.
const (
	defaultOverhead = 0.01 // that ccagent asks for
	eventsPart      = 0.6
	allocPart       = 0.2
	rtsPart         = 0.1
)

// bucket is a budget: it fills as the target uses CPU time, and measuring empties
// it. While it is in debt measuring is to become rarer.
type bucket struct {
	rate  float64 // part of the target's CPU time; infinite for no limit
	level float64 // ns
}

// burst is for how much CPU time of the target, in ns, a bucket saves up.
const burst = 2e9

func newBucket(rate float64) bucket {
	if rate <= 0 {
		return bucket{rate: math.Inf(1), level: math.Inf(1)}
	}
	return bucket{rate: rate, level: rate * burst / 4}
}

func (b *bucket) unlimited() bool { return math.IsInf(b.rate, 1) }

func (b *bucket) depth() float64 { return b.rate * burst }

// pass lets the target have used some CPU time, of which measuring took cost.
func (b *bucket) pass(target, cost float64) {
	if !b.unlimited() {
		b.level = min(b.level+b.rate*target-cost, b.depth())
	}
}

// budget keeps the overhead of a capture at what was asked for.
type budget struct {
	asked      float64 // part of the target's CPU time; 0 for any
	events     allowance
	alloc      bucket
	part       float64 // of the rate that was asked for, at which events are sampled
	each       float64 // ns, what an overflow costs
	watched    watched // since it was last thought about
	changed    float64 // CPU time of the target at the last change of part, ns
	last       spent
	logged     spent                    // when the log was last told
	trap       float64                  // ns, what a probe's hit costs outside BPF
	interrupts [perf.Interrupts]float64 // ns, what an overflow's interrupt does
	calibrated <-chan func(*budget)
}

// watched is what has passed since something was decided: CPU time of the target and
// of samples of events, in ns, and how many overflows of theirs there were.
type watched struct{ target, cost, overflows float64 }

// spent is what measuring and the target have used so far, in ns.
type spent struct {
	time            uint64
	target          uint64
	events, alloc   uint64 // in the target's CPU time
	interrupts      uint64 // likewise, by which events overflow
	traced          uint64 // likewise, of events that no rate is kept of
	agent           uint64 // of the agent, all
	drain           uint64 // of the agent, in handling samples
	eventN, allocN  uint64 // overflows of events, hits of probes
	interruptN      uint64 // overflows by an interrupt
	taken           uint64 // samples of events
	walk            uint64 // what one takes in the walker, the rarest left out
	nursery, blocks uint64 // time in place
	large           uint64
}

func newBudget(asked float64) *budget {
	b := &budget{asked: asked, events: newAllowance(asked * eventsPart), alloc: newBucket(asked * allocPart), part: 1, trap: defaultTrapCost}
	b.interrupts[perf.TimerInterrupt] = perf.DefaultInterruptNs
	b.interrupts[perf.CounterInterrupt] = perf.DefaultInterruptNs
	return b
}

// cpuShare is the part of a CPU's time, spent by the agent, that is charged as the
// target's: the agent has a CPU of its own unless all are busy.
func cpuShare(cpus int) float64 { return 1 / float64(max(cpus, 1)) }

// pass charges what was spent since the last time.
func (b *budget) pass(s spent, cpus int) {
	target := float64(s.target - min(b.last.target, s.target))
	overflows := float64(s.eventN - b.last.eventN)
	taken, hits := float64(s.taken-b.last.taken), float64(s.allocN-b.last.allocN)
	drain := float64(s.drain-b.last.drain) * cpuShare(cpus)
	if s.target < warmUp {
		drain = 0 // most of it is reading what the program consists of
	}
	ofAlloc := 0.0
	if hits > 0 {
		ofAlloc = hits / (hits + taken)
	}
	events := b.plausible(float64(s.events-b.last.events), taken, overflows, float64(s.walk)) + drain*(1-ofAlloc)
	// These are less than before where one has been found to cost less than it was
	// taken for.
	events += float64(int64(s.interrupts - b.last.interrupts))
	b.events.pass(target, events)
	b.alloc.pass(target, float64(int64(s.alloc-b.last.alloc))+drain*ofAlloc)
	b.last = s
	b.adapt(target, events, overflows)
}

// warmUp is how much CPU time of the target passes before the agent's is charged, ns.
const warmUp = 1e9

// plausible leaves out of a cost what a virtual machine's host took meanwhile: the
// kernel counts time, not CPU time, in BPF.
func (b *budget) plausible(cost, taken, overflows, walk float64) float64 {
	const (
		passedOver = 500 // ns, an overflow that is not sampled, generously
		record     = 3000
	)
	return min(cost, taken*(2*walk+record)+overflows*passedOver)
}

// adapt chooses at which part of the asked rate events are to be sampled. Every change
// has them opened anew, so there are few: down when what may be spent is spent, up
// when there has long been more.
func (b *budget) adapt(target, cost, overflows float64) {
	const (
		least = 0.01
		// enough is the CPU time of the target, in ns, that tells what it costs; a little
		// will do where that is much. The kernel counts in steps of ten milliseconds.
		enough = 100e6
		little = 30e6
		// horizon is the CPU time in which a debt is to be paid back, ns.
		horizon = 3e9
		// patience is that between a change and one to more.
		patience = 2e9
	)
	w := &b.watched
	w.target += target
	w.cost += cost
	w.overflows += overflows
	if b.events.unlimited() || w.target < little || w.target < enough && w.cost < b.events.grace/2 {
		return
	}
	if w.overflows >= 1 {
		each := w.cost / w.overflows
		if b.each == 0 {
			b.each = each
		}
		b.each += (each - b.each) / 4
	}
	rate, soon := w.overflows/w.target, w.cost
	*w = watched{}
	steady, evened := 1.0, 1.0
	if b.each > 0 && rate > 0 {
		allowed, even := b.events.spending(horizon)
		full := rate * b.each / b.part // what the asked rate takes
		steady, evened = min(allowed/full, 1), min(even/full, 1)
	}
	switch {
	case evened < 0.8*b.part && b.events.left() < max(b.events.grace/8, soon):
		b.part = max(evened, least)
	case (steady > 1.25*b.part || steady == 1 && b.part < 1) && b.events.left() >= 0 && b.events.used-b.changed > patience:
		b.part = steady
	default:
		return
	}
	b.changed = b.events.used
}

// overhead tells the log of the interval since it was last told.
func (b *budget) overhead(s spent) *eventlog.Overhead {
	l := b.logged
	b.logged = s
	interval := s.time - l.time
	part := func(inPlace uint64) uint32 { return millionths(float64(inPlace) / float64(max(interval, 1))) }
	return &eventlog.Overhead{
		IntervalNs:  interval,
		TargetNs:    s.target - min(l.target, s.target),
		EventNs:     s.events - l.events + s.traced - l.traced,
		AllocNs:     s.alloc - min(l.alloc, s.alloc),
		AgentNs:     s.agent - l.agent,
		Asked:       millionths(b.asked),
		EventsTaken: millionths(b.part),
		Nursery:     part(s.nursery - l.nursery),
		Blocks:      part(s.blocks - l.blocks),
		Large:       part(s.large - l.large),
		ProbeHits:   s.allocN - l.allocN,
		ProbeNs:     uint32(b.trap),
		InterruptNs: s.interrupts - min(l.interrupts, s.interrupts),
		Interrupts:  s.interruptN - l.interruptN,
	}
}

func millionths(part float64) uint32 { return uint32(min(max(part, 0), 1)*1e6 + 0.5) }

// calibrate has it measured what probes and interrupts of these kinds cost, beside
// what else is to be done. What cannot be measured is left at what it is taken for.
func (b *budget) calibrate(probes bool, kinds []perf.Interrupt) {
	results := make(chan func(*budget), 1+len(kinds))
	b.calibrated = results
	go func() {
		defer close(results)
		for _, kind := range kinds {
			if ns, err := perf.MeasureInterrupt(kind); err == nil {
				results <- func(b *budget) { b.interrupts[kind] = ns }
			}
		}
		if !probes {
			return
		}
		if ns, err := measureTrap(); err == nil && ns > 0 {
			results <- func(b *budget) { b.trap = ns }
		}
	}()
}

// takeCalibration takes in what has been measured by now.
func (b *budget) takeCalibration() {
	for {
		select {
		case take, ok := <-b.calibrated:
			if !ok {
				b.calibrated = nil
				continue
			}
			take(b)
		default:
			return
		}
	}
}

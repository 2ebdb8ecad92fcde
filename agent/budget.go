package agent

import (
	"math"

	"ccagent/eventlog"
)

// What measuring may take of the target's CPU time is divided between samples of
// events and of allocation and each group of the timeline's probes, so that none
// starves the others. The timeline's part is of the time that passes.
const (
	eventsPart = 0.6
	allocPart  = 0.2
	rtsPart    = 0.1
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
		return bucket{rate: math.Inf(1)}
	}
	return bucket{rate: rate, level: rate * burst / 8}
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
	asked         float64 // part of the target's CPU time; 0 for any
	events, alloc bucket
	keep          float64 // part of the events' overflows that are sampled
	each          float64 // ns, what a sample of an event costs
	watched       watched // since keep was chosen
	last          spent
	logged        spent   // when the log was last told
	trap          float64 // ns, what a probe's hit costs outside BPF
	calibrated    <-chan float64
}

// watched is what has passed since something was decided: CPU time of the target and
// of samples of events, in ns, and how many of their overflows there were.
type watched struct{ target, cost, taken, overflows float64 }

// spent is what measuring and the target have used so far, in ns.
type spent struct {
	time            uint64
	target          uint64
	events, alloc   uint64 // in the target's CPU time
	agent           uint64 // of the agent, all
	drain           uint64 // of the agent, in handling samples
	eventN, allocN  uint64 // overflows of events, hits of probes
	taken           uint64 // samples of events
	walk            uint64 // what one takes in the walker, the median
	nursery, blocks uint64 // time in place
	large           uint64
}

func newBudget(asked float64) *budget {
	return &budget{asked: asked, events: newBucket(asked * eventsPart), alloc: newBucket(asked * allocPart), keep: 1, trap: defaultTrapCost}
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
	b.events.pass(target, events)
	b.alloc.pass(target, float64(s.alloc-b.last.alloc)+drain*ofAlloc)
	b.last = s
	b.adapt(target, events, taken, overflows)
}

// warmUp is how much CPU time of the target passes before the agent's is charged, ns.
const warmUp = 1e9

// plausible leaves out of a cost what a virtual machine's host took meanwhile: the
// kernel counts time, not CPU time, in BPF.
func (b *budget) plausible(cost, taken, overflows, median float64) float64 {
	const (
		passedOver = 500 // ns, an overflow that is not sampled, generously
		record     = 3000
	)
	return min(cost, taken*(4*median+record)+overflows*passedOver)
}

// adapt chooses which part of the events' overflows is to be sampled: less as soon
// as the budget is spent, more again slowly.
func (b *budget) adapt(target, cost, taken, overflows float64) {
	const (
		least = 0.01
		// enough is the CPU time of the target, in ns, that tells what it costs;
		// the kernel counts in steps of ten milliseconds.
		enough = 60e6
	)
	w := &b.watched
	w.target += target
	w.cost += cost
	w.taken += taken
	w.overflows += overflows
	if b.events.unlimited() || w.target < enough {
		return
	}
	if w.taken >= 1 {
		each := w.cost / w.taken
		if b.each == 0 {
			b.each = each
		}
		b.each += (each - b.each) / 4
	}
	aim := 1.0
	if rate := w.overflows / w.target; b.each > 0 && rate > 0 {
		aim = b.events.rate / (rate * b.each)
	}
	*w = watched{}
	if b.events.level < 0 { // pay back
		aim *= 0.6
	}
	switch {
	case aim < b.keep && b.events.level < b.events.depth()/4:
		b.keep = max(aim, least)
	case aim > b.keep || b.events.level > b.events.depth()/2:
		b.keep = min(b.keep*1.05, 1)
	}
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
		EventNs:     s.events - l.events,
		AllocNs:     s.alloc - l.alloc,
		AgentNs:     s.agent - l.agent,
		Asked:       millionths(b.asked),
		EventsTaken: millionths(b.keep),
		Nursery:     part(s.nursery - l.nursery),
		Blocks:      part(s.blocks - l.blocks),
		Large:       part(s.large - l.large),
		ProbeHits:   s.allocN - l.allocN,
		ProbeNs:     uint32(b.trap),
	}
}

func millionths(part float64) uint32 { return uint32(min(max(part, 0), 1)*1e6 + 0.5) }

// calibrate has a probe's cost measured, beside what else is to be done.
func (b *budget) calibrate() {
	result := make(chan float64, 1)
	b.calibrated = result
	go func() {
		defer close(result)
		if ns, err := measureTrap(); err == nil && ns > 0 {
			result <- ns
		}
	}()
}

// takeCalibration takes in a measured cost once it is there.
func (b *budget) takeCalibration() {
	select {
	case ns, ok := <-b.calibrated:
		if ok {
			b.trap = ns
		}
		b.calibrated = nil
	default:
	}
}

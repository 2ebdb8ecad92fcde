package cpu

import (
	"maps"
	"math"

	"ccagent/agent/process"
	"ccagent/eventlog"
)

// window holds the samples of a clock until the CPU time of their threads is known, and weighs
// them by it: a thread's time is divided over the counts of its samples. Few samples say
// little of their thread, so threads with few share their time and samples with others of
// their process: to weigh one sample by the time since the one before would make shares
// less certain.
type window struct {
	event    uint32
	held     []held
	left     map[uint32]float64 // by process: time that no sample has stood for yet, negative if more has
	counts   map[thread]*balance
	weight   uint64  // of all samples that were written
	squares  float64 // of their weights
	rounding float64
}

// held is a sample and when it was taken.
type held struct {
	image  *process.Image
	time   uint64
	sample *eventlog.Sample
	// Of those at the kernel's tick, or of the event beside it:
	tick  bool
	code  code
	age   uint64 // CPU time since its thread was switched to, ns
	slept uint64 // how often the thread has gone to sleep
}

// balance compares a thread's samples with its CPU time, since the start.
type balance struct{ samples, expected, time float64 }

const (
	// own is from how many samples in a window on a thread's time is divided among its own.
	own = 20
	// most and least bound by what the nominal weights of samples of several threads are scaled;
	// what is left is carried on to the next window.
	most, least = 2.0, 0.5
)

func newWindow(event uint32) *window {
	return &window{event: event, left: map[uint32]float64{}, counts: map[thread]*balance{}}
}

// tally is what a thread or a process has in a window.
type tally struct {
	samples int
	weight  float64 // nominal
	time    float64
	factor  float64
}

// close weighs the samples by what threads have used, in ns, and writes them. rate is what it
// was in the window, in Hz; 0 if counts are not to be compared with it.
func (w *window) close(used map[thread]uint64, rate float64, write func(im *process.Image, time uint64, e *eventlog.Sample) error) error {
	threads := make(map[thread]*tally, len(used))
	of := func(t thread) *tally {
		if threads[t] == nil {
			threads[t] = &tally{}
		}
		return threads[t]
	}
	for t, ns := range used {
		of(t).time = float64(ns)
	}
	for _, h := range w.held {
		t := of(thread{h.sample.PID, h.sample.TID})
		t.samples++
		t.weight += float64(h.sample.Weight)
	}
	pools := map[uint32]*tally{}
	for of, t := range threads {
		if rate > 0 {
			w.balance(of, t, rate)
		}
		if t.samples >= own && t.weight > 0 && t.time > 0 {
			t.factor = t.time / t.weight
			continue
		}
		p := pools[of.pid]
		if p == nil {
			p = &tally{}
			pools[of.pid] = p
		}
		p.samples += t.samples
		p.weight += t.weight
		p.time += t.time
	}
	for pid, p := range pools {
		p.time += w.left[pid]
		w.left[pid] = p.time
		if p.weight > 0 {
			p.factor = min(max(p.time/p.weight, least), most)
			w.left[pid] -= p.factor * p.weight
		}
	}
	for _, h := range w.held {
		t := threads[thread{h.sample.PID, h.sample.TID}]
		if t.factor == 0 {
			t = pools[h.sample.PID]
		}
		exact := float64(h.sample.Weight)*t.factor + w.rounding
		h.sample.Weight = uint64(max(math.Round(exact), 0))
		w.rounding = exact - float64(h.sample.Weight)
		w.weight += h.sample.Weight
		w.squares += exact * exact
		if err := write(h.image, h.time, h.sample); err != nil {
			return err
		}
	}
	clear(w.held)
	w.held = w.held[:0]
	return nil
}

// balance adds a window to a thread's balance.
func (w *window) balance(of thread, t *tally, rate float64) {
	b := w.counts[of]
	if b == nil {
		if len(w.counts) >= maxBalances {
			return
		}
		b = &balance{}
		w.counts[of] = b
	}
	b.samples += float64(t.samples)
	b.expected += t.time * rate / 1e9
	b.time += t.time
}

// maxBalances bounds the threads whose samples are compared with their time.
const maxBalances = 1 << 16

// forget forgets processes that are no more, and have no samples that are held.
func (w *window) forget(gone func(pid uint32) bool) {
	maps.DeleteFunc(w.left, func(pid uint32, _ float64) bool { return gone(pid) })
	maps.DeleteFunc(w.counts, func(of thread, _ *balance) bool { return gone(of.pid) })
}

// inStep is the CPU time of threads whose samples are far more, or far less, than their time
// would have it: by more than three standard deviations of independent samples, and a third.
func (w *window) inStep(of func(pid uint32) bool) (ns uint64) {
	for t, b := range w.counts {
		if !of(t.pid) || b.expected < own && b.samples < own {
			continue
		}
		if off := math.Abs(b.samples - b.expected); off > 3*math.Sqrt(max(b.expected, 1)) && off > b.expected/3 {
			ns += uint64(b.time)
		}
	}
	return ns
}

// leftover is the time of some processes that no sample stands for so far, ns.
func (w *window) leftover(of func(pid uint32) bool) uint64 {
	var sum float64
	for pid, ns := range w.left {
		if of(pid) {
			sum += ns
		}
	}
	return uint64(max(sum, 0))
}

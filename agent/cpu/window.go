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
// less certain. Processes with few share theirs with each other: most that live for a
// millisecond end without a sample, and the samples of the others stand for them too.
type window struct {
	event     uint32
	held      []held
	processes map[uint32]*account
	owed      float64 // of processes with few samples, also those that are no more: as account.left
	counts    map[thread]*balance
	weight    uint64  // of all samples that were written
	squares   float64 // of their weights
	rounding  float64
}

// held is a sample and when it was taken.
type held struct {
	image  *process.Image
	time   uint64
	sample *eventlog.Sample
	// boosted is set if the event has taken it that boosts the process.
	boosted bool
	// Of those at the kernel's tick, or of the event beside it:
	tick  bool
	code  code
	age   uint64 // CPU time since its thread was switched to, ns
	slept uint64 // how often the thread has gone to sleep
}

// balance compares a thread's samples with its CPU time, since the start.
type balance struct{ samples, expected, time float64 }

// account is what a process has had since the start.
type account struct {
	samples int
	left    float64 // time that no sample has stood for yet, ns; negative if more has
	alone   bool    // it has samples enough to share with no other process
}

const (
	// own is from how many samples on a thread's time in a window, or a process's since the
	// start, is divided among its own.
	own = 20
	// most and least bound by what the nominal weights of samples of several threads are scaled;
	// what is left is carried on to the next window.
	most, least = 2.0, 0.5
)

func newWindow(event uint32) *window {
	return &window{event: event, processes: map[uint32]*account{}, counts: map[thread]*balance{}}
}

// tally is what a thread or a process has in a window.
type tally struct {
	samples int
	regular int     // of them, those that were not taken by a boost
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
		if !h.boosted {
			t.regular++
		}
		t.weight += float64(h.sample.Weight)
	}
	pools := map[uint32]*tally{}
	for of, t := range threads {
		if rate > 0 {
			w.balance(of, t, rate)
		}
		w.account(of.pid).samples += t.samples
		if t.samples >= own && t.weight > 0 && t.time > 0 {
			t.factor = t.time / t.weight
			continue
		}
		p := pools[of.pid]
		if p == nil {
			p = &tally{}
			pools[of.pid] = p
		}
		p.weight += t.weight
		p.time += t.time
	}
	w.divide(pools)
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

// divide gives the samples of each pool, by process, their factor, and keeps what is left.
func (w *window) divide(pools map[uint32]*tally) {
	few := tally{time: w.owed}
	for pid, p := range pools {
		a := w.account(pid)
		if a.samples < own {
			few.weight += p.weight
			few.time += p.time
			continue
		}
		if !a.alone { // it had few until now
			a.alone = true
			few.time -= a.left
		}
		p.time += a.left
		p.scale()
		a.left = p.time - p.factor*p.weight
	}
	few.scale()
	w.owed = few.time - few.factor*few.weight
	for pid, p := range pools {
		if a := w.account(pid); !a.alone {
			p.factor = few.factor
			a.left += p.time - p.factor*p.weight
		}
	}
}

// scale sets the factor by which nominal weights come to the time, within bounds.
func (t *tally) scale() {
	if t.weight > 0 {
		t.factor = min(max(t.time/t.weight, least), most)
	}
}

// account returns a process's account.
func (w *window) account(pid uint32) *account {
	a := w.processes[pid]
	if a == nil {
		a = &account{}
		w.processes[pid] = a
	}
	return a
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
	b.samples += float64(t.regular)
	b.expected += t.time * rate / 1e9
	b.time += t.time
}

// maxBalances bounds the threads whose samples are compared with their time.
const maxBalances = 1 << 16

// forget forgets processes that are no more, and have no samples that are held.
func (w *window) forget(gone func(pid uint32) bool) {
	maps.DeleteFunc(w.processes, func(pid uint32, _ *account) bool { return gone(pid) })
	maps.DeleteFunc(w.counts, func(of thread, _ *balance) bool { return gone(of.pid) })
}

// inStep is the part of some processes' CPU time that is of threads whose samples are far more, or far less, than
// their time would have it: by more than three standard deviations of independent samples, and a third.
func (w *window) inStep(of func(pid uint32) bool) (part float64) {
	all := 0.0
	for t, b := range w.counts {
		if !of(t.pid) {
			continue
		}
		all += b.time
		if b.expected < own && b.samples < own {
			continue
		}
		if off := math.Abs(b.samples - b.expected); off > 3*math.Sqrt(max(b.expected, 1)) && off > b.expected/3 {
			part += b.time
		}
	}
	return part / max(all, 1)
}

// leftover is the time of some processes that no sample stands for so far, ns.
func (w *window) leftover(of func(pid uint32) bool) uint64 {
	var sum float64
	for pid, a := range w.processes {
		if of(pid) {
			sum += a.left
		}
	}
	return uint64(max(sum, 0))
}

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"time"

	"ccagent/agent/target"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// interrupts are the kinds of interrupt by which the sampled events overflow.
func (c *capture) interrupts() []perf.Interrupt {
	var kinds []perf.Interrupt
	for i := range c.events {
		g := &c.events[i]
		if kind := g.event.Interrupt(); g.counted() && kind != perf.NoInterrupt && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// ran is what happened at the overflows of events.
type ran struct {
	bpf        bpf.RunStats // of those whose rate can be changed
	traced     bpf.RunStats // of the others
	interrupts uint64       // overflows by an interrupt
	ns         uint64       // that these took, outside BPF
}

// overflowed tells what happened at the overflows of all events so far.
func (c *capture) overflowed() (r ran, err error) {
	for i := range c.events {
		g := &c.events[i]
		if g.program == nil {
			continue
		}
		one, err := c.runsOf(g)
		if err != nil {
			return r, err
		}
		if !g.counted() {
			r.traced.Runs += one.Runs
			r.traced.Ns += one.Ns
			continue
		}
		r.bpf.Runs += one.Runs
		r.bpf.Ns += one.Ns
		if kind := g.event.Interrupt(); kind != perf.NoInterrupt {
			r.interrupts += one.Runs
			r.ns += uint64(float64(one.Runs) * c.budget.interrupts[kind])
		}
	}
	return r, nil
}

// runsOf tells what an event's overflows were, in BPF.
func (c *capture) runsOf(g *grantedEvent) (bpf.RunStats, error) {
	if c.statsOn == nil { // the kernel does not tell; the samples tell most of it
		return bpf.RunStats{Runs: c.sum.Events[g.def.Index].Samples, Ns: c.walks.sum / uint64(len(c.events))}, nil
	}
	return bpf.RunStatsOf(g.program)
}

// reduced is the rate of which part is taken. Rates are prime, so that they do not fall
// into step with the program's timers, nor with the kernel's; periods are multiples of
// what was asked for.
func reduced(asked perf.Rate, part float64) perf.Rate {
	switch {
	case part >= 1:
		return asked
	case asked.Period != 0:
		return perf.Rate{Period: uint64(min(math.Ceil(float64(asked.Period)/part), 1<<62))}
	}
	hz := max(uint64(float64(asked.Frequency)*part), 2)
	for !prime(hz) {
		hz--
	}
	return perf.Rate{Frequency: min(hz, asked.Frequency)}
}

func prime(n uint64) bool {
	for d := uint64(2); d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

// errUnsteady is returned where the target's threads cannot be told for sure.
var errUnsteady = errors.New("the program's threads change faster than they can be followed")

// resample has events sampled at a part of the rates that were asked for. They are
// opened anew, since the kernel lets nobody change the rate of an event that threads
// have inherited. Where that cannot be done the walker passes over some overflows
// instead, which saves less.
func (c *capture) resample(part float64) error {
	err := c.reopen(part)
	if err == nil || errors.Is(err, perf.ErrNoThreads) { // it has ended, or is about to
		return nil
	}
	if !c.thins {
		c.thins = true
		c.warn(fmt.Sprintf("the events' rate cannot be changed: %v; of their overflows only a part is sampled", err))
	}
	return c.sampler.SetKeep(part)
}

// reopen opens counted events at part of their rates on all threads there are, and has
// each take the place of what is open.
func (c *capture) reopen(part float64) error {
	if c.thins || c.sideBand == nil || c.sideBand.Lost > 0 {
		return errUnsteady // not all processes may be known
	}
	rates, err := c.ratesAt(part)
	if err != nil {
		return err
	}
	const attempts = 5
	for range attempts {
		tids, err := c.threads()
		if err != nil {
			return err
		}
		fresh, err := c.openAt(rates, tids)
		if err != nil {
			return err
		}
		// A thread that was created meanwhile has inherited some events at the most.
		err = c.drain()
		now, errNow := c.threads()
		steady := subset(now, tids)
		if err = errors.Join(err, errNow); err == nil && steady {
			err = c.switchTo(fresh)
		}
		for _, s := range fresh { // of which nothing is left where all went well
			err = errors.Join(err, s.Close())
		}
		if err != nil {
			return err
		}
		if steady {
			return c.tellRates(rates)
		}
	}
	return errUnsteady
}

// ratesAt gives, by event, the rates that are to change, and what they become. Events
// that hardly overflow are not lowered, since they cost nothing.
func (c *capture) ratesAt(part float64) (map[int]perf.Rate, error) {
	const hardly = 0.02
	runs, total := make([]uint64, len(c.events)), uint64(0)
	for i := range c.events {
		if g := &c.events[i]; g.counted() {
			one, err := c.runsOf(g)
			if err != nil {
				return nil, err
			}
			runs[i] = one.Runs
			total += one.Runs
		}
	}
	rates := map[int]perf.Rate{}
	for i := range c.events {
		g := &c.events[i]
		if !g.counted() || g.now == g.rate && float64(runs[i]) < hardly*float64(total) {
			continue
		}
		r, _ := fitRate(g.event, reduced(g.rate, part)) // the kernel's limit may be lower by now
		if r != g.now {
			rates[i] = r
		}
	}
	return rates, nil
}

// openAt opens events, by their index, at these rates.
func (c *capture) openAt(rates map[int]perf.Rate, tids []int) (map[int]*perf.Sampled, error) {
	fresh := map[int]*perf.Sampled{}
	for i, r := range rates {
		s, err := perf.Open(c.events[i].event, r, c.events[i].program, tids)
		if err != nil {
			for _, s := range fresh {
				err = errors.Join(err, s.Close())
			}
			return nil, err
		}
		fresh[i] = s
	}
	return fresh, nil
}

// switchTo has what was opened take the place of what is open.
func (c *capture) switchTo(fresh map[int]*perf.Sampled) error {
	for i, s := range fresh {
		if err := c.counters[i].sampled.Switch(s); err != nil {
			return err
		}
	}
	return nil
}

// threads lists the threads of all processes that are sampled, in order.
func (c *capture) threads() ([]int, error) {
	var all []int
	for pid, im := range c.processes.Images {
		if im.Exited || target.MayTrace(int(pid), c.who) != nil {
			continue
		}
		tids, err := perf.Threads(int(pid))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, tids...)
	}
	slices.Sort(all)
	return all, nil
}

// subset reports whether all of a, which is sorted like b, are in b.
func subset(a, b []int) bool {
	for _, x := range a {
		if _, is := slices.BinarySearch(b, x); !is {
			return false
		}
	}
	return true
}

// tellRates writes at what rates events are sampled from now on.
func (c *capture) tellRates(rates map[int]perf.Rate) error {
	at := monotonic()
	for i := range c.events {
		r, changed := rates[i]
		if !changed {
			continue
		}
		g := &c.events[i]
		g.now = r
		interrupt := c.budget.interrupts[g.event.Interrupt()]
		told := &eventlog.EventRate{Event: g.def.Index, Rate: max(r.Frequency, r.Period),
			InterruptNs: uint32(interrupt), SampleNs: uint32(max(c.budget.each-interrupt, 0))}
		if err := c.emit(at, told); err != nil {
			return err
		}
		c.sum.Events[i].Rates = append(c.sum.Events[i].Rates, RateChange{time.Duration(at - c.start), *told})
	}
	return nil
}

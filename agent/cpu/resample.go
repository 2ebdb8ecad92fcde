package cpu

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"ccagent/agent/source"
	"ccagent/eventlog"
	"ccagent/perf"
)

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

// errUnsteady is returned if the target's list of threads keeps changing.
var errUnsteady = errors.New("the program's threads change faster than they can be followed")

// resample has events sampled at a part of the rates that were asked for. Those on threads are
// opened anew, since the kernel does not change the rate of an event that threads have
// inherited. Where that cannot be done the walker passes over some overflows
// instead, which saves less.
func (s *cpu) resample(part float64) error {
	if err := s.setTickPart(part); err != nil {
		return err
	}
	rates, err := s.ratesAt(part)
	if err != nil {
		return err
	}
	if err := s.setRates(rates); err != nil || len(rates) == 0 {
		return err
	}
	err = s.reopen(rates)
	if err == nil || errors.Is(err, perf.ErrNoThreads) { // it has ended, or is about to
		return nil
	}
	if !s.thins {
		s.thins = true
		s.host.Log.Warn(fmt.Sprintf("the events' rate cannot be changed: %v; of their overflows only a part is sampled", err))
	}
	return s.host.Walker.SetKeep(part)
}

// setRates changes the rates of events that are open on CPUs, and takes those off the list.
// Samples that were taken at the rates before are weighed first.
func (s *cpu) setRates(rates map[*event]perf.Rate) error {
	set := map[*event]perf.Rate{}
	for e, r := range rates {
		if e.onCPUs() != nil {
			set[e] = r
			delete(rates, e)
		}
	}
	if len(set) == 0 {
		return nil
	}
	if err := s.settle(); err != nil {
		return err
	}
	for e, r := range set {
		if err := e.onCPUs().SetRate(r); err != nil {
			return err
		}
	}
	return s.writeRates(set)
}

// reopen opens events at other rates on all threads there are, and has each take the
// place of what is open.
func (s *cpu) reopen(rates map[*event]perf.Rate) error {
	if s.thins {
		return errUnsteady
	}
	const attempts = 5
	for range attempts {
		tids, sure, err := s.host.Threads()
		if err != nil {
			return err
		}
		if !sure {
			return errUnsteady
		}
		fresh, err := s.openAt(rates, tids)
		if err != nil {
			return err
		}
		// A thread that was created meanwhile has inherited some events at the most.
		err = s.host.Drain()
		now, _, errNow := s.host.Threads()
		steady := subset(now, tids)
		if err = errors.Join(err, errNow); err == nil && steady {
			err = switchTo(fresh)
		}
		for _, opened := range fresh { // empty on success
			err = errors.Join(err, opened.Close())
		}
		if err != nil {
			return err
		}
		if steady {
			return s.writeRates(rates)
		}
	}
	return errUnsteady
}

// ratesAt returns the rates that are to change, and what they become. Events that hardly
// overflow are not lowered, since they cost nothing.
func (s *cpu) ratesAt(part float64) (map[*event]perf.Rate, error) {
	const hardly = 0.02
	runs, total := make([]uint64, len(s.events)), uint64(0)
	for i, e := range s.events {
		one, err := s.runs(e)
		if err != nil {
			return nil, err
		}
		runs[i] = one.Runs
		total += one.Runs
	}
	rates := map[*event]perf.Rate{}
	for i, e := range s.events {
		if e.now == e.rate && float64(runs[i]) < hardly*float64(total) {
			continue
		}
		want := reduced(e.rate, part)
		if e.tick != nil {
			want = s.reducedEvent(e, part)
		} else if e.auto {
			want = perf.Rate{Frequency: lowered(e.rate.Frequency, part)}
		}
		r, _ := fitRate(e.event, want) // the kernel's limit may be lower by now
		if r != e.now {
			rates[e] = r
		}
	}
	return rates, nil
}

// openAt opens events at these rates.
func (s *cpu) openAt(rates map[*event]perf.Rate, tids []int) (map[*event]*perf.Sampled, error) {
	fresh := map[*event]*perf.Sampled{}
	for e, r := range rates {
		opened, err := perf.Open(e.event, r, e.program, tids)
		if err != nil {
			for _, other := range fresh {
				err = errors.Join(err, other.Close())
			}
			return nil, err
		}
		fresh[e] = opened
	}
	return fresh, nil
}

// switchTo has what was opened take the place of what is open.
func switchTo(fresh map[*event]*perf.Sampled) error {
	for e, opened := range fresh {
		if err := e.onThreads().Switch(opened); err != nil {
			return err
		}
	}
	return nil
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

// writeRates writes into the log at what rates events are sampled from now on.
func (s *cpu) writeRates(rates map[*event]perf.Rate) error {
	for _, e := range s.events {
		r, changed := rates[e]
		if !changed {
			continue
		}
		e.now = r
		if e.tick != nil { // what is sampled at is the tick's
			continue
		}
		if err := s.writeRate(e, max(r.Frequency, r.Period)); err != nil {
			return err
		}
	}
	return nil
}

func (s *cpu) writeRate(e *event, rate uint64) error {
	at := perf.Monotonic()
	interrupt := s.host.Budget.Costs.Interrupt(e.event.Interrupt())
	change := &eventlog.EventRate{Event: e.granted.Def.Index, Rate: rate,
		InterruptNs: uint32(interrupt), SampleNs: uint32(max(s.sampling.Each()-interrupt, 0))}
	if err := s.host.Log.Emit(at, change); err != nil {
		return err
	}
	if e == s.boosts.beside {
		s.boosts.untold()
	}
	e.rates = append(e.rates, source.RateChange{At: time.Duration(s.host.Log.Time(at)), EventRate: *change})
	return nil
}

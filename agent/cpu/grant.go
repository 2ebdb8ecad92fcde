package cpu

import (
	"errors"
	"fmt"
	"math"

	"ccagent/agent/overhead"
	"ccagent/agent/source"
	"ccagent/eventlog"
	"ccagent/perf"

	"github.com/cilium/ebpf"
)

// event is a counted event.
type event struct {
	granted *source.Event
	event   perf.Event
	auto    bool      // the rate is to be chosen
	rate    perf.Rate // as it is to be
	now     perf.Rate // as it is
	method  eventlog.SamplingMethod
	// program walks the stack at the event's overflows; the walker owns it.
	program *ebpf.Program
	counter *counter // nil while it is not open
	window  *window  // of a clock
	tick    *tick    // of the kernel's tick, beside which event is opened; nil of all others
	taken   uint64   // samples
	// interrupts is what those at overflows in the target have cost.
	interrupts overhead.Tally
	restricted restricted
	squares    float64 // of the weights of an event that is no clock
	rates      []source.RateChange
}

// choose chooses the rate by what an interrupt of the event costs here: the lowest if that could
// not be measured.
func (e *event) choose(b *overhead.Budget) {
	interrupt := 0.0
	if kind := e.event.Interrupt(); kind != perf.NoInterrupt {
		ns, measured := b.Costs.Measured(kind)
		interrupt = ns
		if !measured {
			interrupt = math.Inf(1)
		}
	}
	limit, _ := perf.MaxRate()
	e.rate = perf.Rate{Frequency: autoRate(interrupt, b.Asked, uint64(max(limit, 0)))}
	e.granted.Def.Rate = e.rate.Frequency
}

// perSecond is how often the event is sampled in a second of CPU time, if it is a clock.
func (e *event) perSecond() float64 {
	if e.now.Period != 0 {
		return 1e9 / float64(e.now.Period)
	}
	return float64(e.now.Frequency)
}

// perSecondIn is how often a process is sampled by the event in a second of its CPU time, with ticks, if
// it is a clock.
func (e *event) perSecondIn(pid uint32) float64 {
	rate := e.perSecond()
	if t := e.tick; t != nil && !t.stopped && !t.of(pid).inStep {
		rate += t.rate()
	}
	return rate
}

// grant finds an event by its name. Only cycles has a fallback.
func grant(name string, rate perf.Rate) (*source.Event, bool, error) {
	if name == perf.TickEvent {
		e, err := grantTick(rate)
		return e, err == nil, err
	}
	wanted, err := perf.Lookup(name)
	if err != nil {
		return nil, false, &source.EventError{Err: err}
	}
	var fallback string
	e, err := perf.Grant(wanted)
	var why *perf.UnavailableError
	switch {
	case err == nil:
		if e.Precise < wanted.Precise {
			fallback = fmt.Sprintf("this machine's counters report addresses no more precisely than level %d of 3", e.Precise)
		}
	case !errors.As(err, &why) || why.Permission:
		return nil, false, err
	case wanted.Name != "cycles":
		return nil, false, &source.EventError{Err: err, Available: availableEvents()}
	case rate.Period != 0:
		return nil, false, &source.EventError{Err: fmt.Errorf(
			"a period of %d cycles cannot be kept: %s; give a frequency with -F, or -e cpu-clock with a period in ns", rate.Period, why.Reason)}
	default:
		fallback = why.Reason
		if e, err = perf.Lookup(perf.ClockEvent); err != nil {
			return nil, false, err
		}
		e.OnlyUser, e.OnlyKernel = wanted.OnlyUser, wanted.OnlyKernel
		if err := perf.Probe(e); err != nil {
			return nil, false, err
		}
	}
	g := &source.Event{Samples: true, Def: eventlog.EventDef{
		Requested: name, Granted: e.String(), Fallback: fallback, Unit: e.Unit,
		RateMode: eventlog.RateFrequency, Rate: rate.Frequency,
	}}
	if rate.Period != 0 {
		g.Def.RateMode, g.Def.Rate = eventlog.RatePeriod, rate.Period
	}
	if fallback != "" {
		g.Notes = append(g.Notes, g.Def.Title()+": "+fallback)
	}
	fit, warning := fitRate(e, rate)
	if warning != "" {
		g.Def.Rate = max(fit.Frequency, fit.Period)
		g.Notes = append(g.Notes, warning)
	}
	if e.Clock() && commensurate(fit) {
		g.Notes = append(g.Notes, fmt.Sprintf("%s is sampled in step with milliseconds: what programs do by timers may be hit always, or never; 241, 487 and 997 Hz are not in step", e))
	}
	g.Detail = &event{granted: g, event: e, rate: fit, auto: rate == perf.Rate{}}
	return g, true, nil
}

func availableEvents() []string {
	var names []string
	for _, e := range perf.Events() {
		if perf.Probe(e) == nil {
			names = append(names, e.Name)
		}
	}
	return names
}

// safeRate is how many samples a second and CPU a period may lead to: at more, a
// program that is sampled does little else.
const safeRate = 10_000

// fitRate lowers a rate that would flood the machine, or that the kernel refuses, to
// one that is safe, and returns a line for the user if it did.
func fitRate(e perf.Event, r perf.Rate) (_ perf.Rate, warning string) {
	limit, ok := perf.MaxRate()
	if !ok || limit <= 0 || r == (perf.Rate{}) {
		return r, ""
	}
	if r.Frequency > uint64(limit) {
		return perf.Rate{Frequency: uint64(limit)}, fmt.Sprintf(
			"%s is sampled at %d Hz, the kernel's limit, not at %d; raise kernel.perf_event_max_sample_rate for more", e, limit, r.Frequency)
	}
	most := min(uint64(limit), safeRate)
	if least := e.PerSecond() / most; r.Period != 0 && r.Period < least {
		return perf.Rate{Period: least}, fmt.Sprintf(
			"%s is sampled every %d %s, not every %d, which could be more than %d samples a second",
			e, least, e.Unit, r.Period, most)
	}
	return r, ""
}

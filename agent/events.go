package agent

import (
	"errors"
	"fmt"
	"strings"

	"ccagent/eventlog"
	"ccagent/perf"

	"github.com/cilium/ebpf"
)

// grantedEvent is an event as it was asked for and as it is sampled.
type grantedEvent struct {
	def   eventlog.EventDef
	event perf.Event
	rate  perf.Rate // as it is to be
	now   perf.Rate // as it is
	// program walks the stack at the event's overflows; the sampler owns it.
	program *ebpf.Program
}

// counted tells whether the kernel counts the event; others are told of by probes.
func (g *grantedEvent) counted() bool {
	return g.def.Requested != AllocEvent && g.def.Requested != OffCPUEvent
}

// EventError is a wrong or unavailable event.
type EventError struct {
	Err       error
	Available []string // what can be sampled instead
}

func (e *EventError) Error() string {
	s := e.Err.Error()
	if len(e.Available) > 0 {
		s += "; available here: " + strings.Join(e.Available, ", ")
	}
	return s + " (ccagent events lists all)"
}

func (e *EventError) Unwrap() error { return e.Err }

// grantEvents resolves the names. Only cycles has a fallback.
func grantEvents(names []string, rate perf.Rate) ([]grantedEvent, error) {
	var granted []grantedEvent
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			return nil, fmt.Errorf("event %s is named twice", name)
		}
		seen[name] = true
		g, err := grantEvent(name, rate)
		if err != nil {
			return nil, err
		}
		g.def.Index = uint32(len(granted))
		granted = append(granted, g)
	}
	return granted, nil
}

func grantEvent(name string, rate perf.Rate) (grantedEvent, error) {
	switch name {
	case AllocEvent:
		return grantAlloc(), nil
	case OffCPUEvent:
		return grantOffCPU(), nil
	}
	wanted, err := perf.Lookup(name)
	if err != nil {
		return grantedEvent{}, &EventError{Err: err}
	}
	var fallback string
	e, err := perf.Grant(wanted)
	var why *perf.UnavailableError
	switch {
	case err == nil:
		if e.Precise < wanted.Precise {
			fallback = fmt.Sprintf("this machine's counters tell addresses no more precisely than level %d of 3", e.Precise)
		}
	case !errors.As(err, &why) || why.Permission:
		return grantedEvent{}, err
	case wanted.Name != "cycles":
		return grantedEvent{}, &EventError{Err: err, Available: availableEvents()}
	case rate.Period != 0:
		return grantedEvent{}, &EventError{Err: fmt.Errorf(
			"a period of %d cycles cannot be kept: %s; give a frequency with -F, or -e cpu-clock with a period in ns", rate.Period, why.Reason)}
	default:
		fallback = why.Reason
		if e, err = perf.Lookup(perf.ClockEvent); err != nil {
			return grantedEvent{}, err
		}
		e.OnlyUser, e.OnlyKernel = wanted.OnlyUser, wanted.OnlyKernel
		if err := perf.Probe(e); err != nil {
			return grantedEvent{}, err
		}
	}
	g := grantedEvent{event: e, rate: rate, def: eventlog.EventDef{
		Requested: name, Granted: e.String(), Fallback: fallback, Unit: e.Unit,
		RateMode: eventlog.RateFrequency, Rate: rate.Frequency,
	}}
	if rate.Period != 0 {
		g.def.RateMode, g.def.Rate = eventlog.RatePeriod, rate.Period
	}
	return g, nil
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

// fit lowers the event's rate where that is needed, and tells so.
func (g *grantedEvent) fit() (told string) {
	if !g.counted() {
		return ""
	}
	if g.rate, told = fitRate(g.event, g.rate); told == "" {
		return ""
	}
	g.def.Rate = max(g.rate.Frequency, g.rate.Period)
	return told
}

// safeRate is how many samples a second and CPU a period may lead to: at more, a
// program that is sampled does little else.
const safeRate = 10_000

// fitRate lowers a rate that would flood the machine, or that the kernel refuses, to
// one that is safe, and tells so.
func fitRate(e perf.Event, r perf.Rate) (_ perf.Rate, told string) {
	limit, ok := perf.MaxRate()
	if !ok || limit <= 0 {
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

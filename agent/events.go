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
	rate  perf.Rate
	// program walks the stack at the event's overflows; the sampler owns it.
	program *ebpf.Program
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
	e := wanted
	if err := perf.Probe(e); err != nil {
		var why *perf.UnavailableError
		if !errors.As(err, &why) {
			return grantedEvent{}, err
		}
		if why.Permission {
			return grantedEvent{}, err
		}
		if wanted.Name != "cycles" {
			return grantedEvent{}, &EventError{Err: err, Available: availableEvents()}
		}
		fallback = why.Reason
		if e, err = perf.Lookup(perf.ClockEvent); err != nil {
			return grantedEvent{}, err
		}
		if err := perf.Probe(e); err != nil {
			return grantedEvent{}, err
		}
		if rate.Period != 0 {
			return grantedEvent{}, &EventError{Err: fmt.Errorf(
				"a period of %d cycles cannot be kept: %s; give a frequency with -F, or -e cpu-clock with a period in ns", rate.Period, why.Reason)}
		}
	}
	g := grantedEvent{event: e, rate: rate, def: eventlog.EventDef{
		Requested: name, Granted: e.Name, Fallback: fallback, Unit: e.Unit,
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

// checkRate refuses frequencies that the kernel would.
func checkRate(r perf.Rate) error {
	limit, ok := perf.MaxRate()
	if r.Frequency != 0 && ok && r.Frequency > uint64(limit) {
		return fmt.Errorf("a frequency of %d Hz is above the kernel's limit of %d; lower -F or raise kernel.perf_event_max_sample_rate", r.Frequency, limit)
	}
	return nil
}

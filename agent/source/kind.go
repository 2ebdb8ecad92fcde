package source

import (
	"fmt"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/perf"
)

// Event is an event that was asked for, as it is granted.
type Event struct {
	// Def describes it in the log; Index is given by Parse. An event without samples is in
	// no definition.
	Def     eventlog.EventDef
	Samples bool
	// Nests is set where samples may be missed because one of the same event was being taken.
	Nests bool
	// Detail is what its kind has to remember.
	Detail any
	// Notes say how the event that is granted differs from what was asked for.
	Notes []string
	// With are events that its source samples besides.
	With []*Event
	// OfCPUTime is set where its source goes by samples of CPU time, and it, or what comes With it, has their unit. If no event that was
	// asked for is of CPU time, the kernel's clock is sampled.
	OfCPUTime bool
}

// CPUTime reports whether the event is of CPU time: a clock, or cycles.
func (e *Event) CPUTime() bool {
	switch name, _, _ := strings.Cut(e.Def.Requested, ":"); name {
	case "cycles", "cpu-cycles", "cpu-clock", "task-clock", "tick":
		return true
	}
	return false
}

// Need is a set of services that a source needs of other sources.
type Need uint8

// Labels is the need of sources that distinguish threads by label.
const Labels Need = 1 << 0

// Closures is the need of what is allocated by closure, beside the code that allocates.
const Closures Need = 1 << 1

// A Kind makes sources of one kind.
type Kind struct {
	// Grant returns the event of a name; false if the kind does not know it. The last kind
	// of the list accepts every name or returns an error.
	Grant func(name string, rate perf.Rate) (*Event, bool, error)
	// New makes the source of those events that its Grant gave, when something needs the
	// source: nil if there is nothing for it to do.
	New func(h *Host, events []*Event, needs Need) Source
	// Needs is what a source of the kind needs of others.
	Needs Need
	// Once is set if no more than one of its events can be asked for.
	Once bool
	// Known lists the events that can be asked for, for the user.
	Known func() []Known
}

// Known is an event that can be asked for.
type Known struct {
	Name, Unit string
	About      string
	// Reason is why this machine lacks it, empty if it does not, and Help what would
	// bring it. What the program lacks is seen at capture.
	Reason, Help string
}

// Asked is what was asked for: events, by the kind that granted them.
type Asked struct {
	Events []*Event // all with samples, by index
	kinds  []Kind
	of     [][]*Event // by kind
}

// Parse grants events by their names.
func Parse(kinds []Kind, names []string, rate perf.Rate) (*Asked, error) {
	a := &Asked{kinds: kinds, of: make([][]*Event, len(kinds))}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("event %s is named twice", name)
		}
		if err := a.grant(name, rate); err != nil {
			return nil, err
		}
	}
	return a, a.grantWith(rate)
}

// clock is the event that is sampled for those that need CPU time.
const clock = "cpu-clock"

// grantWith adds the events that others come with.
func (a *Asked) grantWith(rate perf.Rate) error {
	for k := range a.of {
		for _, e := range slices.Clone(a.of[k]) {
			if e.OfCPUTime && a.CPUTime() == nil && k < len(a.kinds)-1 { // the last kind has the clock
				if err := a.grant(clock, rate); err != nil {
					return err
				}
			}
			if cpu := a.CPUTime(); e.OfCPUTime && cpu != nil {
				for _, of := range append([]*Event{e}, e.With...) {
					if of.Def.Unit == "ns" {
						of.Def.Unit = cpu.Def.Unit
					}
				}
			}
			for _, with := range e.With {
				with.Def.Index = uint32(len(a.Events))
				a.Events = append(a.Events, with)
				a.of[k] = append(a.of[k], with)
			}
		}
	}
	return nil
}

// CPUTime returns the first event of CPU time, nil if there is none.
func (a *Asked) CPUTime() *Event {
	if i := slices.IndexFunc(a.Events, (*Event).CPUTime); i >= 0 {
		return a.Events[i]
	}
	return nil
}

func (a *Asked) grant(name string, rate perf.Rate) error {
	for k, kind := range a.kinds {
		if kind.Grant == nil {
			continue
		}
		e, known, err := kind.Grant(name, rate)
		if err != nil {
			return err
		}
		if !known {
			continue
		}
		if kind.Once && len(a.of[k]) > 0 {
			return fmt.Errorf("event %s is asked for twice, the second time as %s", kind.Known()[0].Name, name)
		}
		if e.Samples {
			e.Def.Index = uint32(len(a.Events))
			a.Events = append(a.Events, e)
		}
		a.of[k] = append(a.of[k], e)
		return nil
	}
	return &EventError{Err: fmt.Errorf("event %s is not known", name)}
}

// Notes returns the notes of all events.
func (a *Asked) Notes() (lines []string) {
	for _, events := range a.of {
		for _, e := range events {
			lines = append(lines, e.Notes...)
		}
	}
	return lines
}

// Set are the sources of a capture.
type Set struct {
	All     []Source
	Asked   []Source // those of events that were asked for
	ByEvent []Source // by index of the event whose samples they consume
}

// Sources makes the sources of what was asked for, and those that need not be asked for.
func (a *Asked) Sources(h *Host) *Set {
	var needs Need
	for k, events := range a.of {
		if len(events) > 0 {
			needs |= a.kinds[k].Needs
		}
	}
	set := &Set{ByEvent: make([]Source, len(a.Events))}
	for k, kind := range a.kinds {
		s := kind.New(h, a.of[k], needs)
		if s == nil {
			continue
		}
		set.All = append(set.All, s)
		if len(a.of[k]) > 0 {
			set.Asked = append(set.Asked, s)
		}
		for _, e := range a.of[k] {
			if e.Samples {
				set.ByEvent[e.Def.Index] = s
			}
		}
	}
	return set
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

// Unavailable is why nothing that was asked for can be measured, nil if something can: the
// reason of the first source.
func (s *Set) Unavailable() error {
	var first error
	for _, one := range s.Asked {
		err := one.Unavailable()
		if err == nil {
			return nil
		}
		if first == nil {
			first = &EventError{Err: fmt.Errorf("no event is left: %w", err)}
		}
	}
	return first
}

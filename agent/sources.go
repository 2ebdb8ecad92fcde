package agent

import (
	"ccagent/agent/alloc"
	"ccagent/agent/ccs"
	"ccagent/agent/cpu"
	"ccagent/agent/nursery"
	"ccagent/agent/offcpu"
	"ccagent/agent/rts"
	"ccagent/agent/source"
	"ccagent/agent/ticky"
)

// kinds lists all ways of measuring. An event belongs to the first kind that accepts its name;
// cpu comes last, because it takes every name for a perf event.
func kinds() []source.Kind {
	return []source.Kind{
		alloc.Kind(),
		nursery.Kind(),
		rts.Kind(),
		offcpu.Kind(),
		ticky.Kind(),
		ccs.Kind(),
		cpu.Kind(),
	}
}

// ProgramEvent is an event of the program and its run-time system, not of the machine.
type ProgramEvent = source.Known

// ProgramEvents lists them.
func ProgramEvents() []ProgramEvent {
	var events []ProgramEvent
	for _, k := range kinds() {
		if k.Known != nil {
			events = append(events, k.Known()...)
		}
	}
	return events
}

// EventError is a wrong or unavailable event.
type EventError = source.EventError

package agent

import (
	"ccagent/agent/alloc"
	"ccagent/agent/ccs"
	"ccagent/agent/cpu"
	"ccagent/agent/offcpu"
	"ccagent/agent/rts"
	"ccagent/agent/source"
	"ccagent/agent/ticky"
)

// kinds are all ways of measuring. An event is of the first kind that knows its name; that of
// events which the kernel counts takes all names for its own.
func kinds() []source.Kind {
	return []source.Kind{
		alloc.Kind(),
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

package agent

import (
	"ccagent/agent/engine"
	"ccagent/agent/source"
)

// ProgramEvent is an event of the program and its run-time system, not of the machine.
type ProgramEvent = source.Known

// ProgramEvents lists them.
func ProgramEvents() []ProgramEvent {
	var events []ProgramEvent
	for _, k := range engine.Kinds() {
		if k.Known != nil {
			events = append(events, k.Known()...)
		}
	}
	return events
}

// EventError is a wrong or unavailable event.
type EventError = source.EventError

// UnsupportedError reports that the kernel lacks a feature that captures need.
type UnsupportedError = engine.UnsupportedError

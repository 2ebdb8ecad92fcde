package sink

import "ccagent/eventlog"

// Counts are of the samples of a log, or of all logs if it rotates.
type Counts struct {
	Events  []EventCount // by index
	Samples uint64
	// Censuses of the heap, which are no samples.
	Censuses uint64
	// Complete, truncated and failed stacks, of samples with a Haskell stack to walk;
	// NoHaskell counts those without.
	Complete, Truncated, Failed, NoHaskell uint64
	// CPUNs is the CPU time of the log's processes, as the log says, and InKernel how many samples of a
	// clock were taken in the kernel.
	CPUNs, InKernel uint64
	// Haskell is set when a sample was of a program with a Haskell run-time system.
	Haskell bool
}

// None reports whether a log has nothing worth keeping.
func (c *Counts) None() bool { return c.Samples == 0 && c.Censuses == 0 }

// EventCount are the samples of one event.
type EventCount struct{ Samples, Weight uint64 }

// Weigh counts a sample of an event, without its stack.
func (c *Counts) Weigh(event int, weight uint64) {
	for len(c.Events) <= event {
		c.Events = append(c.Events, EventCount{})
	}
	c.Events[event].Samples++
	c.Events[event].Weight += weight
	c.Samples++
}

// Stop counts how the walk of a sample's stack ended.
func (c *Counts) Stop(stop eventlog.StopReason) {
	switch {
	case stop == eventlog.StopNoHaskell || stop == eventlog.StopNoUserContext:
		c.NoHaskell++
	case stop.Complete():
		c.Complete++
	case stop.Truncated():
		c.Truncated++
	default:
		c.Failed++
	}
}

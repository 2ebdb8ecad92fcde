package text

import (
	"fmt"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile/columns"
	"ccagent/ui/printer"
)

// samplingJSON is how an event was sampled.
type samplingJSON struct {
	Method string `json:"method"` // "per-cpu", "on-threads" or "tick"
	CPUs   uint32 `json:"cpus"`
	// Others is how often the event hit other processes, which are passed over.
	Others uint64 `json:"hits_in_other_processes"`
	// CPUSeconds is the CPU time of the program's threads by the kernel's count, by which
	// samples of a clock are weighed; Unsampled is the part that no sample stands for.
	CPUSeconds float64 `json:"cpu_seconds"`
	Unsampled  float64 `json:"unsampled_seconds"`
	// InStep is the CPU time of threads whose work was in step with the sampling.
	InStep float64 `json:"in_step_seconds"`
	// Tick is what is known of the kernel's tick, where that was sampled.
	Tick *tickJSON `json:"tick,omitempty"`
	// TotalLow and TotalHigh are the 95 % interval of the sum of weights, where that is an
	// estimate; both are the sum itself where it is a count.
	TotalLow  uint64 `json:"total_low"`
	TotalHigh uint64 `json:"total_high"`
}

// tickJSON is how the kernel's tick was sampled, and the event beside it.
type tickJSON struct {
	Hz      *uint32 `json:"hz"`
	EventHz *uint32 `json:"event_hz"`
	// Aside are the samples at ticks that are left out, of processes in step with it.
	Aside uint64 `json:"left_out"`
}

var methodNames = map[eventlog.SamplingMethod]string{
	eventlog.MethodOnCPUs: "per-cpu", eventlog.MethodOnThreads: "on-threads", eventlog.MethodTick: "tick",
}

func samplingJSONOf(e *columns.Event) *samplingJSON {
	s := &e.Sampling
	if s.Method == eventlog.MethodUnknown {
		return nil
	}
	out := &samplingJSON{
		Method: methodNames[s.Method], CPUs: s.CPUs, Others: s.Others,
		CPUSeconds: float64(s.CPUNs) / 1e9, Unsampled: float64(s.UnsampledNs) / 1e9, InStep: float64(s.InStepNs) / 1e9,
	}
	if out.Method == "" {
		out.Method = "unknown"
	}
	if s.TickHz > 0 {
		out.Tick = &tickJSON{printer.Known(s.TickHz), printer.Known(s.EventHz), s.Aside}
	}
	out.TotalLow, out.TotalHigh = totalInterval(e)
	return out
}

// notWatchedJSON is how long threads that wait were off the CPU without being looked at, without and with the time for which they were preempted.
type notWatchedJSON struct {
	Low  float64 `json:"low_seconds"`
	High float64 `json:"high_seconds"`
}

func notWatchedOf(e *columns.Event) *notWatchedJSON {
	s := &e.Sampling
	if s.UnwatchedMostNs == 0 {
		return nil
	}
	return &notWatchedJSON{float64(s.UnwatchedLeastNs) / 1e9, float64(s.UnwatchedMostNs) / 1e9}
}

// totalInterval is the 95 % interval of an event's sum of weights.
func totalInterval(e *columns.Event) (low, high uint64) {
	off := uint64(1.96 * float64(e.Sampling.TotalError))
	return e.Weight - min(off, e.Weight), columns.SatAdd(e.Weight, off)
}

// samplingOf describes how an event was sampled.
func samplingOf(e *columns.Event) (lines []string) {
	s := &e.Sampling
	if s.UnwatchedMostNs > 0 {
		lines = append(lines, "not watched, to cost no more: "+format.Duration(s.UnwatchedLeastNs)+" to "+format.Duration(s.UnwatchedMostNs)+
			" off the CPU of threads that wait in calls; the row (not watched)")
	}
	cpus := format.Plural(uint64(s.CPUs), "CPU")
	var how string
	switch s.Method {
	case eventlog.MethodOnCPUs:
		how = "by an event on each of " + cpus + ", " + format.Count(s.Others) + " hits in other processes passed over"
	case eventlog.MethodTick:
		how = fmt.Sprintf("by the kernel's tick, %d Hz, and an event on each of %s, %d Hz, that is not in step with it", s.TickHz, cpus, s.EventHz)
	case eventlog.MethodOnThreads:
		how = "by an event on each thread"
	default:
		return lines
	}
	lines = append(lines, how)
	if s.CPUNs > 0 {
		line := fmt.Sprintf("weighed by threads' %s of CPU time, by the kernel's count", format.Duration(s.CPUNs))
		if s.UnsampledNs > 0 {
			line += fmt.Sprintf("; %s without samples", format.Percent(format.Ratio(s.UnsampledNs, s.CPUNs)))
		}
		if before := e.Weight - min(s.CPUNs, e.Weight); before > s.CPUNs/50 {
			line += fmt.Sprintf("; they stand for %s before this log, too", format.Duration(before))
		}
		lines = append(lines, line)
	}
	switch {
	case s.Method == eventlog.MethodTick && s.InStepNs > 0:
		lines = append(lines, "in step with the tick: processes with "+format.Percent(format.Ratio(s.InStepNs, s.CPUNs))+
			" of the CPU time; of these the event alone is used, and "+format.Count(s.Aside)+" ticks are left out")
	case s.Method == eventlog.MethodTick:
		lines = append(lines, "not in step with the tick, as far as the event shows")
	case s.InStepNs > 0:
		lines = append(lines, "in step with the sampling: threads with "+format.Percent(format.Ratio(s.InStepNs, s.CPUNs))+
			" of the CPU time; shares within them may be false; choose another rate with -F")
	}
	if s.TotalError > 0 {
		low, high := totalInterval(e)
		lines = append(lines, "the total is an estimate: "+printer.Quantity(low, e.Unit)+" to "+printer.Quantity(high, e.Unit)+" (95%)")
	}
	return lines
}

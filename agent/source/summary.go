package source

import (
	"time"

	"ccagent/eventlog"
	"ccagent/internal/transactions"
)

// EventSummary is the accounting of one event.
type EventSummary struct {
	Requested, Granted, Fallback, Unit string
	Samples, Weight                    uint64
	// Rate is the rate that was asked for: in Hz, or a period if Period is set.
	Rate   uint64
	Period bool
	// Rates are the changes of it that --max-overhead made, in order.
	Rates []RateChange
	// Idle is for how long OS threads waited without Haskell code that had called, where
	// waits are sampled.
	Idle time.Duration
	// Unwatched is what was not looked at of waits, to cost no more than --max-overhead.
	Unwatched Unwatched
	// WhyNone is why there may be no sample of the event, where that is particular to it.
	WhyNone string
}

// Unwatched is for how long waits were not looked at, and for how long threads were off the CPU then: those that are known to wait in
// calls, at least and at most, and others, which may have been idle.
type Unwatched struct{ Out, Least, Most, Idle time.Duration }

// RateChange is at what rate an event is sampled from a time in the log on, and
// why.
type RateChange struct {
	At time.Duration
	eventlog.EventRate
}

// Summary is the accounting of a finished capture.
type Summary struct {
	Log     string
	LogSize int64 // of all logs
	// Pieces are the logs before Log that rotation left, oldest first; Dropped
	// counts those that were removed again.
	Pieces  []string
	Dropped int
	// Events in the order they were asked for.
	Events []EventSummary
	// Transactions are the attempts to run STM transactions, nil if they were not measured; InTransactions is the
	// part of the CPU time that was inside of them, CPUSamples on how many samples that rests.
	Transactions   *transactions.Totals
	InTransactions float64
	CPUSamples     uint64
	// Heap are the accounts of the censuses of the heap, by process; none if these were not asked for.
	Heap []*eventlog.HeapSeries
	// Probes are the accounting of the timeline's probes, as last written.
	Probes    []eventlog.RTSProbes
	Samples   uint64
	Lost      uint64
	Throttled uint64
	// Complete, truncated and failed stacks, of samples with a Haskell stack
	// to walk; NoHaskell counts those without.
	Complete, Truncated, Failed, NoHaskell uint64
	// Unresolved counts samples whose leaf got no name.
	Unresolved uint64
	Wall       time.Duration
	AgentCPU   time.Duration
	BPFRuns    uint64
	BPFTime    time.Duration // 0 if the kernel does not measure it
	// ProbeHits counts the hits of allocation probes, ProbeTime what all probes cost
	// outside BPF.
	ProbeHits uint64
	ProbeTime time.Duration
	// Interrupts counts the interrupts by which events overflowed, InterruptTime what
	// they cost outside BPF.
	Interrupts    uint64
	InterruptTime time.Duration
	// Stood is for how long the program was stopped, on all CPUs that it used.
	Stood     time.Duration
	TargetCPU time.Duration // 0 where it could not be had
	// WalkMedian and WalkP99 are what one sample took in the walker.
	WalkMedian, WalkP99 time.Duration
	// Haskell is set when a Haskell run-time system was seen.
	Haskell bool
	// Status is the program's exit status where HaveStatus is set.
	Status     int
	HaveStatus bool
	// SymbolProblems are why symbols are missing, a line a reason.
	SymbolProblems []string
}

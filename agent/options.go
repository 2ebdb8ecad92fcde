package agent

import (
	"context"
	"os"
	"time"

	"ccagent/agent/invoker"
	"ccagent/eventlog"
	"ccagent/perf"
)

// Options describe one capture. Exactly one of Program and PID is set.
type Options struct {
	Program []string // the program to record, with its arguments
	PID     int      // the process to attach to

	Output       string // the log's name; empty for PROG.PID.eventlog
	Events       []string
	Rate         perf.Rate
	Duration     time.Duration // 0 = until the target ends
	KernelStacks bool
	// MaxOverhead bounds what measuring takes, as a part of the target's CPU
	// time; 0 is no bound.
	MaxOverhead float64
	EmbedSource bool
	// Live has names looked up and written while the capture runs, for who
	// follows the log.
	Live      bool
	MaxFrames int
	User      string // run, own and trace as this user; empty for the invoking one

	// Rotate begins a new log when one has reached so many bytes; 0 never does.
	// Keep is how many of them are kept; 0 keeps all.
	Rotate uint64
	Keep   int

	// SymbolizeMemory bounds the symboliser, in bytes, and SymbolizeTime its
	// run.
	SymbolizeMemory uint64
	SymbolizeTime   time.Duration

	// Stdio are the program's standard streams where they are not nil; the agent's
	// own where they are.
	Stdio [3]*os.File
	// Started, if not nil, is told of the log and the target before that runs. An
	// error ends the capture.
	Started func(log *os.File, pid int) error

	// Finishing, if not nil, is called when the log is to be finished, and no program that
	// was started runs any more.
	Finishing func()
	// Derive, if not nil, is called with each log that is finished and has samples, and
	// may replace it. The log is still locked then.
	Derive func(ctx context.Context, log *invoker.Log) error

	AgentVersion string
	// Warn takes what the user should know at once, a line without newline.
	Warn func(line string)
}

// EventSummary is the accounting of one event.
type EventSummary struct {
	Requested, Granted, Fallback, Unit string
	Samples, Weight                    uint64
	// Rate is the rate that was asked for: in Hz, or a period if Period is set.
	Rate   uint64
	Period bool
	// Rates are the changes of it that --max-overhead made, in order.
	Rates []RateChange
}

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
	// Probes are the accounting of the timeline's probes, as last written.
	Probes []eventlog.RTSProbes
	// Idle is for how long OS threads waited without Haskell code that had
	// called, where waits are sampled.
	Idle      time.Duration
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
	BPFTime    time.Duration // 0 where the kernel does not tell
	// ProbeHits counts the hits of allocation probes, ProbeTime what they cost
	// outside BPF.
	ProbeHits uint64
	ProbeTime time.Duration
	// Interrupts counts the interrupts by which events overflowed, InterruptTime what
	// they cost outside BPF.
	Interrupts    uint64
	InterruptTime time.Duration
	TargetCPU     time.Duration // 0 where it could not be had
	// WalkMedian and WalkP99 are what one sample took in the walker.
	WalkMedian, WalkP99 time.Duration
	// Haskell is set when a Haskell run-time system was seen.
	Haskell bool
	// Status is the program's exit status where HaveStatus is set.
	Status     int
	HaveStatus bool
	// SymbolProblem tells why symbols are missing as a whole; empty if they
	// are not.
	SymbolProblem string
}

package agent

import (
	"context"
	"os"
	"time"

	"ccagent/agent/invoker"
	"ccagent/agent/source"
	"ccagent/perf"
)

// Options describe one capture. Exactly one of Program and PID is set.
type Options struct {
	Program []string // the program to record, with its arguments
	PID     int      // the process to attach to

	Output       string // the log's name; empty for PROG.PID.eventlog
	Events       []string
	Rate         perf.Rate     // zero: chosen by what an interrupt costs
	Duration     time.Duration // 0 = until the target ends
	KernelStacks bool
	// MaxOverhead bounds what measuring takes, as a part of the target's CPU
	// time; 0 is no bound.
	MaxOverhead float64
	// MaxPause is for how long the program may be stopped at once, to count its heap; 0 is no bound.
	MaxPause time.Duration
	// KeepRate keeps Rate whatever MaxOverhead is: it holds for other measuring then.
	KeepRate    bool
	EmbedSource bool
	// NoArgs leaves the program's arguments out of the log, NoLabels what it calls its
	// threads.
	NoArgs, NoLabels bool
	// Live looks up and writes names while the capture runs, for readers that follow the
	// log.
	Live      bool
	MaxFrames int
	User      string // run, own and trace as this user; empty for the invoking one

	// Rotate begins a new log when one has reached so many bytes; 0 never does.
	// Keep is how many of them are kept; 0 keeps all.
	Rotate uint64
	Keep   int

	// Debuginfod are the servers that are asked for debug files, as debuginfod.Parse gives them.
	Debuginfod []string

	// SymbolizeMemory bounds the symboliser, in bytes, and SymbolizeTime its
	// run.
	SymbolizeMemory uint64
	SymbolizeTime   time.Duration

	// Stdio are the program's standard streams where they are not nil; the agent's
	// own where they are.
	Stdio [3]*os.File
	// Started, if not nil, is called with the log and the target before the target runs. An
	// error ends the capture.
	Started func(log *os.File, pid int) error

	// Dumps, if not nil, asks for dumps of what the target's threads do, into the log. What it receives is answered once, when
	// the dump has been flushed, or with why there is none; it must have room for the answer.
	Dumps <-chan chan<- error

	// Finishing, if not nil, is called when the log is to be finished, and no program that
	// was started runs any more.
	Finishing func()
	// Waiting, if not nil, is called when the capture is over since Duration has passed, with its
	// result, and the program that was started is waited for.
	Waiting func(*Summary, error)
	// Derive, if not nil, is called with each log that is finished and has samples, and
	// may replace it. The log is still locked then.
	Derive func(ctx context.Context, log *invoker.Log) error

	AgentVersion string
	// Warn takes what the user should know at once, a line without newline.
	Warn func(line string)
}

// Summary and its parts are the accounting of a finished capture.
type (
	Summary      = source.Summary
	EventSummary = source.EventSummary
	Unwatched    = source.Unwatched
	RateChange   = source.RateChange
)

// Package source has the interface between a capture and each way of measuring: a Source
// loads its BPF programs, attaches to process images, consumes its records, writes what it
// cost and lost, keeps within its budget, and finishes.
//
// A Kind turns the names of events that were asked for into a Source; what names there are is
// known to kinds alone. A capture holds a set of sources, and asks them all the same things
// in the same order:
//
//	New, Load, Follow and Attach (once a process is there), Start
//	Consume (each record), Throttle (each turn), Account (each second), Declare (a new log)
//	Stop, Finish, Account, Report, Close
//
// All methods are called by one goroutine, except that sources are loaded side by side.
package source

import (
	"errors"
	"math"
	"time"

	"ccagent/agent/closures"
	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// A Source is one way of measuring. Base has all methods for those that a source has no use
// for.
type Source interface {
	// Prepare, Attach, Unwindable and Detach follow the life of process images.
	process.Watcher

	// Load loads the source's BPF programs.
	Load() error
	// Follow prepares to measure these threads and all that they will create, in place of
	// those that it was given before; none if processes Join later.
	Follow(tids []int) error
	// Unfollow undoes Follow.
	Unfollow() error
	// Unavailable is why none of the source's events can be measured, nil if some can. It is
	// asked when the first process has been attached to.
	Unavailable() error
	// Start begins to measure. The target runs from then on.
	Start() error

	// Consume takes a record of one of the source's events, or of a type that it Receives.
	// The record is valid during the call.
	Consume(r *perf.Sample) error
	// Throttle charges what was used since the last time, and changes how often is measured
	// to keep within the budget.
	Throttle(u Use) error
	// Cost is what the source has cost so far.
	Cost() (Cost, error)
	// Account writes what was lost and counted since the last time. It is called about once a
	// second, and at the end.
	Account() error
	// Declare writes into a new log what it needs to be read alone, at a time.
	Declare(at uint64) error
	// Leave is called before a process's log is exchanged for another, where each has its own, and
	// Enter after that: it is the Declare of one process.
	Leave(im *process.Image) error
	Enter(im *process.Image, at uint64) error

	// Stop ends measuring: what has happened by then will be consumed.
	Stop() error
	// Finish writes what is left when all records have been consumed.
	Finish(at uint64) error
	// Report adds what the source knows to the summary of the capture.
	Report(s *Summary)
	// Close releases all that the source has. It may be called at any time.
	Close() error
}

// Receiver is a Source that takes records of types of its own, besides the samples of its
// events.
type Receiver interface {
	Source
	Receives() []uint8 // bpf.Record…
}

// Annotator is a Source that adds to samples of all events what it knows, before they are
// written.
type Annotator interface {
	Annotate(im *process.Image, r *perf.Sample, e *eventlog.Sample) error
}

// Witness is a Source that is shown the samples of all events as they are written: those of clocks have their weight by then, which they
// get some time after they were taken. The sample is the one that Annotators were given.
type Witness interface {
	Written(im *process.Image, time uint64, e *eventlog.Sample) error
}

// Joiner is a Source that is notified of a process that runs already and is to be measured from
// now on, beside those that it Follows.
type Joiner interface {
	Join(pid uint32) error
}

// Base is a Source that measures nothing. Sources embed it.
type Base struct{}

func (Base) Prepare(*process.Image)              {}
func (Base) Attach(*process.Image) error         { return nil }
func (Base) Unwindable(*process.Image)           {}
func (Base) Detach(*process.Image, uint64) error { return nil }
func (Base) Load() error                         { return nil }
func (Base) Follow([]int) error                  { return nil }
func (Base) Unfollow() error                     { return nil }
func (Base) Unavailable() error                  { return nil }
func (Base) Start() error                        { return nil }
func (Base) Consume(*perf.Sample) error          { return nil }
func (Base) Throttle(Use) error                  { return nil }
func (Base) Cost() (Cost, error)                 { return Cost{}, nil }
func (Base) Account() error                      { return nil }
func (Base) Declare(uint64) error                { return nil }
func (Base) Leave(*process.Image) error          { return nil }
func (Base) Enter(*process.Image, uint64) error  { return nil }
func (Base) Stop() error                         { return nil }
func (Base) Finish(uint64) error                 { return nil }
func (Base) Report(*Summary)                     {}
func (Base) Close() error                        { return nil }

// Host is what a capture lends to its sources. Log, Processes and Walker are there when Load
// is called.
type Host struct {
	Walker    *bpf.Sampler
	Log       *sink.Set // each image has its own of them
	Processes *process.Table
	Budget    *overhead.Budget
	// MaxPause is for how long a process may be stopped at once; 0 is no bound.
	MaxPause time.Duration
	// OwnLogs is set where each process has a log, and a budget, of its own.
	OwnLogs bool
	// LoadLate is set where the program's run-time system has no symbols: a source that cannot do
	// without loads its BPF programs when it attaches to another program.
	LoadLate bool
	// Budgets, if not nil, returns the budget of a process, within Budget.
	Budgets func(im *process.Image) *overhead.Budget
	// Without, if not nil, reports whether an event is not to be measured in a process.
	Without func(im *process.Image, event string) bool
	// Collected, if not nil, is notified of each collection that was seen, its pause in ns.
	Collected func(im *process.Image, pause uint64, major bool)
	// Closures are the info tables that sources have found. Who declares a log has it begin anew.
	Closures *closures.Registry

	// CPUTime is the first event of CPU time, nil if none is sampled.
	CPUTime *Event

	// Timed is set if the kernel measures how long BPF programs run.
	Timed bool
	// Walks is what samples took in the walker.
	Walks *overhead.Histogram

	// Image returns the image of a process, which is looked at if it was not known.
	Image func(pid uint32) (*process.Image, error)
	// LogOf returns the log of a process, nil if it is not known.
	LogOf func(pid uint32) *sink.Sink
	// Write writes a sample with its stack and what annotators know of it.
	Write func(im *process.Image, r *perf.Sample) (*eventlog.Sample, error)
	// Place is like Write, but does not write the sample itself: WriteAt does, once it is weighed.
	Place   func(im *process.Image, r *perf.Sample) (*eventlog.Sample, error)
	WriteAt func(im *process.Image, time uint64, e *eventlog.Sample) error
	// WriteKnown writes a sample whose stack is in the log, as of a time.
	WriteKnown func(im *process.Image, time uint64, e *eventlog.Sample) error
	// Threads lists the threads of all processes, in order; false where some process may not
	// be known.
	Threads func() (tids []int, sure bool, err error)
	// Drain consumes what has arrived.
	Drain func() error
	// TargetCPU is the CPU time that the target has used since the capture began, ns.
	TargetCPU func() uint64
}

// WarnOf writes a warning about one process into its log. The user reads the same warning once, also if it is true of
// several processes.
func (h *Host) WarnOf(im *process.Image, line string) {
	tell := line
	if h.OwnLogs {
		tell += "; ccagent ps says of which processes"
	}
	h.Log.WarnOf(im.Log, line, tell)
}

// Use is what has been used, in ns.
type Use struct {
	Cost   Cost   // of the source, so far
	Time   uint64 // CLOCK_MONOTONIC
	Target uint64 // CPU time of the target since the capture began
	// Handling is what of the agent's CPU time on records of this source is charged to the
	// target, since the last time.
	Handling float64
}

// Cost is what a source has cost the target so far. What a source writes into the log by
// itself is left out.
type Cost struct {
	Samples     bpf.RunStats // of programs at overflows of events, and at switches of threads
	Interrupts  uint64       // that brought the overflows
	InterruptNs uint64       // outside of BPF
	Probes      bpf.RunStats // of programs at hits of probes
	ProbeNs     uint64       // outside of BPF
	RTSNs       uint64       // of probes at events of the run-time system, all
	StoodNs     uint64       // for which the target was stopped, on all CPUs that it used
	Handled     uint64       // a number that is in proportion to what the agent had to handle
	Part        float64      // of the asked rate at which events are sampled; 0 if that is not changed
	InPlace     InPlace
}

// InPlace is for how long allocation probes have been in place, ns.
type InPlace struct{ Nursery, Blocks, Large uint64 }

// Pacer is a Source that wants to be asked to Throttle sooner than others.
type Pacer interface {
	// Pace is how long to wait for the next turn, at the most, at a time since the target was
	// let run.
	Pace(since time.Duration) time.Duration
}

// Looker is a Source that looks at processes at moments of its own, where each has a log of its own. NextLook is how long it
// is to the next one; Look does nothing before.
type Looker interface {
	NextLook() time.Duration
	Look() error
}

// Glancer is a Source whose probes may cost much of a sudden. Where each process has a log of its own it looks at them more often than it is
// charged by Throttle, which knows what all processes have used. Glance is given the time, ns.
type Glancer interface {
	Glance(now uint64) error
}

// Never is a Pace without a wish.
const Never = time.Duration(math.MaxInt64)

// BudgetOf returns the budget of a process: that of all if it has none of its own.
func (h *Host) BudgetOf(im *process.Image) *overhead.Budget {
	if h.Budgets == nil {
		return h.Budget
	}
	return h.Budgets(im)
}

// ErrExcluded is why an event is not measured in a process for which it is not wanted.
var ErrExcluded = errors.New("a rule of the configuration leaves it out")

// ErrNoRTS is why a process has no probes in which no run-time system was seen: also while it has not been attached to yet.
var ErrNoRTS = errors.New("no Haskell run-time system was seen in the process")

// Excluded returns ErrExcluded for an event that is not to be measured in a process, else nil.
func (h *Host) Excluded(im *process.Image, event string) error {
	if h.Without != nil && h.Without(im, event) {
		return ErrExcluded
	}
	return nil
}

// Lost writes which samples of an event the ring buffer had no room for.
func (h *Host) Lost(e *Event) error {
	index := int(e.Def.Index)
	perCPU, err := h.Walker.Lost(index)
	if err != nil {
		return err
	}
	for cpu, n := range perCPU {
		if err := h.Log.Lost(sink.Place{CPU: cpu, Event: index, Reason: eventlog.LossRingFull}, n); err != nil {
			return err
		}
	}
	return nil
}

package columns

import (
	"ccagent/eventlog"
	"ccagent/internal/transactions"
	"ccagent/profile/imports"
)

// Log is the contents of one log. It never changes after it was read.
type Log struct {
	// Capture is the zero value if the log does not have it: the log is then of
	// another program, or damaged.
	Capture     eventlog.Capture
	HaveCapture bool
	End         eventlog.CaptureEnd // zero unless HaveEnd
	HaveEnd     bool

	Events    []Event
	Threads   []Thread
	Modules   []Module
	Mappings  []Mapping
	Processes []Process
	Losses    []Loss
	Gaps      []Gap  // in order of time
	Costs     []Cost // cost of measuring, as the capture reported it at intervals
	Overheads []Overhead
	Warnings  []Warning
	GCs       []GC
	Heap      []HeapPoint
	Markers   []Marker
	// Accounting counts the parts of the log that could not be used.
	Accounting Accounting
	// Duration is the time of the last event, in ns. It is 0 of what has no times, as pprof's
	// profiles: see Lasted.
	Duration uint64
	// Symbolised is set when the log has symbol tables.
	Symbolised bool
	// Import is set for a profile of another profiler, which was converted to a log.
	Import *imports.Summary
	// RTS is the name and version that the RTS states, in logs written by an RTS.
	RTS string
	// RTSLog is what the RTS reported about itself and the program.
	RTSLog RTS
	// Exact counts the samples that carry cost-centre stacks.
	Exact ExactStacks
	// HeapProfiles are the RTS's heap profiles; usually there is at most one.
	HeapProfiles []HeapProfile
	// HeapSeries are the accounts of ccagent's series of censuses, one of each process.
	HeapSeries []eventlog.HeapSeries
	// InfoTables are sorted by address; see InfoTable.
	InfoTables []eventlog.InfoTable
	Ticky      []TickyCounter
	Nurseries  Nurseries
	// Transactions are the attempts to run transactions that were counted.
	Transactions transactions.Totals
	// Search says how choices, guards and failures were counted.
	Search SearchCounts
	// Attempts are sampled attempts with their variables. Their nodes are indices in Nodes.
	Attempts   []eventlog.TransactionVariables
	Dumps      []Dump
	HeapGraphs []HeapGraph
	Footprints []Footprint

	// The columns that queries use. Index 0 of Nodes, of Places and of the symbol
	// tables means none.
	Chunks       []*Chunk // samples, in the order of the log
	Totals       []Totals // by event; replaces Chunks if OpenTotals read the log
	Contexts     []Context
	Sites        []Site
	SkippedWords map[uint32][2]uint64 // by site: least and most words of stack left out
	FoldedFrames map[uint32]Folded    // by site, of those whose recursion was folded
	Nodes        Nodes
	Places       []Place
	Locations    []Location // by place
	Symbols      Symbols

	nsamples int
	noted    bool // some code of the log has source notes
}

// Event is a sampled event with its totals over the whole log.
type Event struct {
	eventlog.EventDef
	// Undefined is set when samples refer to the event but the log does not define
	// it.
	Undefined bool
	Samples   uint64
	Weight    uint64
	Lost      uint64
	Throttled uint64
	// Stops counts the samples by stop reason.
	Stops [32]uint64
	// TopsByCFI and TopsScanned count the samples whose topmost Haskell frame was
	// found by call frame information, and by scanning the stack.
	TopsByCFI, TopsScanned uint64
	// InTransactions is the weight of samples that were taken inside of transactions.
	InTransactions uint64
	// Count is the event's total count; zero if the log does not have it.
	Count eventlog.EventCount
	// Sampling is how the event was sampled; zero if the log does not have it.
	Sampling eventlog.Sampling
	// Rates are the changes of the event's sampling rate, ordered by time.
	Rates []EventRate
}

// EventRate is the rate at which an event is sampled from a time on.
type EventRate struct {
	Time uint64
	eventlog.EventRate
}

// maxRates bounds the number of rate changes kept for an event.
const maxRates = 1000

// Waits reports whether the event measures time off the CPU.
func (e *Event) Waits() bool { return e.Granted == "off-cpu" || e.Granted == "blocked" }

// PartOfCPU reports whether the event's weight is a part of the CPU time, or cycles, that another event samples.
func (e *Event) PartOfCPU() bool { return e.Granted == STMCPU || e.Granted == Duplicated }

// Clock reports whether the event's weight is all CPU time, in ns.
func (e *Event) Clock() bool { return e.Unit == "ns" && !e.Waits() && !e.PartOfCPU() }

// CPU reports whether the event's weight is all CPU time, in ns or cycles.
func (e *Event) CPU() bool { return e.Clock() || e.Unit == "cycles" && !e.PartOfCPU() }

// Events that attempts to run transactions are sampled as: their number, and the CPU time that they took.
const (
	STM    = "stm"
	STMCPU = "stm-cpu"
)

// Duplicated is the event of evaluating what another thread evaluates too.
const Duplicated = "duplicated"

// OnCounter returns the fraction of the time in which the event was on a hardware
// counter: less than 1 if events were multiplexed, and 1 if it is not known.
func (e *Event) OnCounter() float64 {
	if e.Count.EnabledNs == 0 || e.Count.RunningNs >= e.Count.EnabledNs {
		return 1
	}
	return float64(e.Count.RunningNs) / float64(e.Count.EnabledNs)
}

// Achieved returns the number of samples per second of the program's CPU time, 0 if it is
// not known.
func (e *Event) Achieved() float64 {
	if e.Count.EnabledNs == 0 {
		return 0
	}
	return float64(e.Samples) * 1e9 / float64(e.Count.EnabledNs)
}

// Name returns the event's name as the user gave it.
func (e *Event) Name() string { return e.Requested }

// Module is a mapped file, with the symboliser's findings about it.
type Module struct {
	eventlog.Module
	Symbols     eventlog.ModuleSymbols
	HaveSymbols bool
}

// Mapping is the address range of a module from a time on.
type Mapping struct {
	Time uint64
	eventlog.Mapping
}

// Process is an event of a process's life: fork, exec, exit.
type Process struct {
	Time uint64
	eventlog.Process
}

// Loss is a number of samples that were lost, with the time at which this was reported.
type Loss struct {
	Time uint64
	eventlog.Loss
}

// Cost is the accumulated cost of measuring at a time.
type Cost struct {
	Time uint64
	eventlog.AgentCost
}

// Overhead is the cost of measuring in an interval that ends at a time.
type Overhead struct {
	Time uint64
	eventlog.Overhead
}

// Warning is a warning that the capture gave its user at a time.
type Warning struct {
	Time uint64
	Text string
}

// GC is one capability's part in a garbage collection.
type GC struct {
	Cap        int
	Start, End uint64
	// Request is when this capability asked the others to stop; 0 if it led no collection that
	// stops others, or the log does not say.
	Request uint64
	// Worked is the part of the time in which it collected, in ns. In the rest it waited for the
	// others, spinning or asleep.
	Worked uint64
}

// HeapPoint is a measured size of the heap at a time.
type HeapPoint struct {
	Time uint64
	Kind HeapKind
	Cap  int    // that reported it, or eventlog.NoCap
	Size uint64 // bytes
}

// HeapKind is what a HeapPoint measures.
type HeapKind uint8

const (
	HeapLive      HeapKind = iota // live data after a major collection
	HeapSize                      // taken from the operating system
	HeapAllocated                 // allocated since the start, by one capability
	HeapBlocks                    // in blocks that are in use
)

// Marker is a user marker or message.
type Marker struct {
	Time    uint64
	Cap     int
	Text    string
	Message bool // a message, not a marker
}

// EventNamed returns the position of an event by its requested or granted name.
func (p *Log) EventNamed(name string) (int, bool) {
	for i := range p.Events {
		if p.Events[i].Requested == name {
			return i, true
		}
	}
	for i := range p.Events {
		if p.Events[i].Granted == name {
			return i, true
		}
	}
	return 0, false
}

// DefaultEvent returns the event shown when the user asks for none: the first one with
// samples, or −1 if the log defines no event.
func (p *Log) DefaultEvent() int {
	for i := range p.Events {
		if p.Events[i].Samples > 0 {
			return i
		}
	}
	return len(p.Events[:min(1, len(p.Events))]) - 1
}

// Cost returns the cost of the whole capture; false if the log does not have it.
func (p *Log) Cost() (Cost, bool) {
	if len(p.Costs) == 0 {
		return Cost{}, false
	}
	return p.Costs[len(p.Costs)-1], true
}

// HasNotes reports whether any code of the log has source notes.
func (p *Log) HasNotes() bool { return p.noted }

// count adds a sample to the event's totals.
func (e *Event) count(s *eventlog.PackedSample) {
	e.Samples++
	e.Weight = SatAdd(e.Weight, s.Weight)
	e.Stops[min(int(s.Stop), len(e.Stops)-1)]++
	if s.Flags&eventlog.SampleTopCFI != 0 {
		e.TopsByCFI++
	}
	if s.Flags&eventlog.SampleTopScanned != 0 {
		e.TopsScanned++
	}
	if s.Flags&eventlog.SampleInTransaction != 0 {
		e.InTransactions = SatAdd(e.InTransactions, s.Weight)
	}
}

// Lasted returns for how long the log's samples were taken, in ns, also where only the whole of
// it is known and not when each was.
func (l *Log) Lasted() uint64 {
	if l.Import != nil {
		return max(l.Duration, l.Import.Duration)
	}
	return l.Duration
}

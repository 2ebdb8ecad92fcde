package columns

import (
	"ccagent/eventlog"
	"ccagent/profile/imports"
)

// Log is what one log holds. It never changes once it was read.
type Log struct {
	// Capture is the zero value if the log has none: it is then another
	// program's log, or damaged.
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
	Costs     []Cost // what measuring cost, as told in the course of the capture
	Overheads []Overhead
	Warnings  []Warning
	GCs       []GC
	Heap      []HeapPoint
	Markers   []Marker
	// Accounting is what of the log could not be used, and why.
	Accounting Accounting
	// Duration is the time of the last event, in ns.
	Duration uint64
	// Symbolised is set when the log has symbol tables.
	Symbolised bool
	// Import is set for what another profiler wrote: no log, but read as one.
	Import *imports.Summary
	// RTS is what the log's RTS calls itself, in logs that an RTS wrote.
	RTS string
	// RTSLog is what it told.
	RTSLog RTS
	// Exact tells of the cost-centre stacks that samples carry.
	Exact ExactStacks
	// HeapProfiles are what the RTS told of the heap's contents; mostly one.
	HeapProfiles []HeapProfile
	// InfoTables are by address; see InfoTable.
	InfoTables []eventlog.InfoTable
	Ticky      []TickyCounter

	// The columns, which queries go through. Index 0 of Nodes, of Places and of the
	// symbol tables stands for none.
	Chunks       []*Chunk // samples, in the order of the log
	Totals       []Totals // by event, in place of Chunks, where OpenTotals read the log
	Contexts     []Context
	Sites        []Site
	SkippedWords map[uint32][2]uint64 // by site: fewest and most words of stack left out
	Nodes        Nodes
	Places       []Place
	Locations    []Location // by place
	Symbols      Symbols

	nsamples int
	noted    bool // code of the log has source notes
}

// Event is a sampled event with its totals over the whole log.
type Event struct {
	eventlog.EventDef
	// Undefined is set when samples refer to the event and nothing defines it.
	Undefined bool
	Samples   uint64
	Weight    uint64
	Lost      uint64
	Throttled uint64
	// Stops counts the samples by stop reason.
	Stops [32]uint64
	// TopsByCFI and TopsScanned count the samples whose topmost Haskell frame was
	// found by call frame information, and by scanning the stack for it.
	TopsByCFI, TopsScanned uint64
	// Count is what the event counted in all; zero where the log does not tell.
	Count eventlog.EventCount
	// Rates are the changes of its rate, in the order of time.
	Rates []EventRate
}

// EventRate is at what rate an event was sampled from a time on.
type EventRate struct {
	Time uint64
	eventlog.EventRate
}

// maxRates bounds the changes of an event's rate that are kept.
const maxRates = 1000

// Waits reports whether the event tells of time off the CPU, not on it.
func (e *Event) Waits() bool { return e.Granted == "off-cpu" }

// OnCounter is the part of the time in which the event was on a counter: less than 1
// where events took turns. 1 if it is not known.
func (e *Event) OnCounter() float64 {
	if e.Count.EnabledNs == 0 || e.Count.RunningNs >= e.Count.EnabledNs {
		return 1
	}
	return float64(e.Count.RunningNs) / float64(e.Count.EnabledNs)
}

// Achieved is how many samples were taken in a second of the program's CPU time, 0 if
// that is not known.
func (e *Event) Achieved() float64 {
	if e.Count.EnabledNs == 0 {
		return 0
	}
	return float64(e.Samples) * 1e9 / float64(e.Count.EnabledNs)
}

// Name is the event's name as the user gave it.
func (e *Event) Name() string { return e.Requested }

// Module is a mapped file, with what the symboliser found in it.
type Module struct {
	eventlog.Module
	Symbols     eventlog.ModuleSymbols
	HaveSymbols bool
}

// Mapping is where a module lay from a time on.
type Mapping struct {
	Time uint64
	eventlog.Mapping
}

// Process is an event of a process's life.
type Process struct {
	Time uint64
	eventlog.Process
}

// Loss is samples that were not recorded, told at a time.
type Loss struct {
	Time uint64
	eventlog.Loss
}

// Cost is what measuring had cost up to a time.
type Cost struct {
	Time uint64
	eventlog.AgentCost
}

// Overhead is what measuring cost in an interval that ends at a time.
type Overhead struct {
	Time uint64
	eventlog.Overhead
}

// Warning is what the user of the capture was told at a time.
type Warning struct {
	Time uint64
	Text string
}

// GC is a capability's part in a collection.
type GC struct {
	Cap        int
	Start, End uint64
}

// HeapPoint is the heap's size at a time.
type HeapPoint struct {
	Time uint64
	Kind HeapKind
	Cap  int    // that told, or eventlog.NoCap
	Size uint64 // bytes
}

// HeapKind says what a HeapPoint measures.
type HeapKind uint8

const (
	HeapLive      HeapKind = iota // live data after a major collection
	HeapSize                      // taken from the OS
	HeapAllocated                 // ever allocated, by one capability
	HeapBlocks                    // in blocks in use
)

// Marker is a user marker or message.
type Marker struct {
	Time    uint64
	Cap     int
	Text    string
	Message bool // a message, not a marker
}

// EventNamed gives the position of an event by its requested or granted name.
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

// DefaultEvent is the event shown when the user asks for none: the first one
// with samples, or −1 if the log defines no event.
func (p *Log) DefaultEvent() int {
	for i := range p.Events {
		if p.Events[i].Samples > 0 {
			return i
		}
	}
	return len(p.Events[:min(1, len(p.Events))]) - 1
}

// Cost is what the whole capture cost; false if the log does not tell.
func (p *Log) Cost() (Cost, bool) {
	if len(p.Costs) == 0 {
		return Cost{}, false
	}
	return p.Costs[len(p.Costs)-1], true
}

// HasNotes reports whether any code of the log has source notes.
func (p *Log) HasNotes() bool { return p.noted }

// tops are the flags that tell how the topmost Haskell frame was found.
const tops = eventlog.SampleTopCFI | eventlog.SampleTopScanned

func (e *Event) countTops(flags eventlog.SampleFlags, samples uint64) {
	if flags&eventlog.SampleTopCFI != 0 {
		e.TopsByCFI += samples
	}
	if flags&eventlog.SampleTopScanned != 0 {
		e.TopsScanned += samples
	}
}

package eventlog

// This file holds the events of GHC's profilers: cost-centre time profiles,
// heap profiles, info table provenance, perf counters and ticky counters.

// ProfBegin opens a time profile.
type ProfBegin struct{ TickNs uint64 }

// CostCentre defines a cost centre.
type CostCentre struct {
	Centre                uint32
	Label, Module, SrcLoc string
	Flags                 uint8 // bit 0: CAF
}

// ProfSample is a time profile's sample.
type ProfSample struct {
	Cap   uint32
	Tick  uint64
	Stack []uint32 // cost centres, innermost first; at most 255
}

// HeapBreakdown says what a heap profile's bands are.
type HeapBreakdown uint32

// Heap profile breakdowns.
const (
	BreakdownCostCentre   HeapBreakdown = 1
	BreakdownModule       HeapBreakdown = 2
	BreakdownClosureDescr HeapBreakdown = 3
	BreakdownTypeDescr    HeapBreakdown = 4
	BreakdownRetainer     HeapBreakdown = 5
	BreakdownBiography    HeapBreakdown = 6
	BreakdownClosureType  HeapBreakdown = 7
	BreakdownInfoTable    HeapBreakdown = 8
	BreakdownEra          HeapBreakdown = 9
)

// HeapProfBegin opens a heap profile. The filters are those of the command line.
type HeapProfBegin struct {
	Profile                                            uint8
	PeriodNs                                           uint64
	Breakdown                                          HeapBreakdown
	Module, ClosureDescr, TypeDescr                    string
	CostCentre, CostCentreStack, Retainer, Biographies string
}

// HeapSampleBegin opens a sample of the heap: a census.
type HeapSampleBegin struct{ Era uint64 }

// HeapBioSampleBegin opens a biographical sample; Time is that of the census.
type HeapBioSampleBegin struct{ Era, Time uint64 }

// HeapSampleEnd closes a sample.
type HeapSampleEnd struct{ Era uint64 }

// HeapSampleStack is what one cost-centre stack holds.
type HeapSampleStack struct {
	Profile uint8
	Bytes   uint64
	Stack   []uint32 // cost centres, innermost first; at most 255
}

// HeapSampleString is what one band holds.
type HeapSampleString struct {
	Profile uint8
	Bytes   uint64
	Label   string
}

// InfoTable is where an info table comes from (IPE, GHC ≥ 9.2).
type InfoTable struct {
	Info        uint64 // address
	Name        string
	ClosureType string // the closure type's number in decimal
	Type        string
	Label       string
	Module      string
	SrcLoc      string // "file:span"
}

// PerfName names a counter or tracepoint of perf.
type PerfName struct {
	Num  uint32
	Name string
}

// PerfCounter is a sample of a counter.
type PerfCounter struct {
	Num          uint32
	KernelThread uint64
	Period       uint64
}

// PerfTracepoint is a hit of a tracepoint.
type PerfTracepoint struct {
	Num          uint32
	KernelThread uint64
}

// TickyCounterDef defines a ticky-ticky counter.
type TickyCounterDef struct {
	Counter     uint64
	Arity       uint16
	Kinds, Name string
	Info        uint64 // info table's address; 0 = unknown, as in GHC ≤ 9.2
	JSON        string // description; empty = unknown
}

// TickyCounterSample is a counter's state.
type TickyCounterSample struct{ Counter, Entries, Allocs, Allocated uint64 }

// TickyBeginSample opens a set of counter samples.
type TickyBeginSample struct{}

func (*ProfBegin) EventID() uint16          { return IDProfBegin }
func (*CostCentre) EventID() uint16         { return IDCostCentre }
func (*ProfSample) EventID() uint16         { return IDProfSample }
func (*HeapProfBegin) EventID() uint16      { return IDHeapProfBegin }
func (*HeapSampleBegin) EventID() uint16    { return IDHeapSampleBegin }
func (*HeapBioSampleBegin) EventID() uint16 { return IDHeapBioSampleBegin }
func (*HeapSampleEnd) EventID() uint16      { return IDHeapSampleEnd }
func (*HeapSampleStack) EventID() uint16    { return IDHeapSampleStack }
func (*HeapSampleString) EventID() uint16   { return IDHeapSampleString }
func (*InfoTable) EventID() uint16          { return IDInfoTable }
func (*PerfName) EventID() uint16           { return IDPerfName }
func (*PerfCounter) EventID() uint16        { return IDPerfCounter }
func (*PerfTracepoint) EventID() uint16     { return IDPerfTracepoint }
func (*TickyCounterDef) EventID() uint16    { return IDTickyCounterDef }
func (*TickyCounterSample) EventID() uint16 { return IDTickyCounterSample }
func (*TickyBeginSample) EventID() uint16   { return IDTickyBeginSample }

func (e *ProfBegin) layout(c *codec)       { c.u64(&e.TickNs) }
func (e *HeapSampleBegin) layout(c *codec) { c.u64(&e.Era) }
func (e *HeapSampleEnd) layout(c *codec)   { c.u64(&e.Era) }
func (*TickyBeginSample) layout(*codec)    {}

func (e *CostCentre) layout(c *codec) {
	c.u32(&e.Centre)
	c.cstr(&e.Label)
	c.cstr(&e.Module)
	c.cstr(&e.SrcLoc)
	c.u8(&e.Flags)
}

func (e *ProfSample) layout(c *codec) {
	c.u32(&e.Cap)
	c.u64(&e.Tick)
	c.stack(&e.Stack)
}

func (e *HeapProfBegin) layout(c *codec) {
	c.u8(&e.Profile)
	c.u64(&e.PeriodNs)
	c.u32((*uint32)(&e.Breakdown))
	c.cstr(&e.Module)
	c.cstr(&e.ClosureDescr)
	c.cstr(&e.TypeDescr)
	c.cstr(&e.CostCentre)
	c.cstr(&e.CostCentreStack)
	c.cstr(&e.Retainer)
	c.cstr(&e.Biographies)
}

func (e *HeapBioSampleBegin) layout(c *codec) {
	c.u64(&e.Era)
	c.u64(&e.Time)
}

func (e *HeapSampleStack) layout(c *codec) {
	c.u8(&e.Profile)
	c.u64(&e.Bytes)
	c.stack(&e.Stack)
}

func (e *HeapSampleString) layout(c *codec) {
	c.u8(&e.Profile)
	c.u64(&e.Bytes)
	c.cstr(&e.Label)
}

func (e *InfoTable) layout(c *codec) {
	c.u64(&e.Info)
	c.cstr(&e.Name)
	c.cstr(&e.ClosureType)
	c.cstr(&e.Type)
	c.cstr(&e.Label)
	c.cstr(&e.Module)
	c.cstr(&e.SrcLoc)
}

func (e *PerfName) layout(c *codec) {
	c.u32(&e.Num)
	c.text(&e.Name)
}

func (e *PerfCounter) layout(c *codec) {
	c.u32(&e.Num)
	c.u64(&e.KernelThread)
	c.u64(&e.Period)
}

func (e *PerfTracepoint) layout(c *codec) {
	c.u32(&e.Num)
	c.u64(&e.KernelThread)
}

func (e *TickyCounterDef) layout(c *codec) {
	c.u64(&e.Counter)
	c.u16(&e.Arity)
	c.cstr(&e.Kinds)
	c.cstr(&e.Name)
	// The last two fields are absent from older logs, whose readers fail after fields that
	// they do not know.
	c.lenient = true
	if c.encoding && e.Info == 0 && e.JSON == "" {
		return
	}
	c.u64(&e.Info)
	if c.encoding && e.JSON == "" {
		return
	}
	c.cstr(&e.JSON)
}

func (e *TickyCounterSample) layout(c *codec) {
	c.u64(&e.Counter)
	c.u64(&e.Entries)
	c.u64(&e.Allocs)
	c.u64(&e.Allocated)
}

package columns

import (
	"cmp"
	"maps"
	"slices"

	"ccagent/eventlog"
)

// RTS is what a run-time system reported about itself and the program, in its own log or
// in one that its log was merged into.
type RTS struct {
	Args     []string
	PID      uint32
	WallNs   uint64 // Unix time of the log's time 0, in ns; 0 if unknown
	Caps     int    // one more than the highest capability seen
	FirstRun uint64 // ns; 0 if there is none
	Created  uint64 // Haskell threads
	Finished uint64
	// Runs are ordered by time within each capability. OpenTotals leaves them empty;
	// see Ran.
	Runs []Run
	// Threads are the threads that the RTS reported, in the order of their
	// appearance.
	Threads     []RTSThread
	Collections []Collection
	Concurrent  []ConcurrentPhase // of the non-moving collector, in the order in which they ended
	Stats       GCTotals
	Sparks      eventlog.Sparks // by the last collection: of the capture, or of a run-time system's own log
	// HeapSamples is the number of censuses of a heap profile, Breakdown the kind of
	// its bands.
	HeapSamples uint64
	Breakdown   eventlog.HeapBreakdown
	InfoTables  uint64 // IPE entries
	Ticky       uint64 // samples of ticky counters
	Binary      uint64 // binary user messages
	// Probes are the probes in the run-time system's code that a capture used for its
	// events, by group, with their final counts.
	Probes []eventlog.RTSProbes
	// Watches are the stretches in which a group of probes saw all that happened, in order of
	// time. A group that the log says nothing of is not in it.
	Watches map[string][]Watch
}

// GCTotals sums up the statistics that the RTS reported at the end of collections.
type GCTotals struct {
	Collections uint64
	Major       uint64 // collections of the oldest generation
	Copied      uint64 // bytes
	PeakLive    uint64
	PeakSize    uint64
	Allocated   uint64 // by all capabilities, as last reported
}

// maxGenerations is more generations than any RTS is configured with.
const maxGenerations = 64

// rtsState collects the events of an RTS.
type rtsState struct {
	p *Log
	runState
	collector collectorState
	threads   threadState
	heap      heapState
	watches   map[string]*watching
	profile   timeProfile
}

// timeProfile collects the cost centres and samples of an RTS's time profiler.
type timeProfile struct {
	tick    uint64 // interval between samples, ns
	centres map[uint32]eventlog.CostCentre
	stacks  map[[2]uint32]uint32 // (parent node, centre) → node
	nodes   uint32
	event   bool // the event of the profile is defined
}

// costCentreModule is the module id of places that stand for cost centres in logs of the
// RTS's time profiler. Such logs define no modules.
const costCentreModule = 1

// add adds an event of an RTS.
func (s *rtsState) add(rec *eventlog.Record) {
	r := &s.p.RTSLog
	c := &s.collector
	if rec.Cap >= 0 && rec.Cap < eventlog.NoCapability {
		r.Caps = max(r.Caps, rec.Cap+1)
	}
	switch ev := rec.Event.(type) {
	case *eventlog.BlockMarker:
		return
	case *eventlog.ProgramArgs:
		if r.Args == nil {
			r.Args = append([]string(nil), ev.Args...)
		}
	case *eventlog.OSProcessPID:
		r.PID = ev.PID
	case *eventlog.WallClock:
		if at := ev.Sec*1_000_000_000 + uint64(ev.Nsec); at >= rec.Time {
			r.WallNs = at - rec.Time
		}
	case *eventlog.RTSProbes:
		s.probes(ev)
	case *eventlog.RTSWatch:
		s.watch(rec.Time, ev)
	case *eventlog.CreateThread:
		r.Created++
	case *eventlog.RunThread:
		s.runs(rec, ev)
	case *eventlog.StopThread:
		s.stops(rec, ev)
	case *eventlog.HeapInfo:
		c.gens = ev.Generations
	case *eventlog.GCStats:
		r.Stats.Collections++
		r.Stats.Copied = SatAdd(r.Stats.Copied, ev.Copied)
		c.byGen[min(int(ev.Generation), maxGenerations-1)]++
	case *eventlog.HeapLive:
		r.Stats.PeakLive = max(r.Stats.PeakLive, ev.Bytes)
	case *eventlog.HeapSize:
		r.Stats.PeakSize = max(r.Stats.PeakSize, ev.Bytes)
	case *eventlog.HeapAllocated:
		if c.allocated == nil {
			c.allocated = make(map[int]uint64)
		}
		c.allocated[rec.Cap] = max(c.allocated[rec.Cap], ev.Bytes)
	case *eventlog.Sparks:
		r.Sparks = *ev
	case *eventlog.SparkCounters:
		if c.sparks == nil {
			c.sparks = make(map[int]eventlog.SparkCounters)
		}
		c.sparks[rec.Cap] = *ev
	case *eventlog.HeapProfBegin:
		r.Breakdown = ev.Breakdown
	case *eventlog.InfoTable:
		r.InfoTables++
	case *eventlog.TickyCounterSample:
		r.Ticky++
	case *eventlog.UserBinaryMsg:
		r.Binary++
	case *eventlog.ProfBegin:
		s.profile.tick = ev.TickNs
	case *eventlog.CostCentre:
		s.profile.costCentre(ev)
	}
	s.lifeEvent(rec)
	s.heap.heapEvent(rec)
}

// maxProbeGroups is more than the number of groups that exist.
const maxProbeGroups = 8

func (s *rtsState) probes(ev *eventlog.RTSProbes) {
	r := &s.p.RTSLog
	i := slices.IndexFunc(r.Probes, func(g eventlog.RTSProbes) bool { return g.Group == ev.Group })
	switch {
	case i >= 0:
		r.Probes[i] = *ev
	case len(r.Probes) < maxProbeGroups:
		r.Probes = append(r.Probes, *ev)
	}
}

func (s *timeProfile) costCentre(ev *eventlog.CostCentre) {
	if s.centres == nil {
		s.centres = make(map[uint32]eventlog.CostCentre)
	}
	if _, twice := s.centres[ev.Centre]; !twice {
		s.centres[ev.Centre] = *ev
	}
}

// profSample adds a sample of the RTS's own time profiler as a sample with a cost-centre
// stack. It does so only in logs that have no other samples.
func (b *builder) profSample(time uint64, ev *eventlog.ProfSample) {
	s, p := &b.rts.profile, b.p
	if p.HaveCapture {
		return // derived from the samples of the capture itself
	}
	if !s.event {
		s.event = true
		s.stacks = make(map[[2]uint32]uint32)
		rate := uint64(0)
		if s.tick > 0 {
			rate = 1_000_000_000 / s.tick
		}
		b.events.eventDef(&eventlog.EventDef{Index: 0, Requested: "time", Granted: "RTS profiler's ticks", Unit: "ns", Rate: rate})
	}
	at := uint32(0)
	for i := len(ev.Stack) - 1; i >= 0; i-- {
		k := [2]uint32{at, ev.Stack[i]}
		id, ok := s.stacks[k]
		if !ok {
			s.nodes++
			id = s.nodes
			s.stacks[k] = id
			b.stacks.nodes.add(&eventlog.Nodes{First: id, Nodes: []eventlog.Node{
				{Parent: at, Kind: eventlog.FramePC, Module: costCentreModule, Addr: uint64(ev.Stack[i])}}})
		}
		at = id
	}
	weight := s.tick
	if weight == 0 {
		weight = 1
	}
	b.record(time, &eventlog.Sample{PID: p.RTSLog.PID, Capability: ev.Cap, Weight: weight, Node: at})
}

// finish ends runs and phases in progress. The program ran until the given time.
func (s *rtsState) finish(last uint64) {
	r, c := &s.p.RTSLog, &s.collector
	s.finishRuns(last)
	s.finishWatches(last)
	for _, n := range c.allocated {
		r.Stats.Allocated = SatAdd(r.Stats.Allocated, n)
	}
	for _, n := range c.sparks {
		t := &r.Sparks
		t.Created, t.Dud, t.Overflowed = SatAdd(t.Created, n.Created), SatAdd(t.Dud, n.Dud), SatAdd(t.Overflowed, n.Overflowed)
		t.Converted, t.Collected, t.Fizzled = SatAdd(t.Converted, n.Converted), SatAdd(t.Collected, n.Collected), SatAdd(t.Fizzled, n.Fizzled)
	}
	slices.SortStableFunc(s.p.InfoTables, func(a, b eventlog.InfoTable) int { return cmp.Compare(a.Info, b.Info) })
	s.heap.finishHeap(&s.profile)
	if c.gens > 0 {
		r.Stats.Major = c.byGen[min(int(c.gens), maxGenerations)-1]
	}
}

// finishProfile creates the symbols of the time profile's cost centres.
func (b *builder) finishProfile() {
	s := &b.rts.profile
	if !s.event || b.p.Symbolised {
		return
	}
	b.p.Symbolised = true
	b.symbols.module(&eventlog.Module{ID: costCentreModule, Path: "cost centres"})
	b.symbols.symbol(&eventlog.ModuleSymbols{Module: costCentreModule, HasSymtab: true})
	files := make(map[string]uint32)
	for _, id := range slices.Sorted(maps.Keys(s.centres)) {
		b.symbols.centreSymbols(s.centres[id], files)
	}
}

// centreSymbols creates a cost centre's binding, span, block and location.
func (t *symbolTable) centreSymbols(cc eventlog.CostCentre, files map[string]uint32) {
	id := t.bindings.n + 1
	bind := &eventlog.Binding{ID: id, Symbol: cc.Label, Module: cc.Module, Name: cc.Label, Category: eventlog.CategoryHaskell}
	// The label of a centre that -fprof-auto makes is its binding's name.
	bind.Category, bind.Module = centreCategory(cc.Label, cc.Module), centreModule(cc.Label, cc.Module)
	t.symbol(bind)
	loc := eventlog.Location{Addr: uint64(cc.Centre), Binding: id, Quality: eventlog.QualityExact, Category: bind.Category}
	if file, x, ok := parseSrcLoc(cc.SrcLoc); ok && bind.Category == eventlog.CategoryHaskell {
		f := files[file]
		if f == 0 {
			f = uint32(len(files) + 1)
			files[file] = f
			t.symbol(&eventlog.File{ID: f, Path: file})
		}
		span, block := t.spans.n+1, t.blocks.n+1
		t.symbol(&eventlog.Span{ID: span, File: f, Line: x.Line, Col: x.Col, EndLine: x.EndLine, EndCol: x.EndCol, Binding: id})
		t.symbol(&eventlog.Block{ID: block, Module: costCentreModule, Lo: uint64(cc.Centre), Hi: uint64(cc.Centre) + 1, Binding: id, Causes: []eventlog.Cause{{Span: span}}})
		loc.Block = block
	}
	t.symbol(&eventlog.Locations{Module: costCentreModule, Locations: []eventlog.Location{loc}})
}

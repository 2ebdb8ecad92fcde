package rewrite

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
)

// Options determine what is kept and added.
type Options struct {
	// Range is the time range to keep, in the time of the resulting log.
	Range profile.Range
	// Add, if not nil, writes additional events, after the capture's description and
	// before its samples.
	Add func(w *eventlog.Writer) error
}

// Report summarises the result.
type Report struct {
	Samples uint64 // kept
	// Left counts events that could not be kept: damaged ones, and those of a type
	// that two logs declare differently.
	Left uint64
}

// Errors for logs that cannot be merged.
var (
	ErrTwoRTS   = errors.New("two of the logs were written by run-time systems: their threads and capabilities cannot be distinguished")
	ErrNoClock  = errors.New("the log has no wall-clock time to align it by")
	ErrOtherPID = errors.New("the run-time system's log is of another process than those profiled")
)

// Write writes one log with the contents of all inputs.
func Write(w io.Writer, inputs []Input, o Options) (Report, error) {
	rw := &rewriter{o: o, tables: newTables()}
	if err := rw.survey(inputs); err != nil {
		return rw.report, err
	}
	types := rw.types()
	rw.sizes = sizes(types)
	rw.w = eventlog.NewWriter(w, &eventlog.WriterOptions{Types: types, Verbatim: len(inputs) == 1})
	// Our logs come first: readers decide by the Capture to which log the samples
	// belong.
	for _, own := range []bool{true, false} {
		for i := range rw.logs {
			if rw.logs[i].own == own {
				if err := rw.log(&rw.logs[i]); err != nil {
					return rw.report, err
				}
			}
		}
	}
	for _, h := range rw.holes() {
		if err := rw.put(h.to, eventlog.NoCap, &eventlog.Unrecorded{Ns: h.to - h.from}); err != nil {
			return rw.report, err
		}
	}
	if rw.haveEnd {
		if err := rw.put(rw.endTime, eventlog.NoCap, &rw.end); err != nil {
			return rw.report, err
		}
	}
	return rw.report, rw.w.Close()
}

type rewriter struct {
	o       Options
	w       *eventlog.Writer
	sizes   map[uint16]uint16 // of the types of the log being written
	tables  *tables
	logs    []log
	report  Report
	capture bool // a Capture has been written
	end     eventlog.CaptureEnd
	endTime uint64
	haveEnd bool
}

// log is an input with its role in the merge.
type log struct {
	Input
	*survey
	shift    uint64 // added to its times
	standard bool   // GHC's own events are taken from this log
	program  bool   // events about the program are taken from this log
	place    place
}

func (rw *rewriter) survey(inputs []Input) error {
	walls := make([]uint64, len(inputs))
	if len(inputs) > 1 {
		for i, in := range inputs {
			wall, ok, err := clockOf(in)
			if err != nil {
				return err
			}
			if !ok {
				return fmt.Errorf("merge %s: %w", in.Name, ErrNoClock)
			}
			walls[i] = wall
		}
	}
	base := slices.Min(walls)
	rts := -1
	for i, in := range inputs {
		l := log{Input: in, shift: walls[i] - base}
		var err error
		l.survey, err = look(in, func(n int, time uint64) bool { return rw.keeps(&l, n, time) })
		if err != nil {
			return err
		}
		if l.rts {
			if rts >= 0 {
				return fmt.Errorf("merge %s and %s: %w", inputs[rts].Name, in.Name, ErrTwoRTS)
			}
			rts = i
		}
		rw.tables.node = l.nodes.number(rw.tables.node)
		rw.logs = append(rw.logs, l)
	}
	for i := range rw.logs {
		l := &rw.logs[i]
		l.standard = rts < 0 || i == rts
		l.program = i == max(rts, 0)
	}
	if rts < 0 {
		rw.tellApart()
	}
	return rw.sameProcess(rts)
}

// sameProcess checks that the RTS's process is one that our logs profiled.
func (rw *rewriter) sameProcess(rts int) error {
	if rts < 0 || len(rw.logs[rts].pids) == 0 {
		return nil
	}
	pid := rw.logs[rts].pids[0]
	for i := range rw.logs {
		if i != rts && !slices.Contains(rw.logs[i].pids, pid) {
			return fmt.Errorf("merge %s and %s: process %d: %w", rw.logs[rts].Name, rw.logs[i].Name, pid, ErrOtherPID)
		}
	}
	return nil
}

func (rw *rewriter) within(time uint64) bool {
	r := rw.o.Range
	return time >= r.From && (r.To == 0 || time < r.To)
}

func (rw *rewriter) keeps(l *log, i int, time uint64) bool {
	return rw.within(time+l.shift) && (l.Keep == nil || l.Keep(i))
}

// types returns the event types of all logs. If two logs declare a type differently the
// first wins; types that this package writes itself have its own declaration.
func (rw *rewriter) types() []eventlog.EventType {
	var all []eventlog.EventType
	have := make(map[uint16]bool)
	add := func(ts []eventlog.EventType, which func(t eventlog.EventType) bool) {
		for _, t := range ts {
			if !have[t.ID] && which(t) {
				have[t.ID] = true
				all = append(all, t)
			}
		}
	}
	any := func(eventlog.EventType) bool { return true }
	if len(rw.logs) > 1 {
		add(eventlog.Types(), any)
	}
	for i := range rw.logs {
		add(rw.logs[i].types, any)
	}
	add(eventlog.Types(), any)
	slices.SortFunc(all, func(a, b eventlog.EventType) int { return int(a.ID) - int(b.ID) })
	return all
}

// sizes returns the declared size of each event type. Types that are not declared have the
// size that a reader supposes if the header is damaged.
func sizes(types []eventlog.EventType) map[uint16]uint16 {
	of := make(map[uint16]uint16)
	for _, ts := range [][]eventlog.EventType{eventlog.Types(), types} {
		for _, t := range ts {
			of[t.ID] = t.Size
		}
	}
	return of
}

// put writes an event. It counts and leaves out an event that cannot be encoded as the
// header declares it.
func (rw *rewriter) put(time uint64, cap int, ev eventlog.Event) error {
	return rw.left(rw.w.Write(time, cap, ev))
}

func (rw *rewriter) left(err error) error {
	var bad *eventlog.EventError
	if errors.As(err, &bad) {
		rw.report.Left++
		return nil
	}
	return err
}

// log copies one log.
func (rw *rewriter) log(l *log) error {
	c := &copier{rewriter: rw, l: l, ids: rw.tables.mapping(), nodes: renumber{nodes: &l.nodes}, state: newState()}
	var failed error
	err := scan(l.Input, func(rec *eventlog.Record, _ []eventlog.EventType) bool {
		failed = c.record(rec)
		return failed == nil
	})
	for cap := range c.state.running {
		failed = errors.Join(failed, c.restore(cap))
	}
	for cap := range c.state.gc {
		failed = errors.Join(failed, c.restore(cap))
	}
	return errors.Join(err, failed)
}

// copier copies the events of one log.
type copier struct {
	*rewriter
	l      *log
	ids    *mapping
	nodes  renumber
	state  *state
	sample int
	dumped bool // the thread dump that events belong to is kept
	print  bool // the footprint that events belong to is kept
	graph  bool // the graph of the heap that events belong to is kept
}

// dump copies an event of a thread dump.
func (c *copier) dump(rec *eventlog.Record, time uint64) error {
	if !c.dumped {
		return nil
	}
	return c.put(time, rec.Cap, rec.Event)
}

// footprint copies an event of a footprint.
func (c *copier) footprint(rec *eventlog.Record, time uint64) error {
	if !c.print {
		return nil
	}
	return c.put(time, rec.Cap, rec.Event)
}

// heapGraph copies an event of a graph of the heap.
func (c *copier) heapGraph(rec *eventlog.Record, time uint64) error {
	if !c.graph {
		return nil
	}
	closure := func(id *uint32) { *id = c.ids.closures.optional(*id) }
	switch ev := rec.Event.(type) {
	case *eventlog.HeapBand:
		closure(&ev.Closure)
	case *eventlog.HeapRoot:
		closure(&ev.Closure)
	case *eventlog.HeapBranch:
		closure(&ev.Closure)
	case *eventlog.HeapPath:
		closure(&ev.Closure)
		for i := range ev.Steps {
			closure(&ev.Steps[i].Closure)
			closure(&ev.Steps[i].Frame)
		}
	}
	return c.put(time, rec.Cap, rec.Event)
}

func (c *copier) record(rec *eventlog.Record) error {
	time := rec.Time + c.l.shift
	if !c.l.place.event(rec) {
		c.report.Left++
		return nil
	}
	if is, write := c.ids.definition(rec.Event); is {
		if !write {
			return nil
		}
		return c.put(c.clamp(time), rec.Cap, rec.Event)
	}
	switch ev := rec.Event.(type) {
	case *eventlog.Malformed:
		c.report.Left++
		return nil
	case *eventlog.BlockMarker:
		return nil
	case *eventlog.Nodes:
		for i := range ev.Nodes {
			ev.Nodes[i].Module = c.ids.modules.optional(ev.Nodes[i].Module)
		}
		return c.nodes.each(ev, func(run *eventlog.Nodes) error { return c.put(c.clamp(time), rec.Cap, run) })
	case *eventlog.Sample:
		i := c.sample
		c.sample++
		if !c.keeps(c.l, i, rec.Time) {
			return nil
		}
		c.report.Samples++
		ev.Event, ev.Node = c.ids.events.ref(ev.Event), c.nodes.of(ev.Node)
		ev.Centres = c.ids.stacks.optional(ev.Centres)
		return c.put(time, rec.Cap, ev)
	case *eventlog.Loss:
		if !c.within(time) {
			return nil
		}
		ev.Event = c.ids.events.ref(ev.Event)
		return c.put(time, rec.Cap, ev)
	case *eventlog.NurseryBlock:
		if !c.within(time) {
			return nil
		}
		for i := range ev.Closures {
			ev.Closures[i].Closure = c.ids.closures.optional(ev.Closures[i].Closure)
		}
		return c.put(time, rec.Cap, ev)
	case *eventlog.ThreadDump: // it is kept whole, or not at all
		c.dumped = c.within(time)
		return c.dump(rec, time)
	case *eventlog.HaskellThread:
		ev.Node = c.nodes.of(ev.Node)
		return c.dump(rec, time)
	case *eventlog.Blocker:
		ev.Node = c.nodes.of(ev.Node)
		return c.dump(rec, time)
	case *eventlog.OSThread:
		return c.dump(rec, time)
	case *eventlog.TransactionVariables:
		if !c.within(time) {
			return nil
		}
		ev.Node = c.nodes.of(ev.Node)
		return c.put(time, rec.Cap, ev)
	case *eventlog.TransactionWindow, *eventlog.SearchWindow:
		if c.within(time) {
			return c.put(time, rec.Cap, ev)
		}
		return nil
	case *eventlog.HeapCensus, *eventlog.HeapDraw: // of the census that standard events have
		if c.l.standard && c.within(time) {
			return c.put(time, rec.Cap, ev)
		}
		return nil
	case *eventlog.HeapKinds: // likewise
		if !c.l.standard || !c.within(time) {
			return nil
		}
		for i := range ev.Kinds {
			ev.Kinds[i].Closure = c.ids.closures.optional(ev.Kinds[i].Closure)
		}
		return c.put(time, rec.Cap, ev)
	case *eventlog.HeapGraph: // likewise
		c.graph = c.within(time)
		return c.heapGraph(rec, time)
	case *eventlog.HeapBand, *eventlog.HeapRoot, *eventlog.HeapBranch, *eventlog.HeapPath, *eventlog.HeapStuck:
		return c.heapGraph(rec, time)
	case *eventlog.Footprint: // likewise
		c.print = c.within(time)
		return c.footprint(rec, time)
	case *eventlog.FootprintStack:
		ev.Node = c.nodes.of(ev.Node)
		return c.footprint(rec, time)
	case *eventlog.FootprintPart, *eventlog.FootprintPin:
		return c.footprint(rec, time)
	case *eventlog.EventRate:
		if !c.within(time) {
			return nil
		}
		ev.Event = c.ids.events.ref(ev.Event)
		return c.put(time, rec.Cap, ev)
	case *eventlog.Sampling: // its figures are those of the whole
		return c.put(c.clamp(time), rec.Cap, &eventlog.Sampling{Event: c.ids.events.ref(ev.Event), Method: ev.Method, CPUs: ev.CPUs, TickHz: ev.TickHz, EventHz: ev.EventHz})
	case *eventlog.HeapSeries: // likewise
		return c.put(c.clamp(time), rec.Cap, ev)
	case *eventlog.EventCount: // likewise
		if len(c.logs) > 1 {
			return nil
		}
		ev.Event = c.ids.events.ref(ev.Event)
		return c.put(c.clamp(time), rec.Cap, ev)
	case *eventlog.ThreadName:
		return c.put(c.clamp(time), rec.Cap, ev)
	case *eventlog.Capture:
		if c.capture {
			return nil
		}
		c.capture = true
		ev.StartUnixNs -= c.l.shift
		if err := c.put(c.clamp(time), rec.Cap, ev); err != nil || c.o.Add == nil {
			return err
		}
		return c.o.Add(c.w)
	case *eventlog.Process:
		return c.put(c.clamp(time), rec.Cap, ev)
	case *eventlog.Unrecorded: // the merged log has holes of its own
		return nil
	case *eventlog.RTSWatch, *eventlog.Sparks:
		if !c.l.standard {
			return nil // it says where the standard events are whole
		}
		return c.put(c.clamp(time), rec.Cap, ev)
	case *eventlog.CaptureEnd:
		if at := c.clamp(time); !c.haveEnd || at >= c.endTime {
			c.end, c.endTime, c.haveEnd = *ev, at, true
		}
		return nil
	case *eventlog.AgentCost, *eventlog.Overhead, *eventlog.Warning:
		if c.within(time) {
			return c.put(time, rec.Cap, ev)
		}
		return nil
	}
	return c.standard(rec, time)
}

// standard copies an event of GHC's own, or one of an unknown type.
func (c *copier) standard(rec *eventlog.Record, time uint64) error {
	if !c.l.standard {
		return nil
	}
	if defines(rec.Event) {
		switch ev := rec.Event.(type) {
		case *eventlog.ThreadLabel:
			if c.l.place.several {
				return c.put(c.clamp(time), eventlog.NoCap, &eventlog.ThreadName{PID: c.l.process.pid + c.l.place.pids, TSO: uint64(ev.Thread), Name: ev.Label})
			}
		case *eventlog.CapsetCreate, *eventlog.CapsetAssignCap, *eventlog.RTSIdentifier, *eventlog.ProgramArgs, *eventlog.ProgramEnv,
			*eventlog.OSProcessPID, *eventlog.OSProcessPPID, *eventlog.CapCreate:
			if !c.l.program {
				return nil
			}
		case *eventlog.WallClock: // its value belongs to its own time
			if !c.l.program {
				return nil
			}
			return c.raw(rec, time)
		}
		return c.raw(rec, c.clamp(time))
	}
	within := c.within(time)
	if part, keep := c.state.inCensus(rec.Event, within); part {
		if !keep {
			return nil
		}
		return c.raw(rec, time)
	}
	if !within {
		if time < c.o.Range.From {
			c.state.follow(rec.Cap, rec.Event)
		}
		return nil
	}
	if err := c.restore(rec.Cap); err != nil {
		return err
	}
	return c.raw(rec, time)
}

// restore repeats the state of a capability at the start of the range.
func (c *copier) restore(cap int) error {
	from := c.o.Range.From
	if thread, ok := c.state.running[cap]; ok {
		delete(c.state.running, cap)
		if err := c.put(from, cap, &eventlog.RunThread{Thread: thread}); err != nil {
			return err
		}
	}
	if c.state.gc[cap] {
		delete(c.state.gc, cap)
		return c.put(from, cap, &eventlog.GCStart{})
	}
	return nil
}

// raw copies an event byte for byte. It counts and leaves out an event that another log
// declares with another size.
func (c *copier) raw(rec *eventlog.Record, time uint64) error {
	id := rec.Event.EventID()
	if c.l.sizes[id] != c.sizes[id] {
		c.report.Left++
		return nil
	}
	return c.left(c.w.WriteRaw(time, rec.Cap, id, rec.Payload))
}

// clamp limits the time of a definition to the range.
func (rw *rewriter) clamp(time uint64) uint64 {
	if r := rw.o.Range; r.To != 0 {
		return min(time, r.To)
	}
	return time
}

package columns

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/profile/imports"
)

// Open loads the log in a file, or the profile of another profiler: see Log.Import.
// progress, if not nil, is called from time to time with the bytes read so far and the
// file's size.
func Open(path string, progress func(done, total int64)) (*Log, error) {
	return openFile(path, progress, newBuilder())
}

func openFile(path string, progress func(done, total int64), b *builder) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, fmt.Errorf("open %s: is a directory, not a log", path)
	}
	in := &countingReader{r: f}
	if progress != nil {
		in.report = func(n int64) { progress(n, max(st.Size(), n)) }
	}
	p, err := open(in, b)
	if err == nil && p.Import == nil && !p.Accounting.Complete {
		p.Accounting.Growing = eventlog.BeingWritten(f)
	}
	return p, err
}

// open loads a log or imports a profile.
func open(in *countingReader, b *builder) (*Log, error) {
	format, r, err := imports.Open(in)
	if err != nil {
		return nil, err
	}
	if format == imports.Eventlog {
		return loadFrom(&countingReader{r: r}, b)
	}
	log, w := io.Pipe()
	var sum imports.Summary
	done := make(chan error, 1)
	go func() {
		var err error
		sum, err = imports.Write(w, format, r)
		w.CloseWithError(err)
		done <- err
	}()
	p, err := loadFrom(&countingReader{r: log}, b)
	log.CloseWithError(io.ErrClosedPipe)
	if problem := <-done; problem != nil {
		return nil, problem
	}
	if err != nil {
		return nil, err
	}
	p.Import = &sum
	p.Accounting.Bytes = in.n
	return p, nil
}

// progressStep is the number of bytes between two progress reports.
const progressStep = 4 << 20

// Load reads a whole log. The error is an *eventlog.HeaderError if the input is not a
// log, or the reader's own error. A damaged or cut log is not an error: see
// Log.Accounting.
func Load(r io.Reader) (*Log, error) { return loadFrom(&countingReader{r: r}, newBuilder()) }

// ofCollections are the events of collections and of the heap's size: most of what a daemon's log has.
var ofCollections = []uint16{
	eventlog.IDGCStart, eventlog.IDGCEnd, eventlog.IDRequestSeqGC, eventlog.IDRequestParGC, eventlog.IDGCIdle, eventlog.IDGCWork, eventlog.IDGCDone,
	eventlog.IDHeapAllocated, eventlog.IDHeapSize, eventlog.IDHeapLive, eventlog.IDGCStats, eventlog.IDGCGlobalSync, eventlog.IDMemReturn, eventlog.IDBlocksSize,
}

// LoadSamples is Load for those who ask about samples alone: the Log has nothing of collections and of the heap's size, which are not
// decoded.
func LoadSamples(r io.Reader) (*Log, error) {
	b := newBuilder()
	b.without = ofCollections
	return loadFrom(&countingReader{r: r}, b)
}

func loadFrom(in *countingReader, b *builder) (*Log, error) {
	rd := eventlog.NewReader(in)
	rd.Without(b.without...)
	b.take(rd)
	if err := rd.Err(); err != nil {
		return nil, err
	}
	b.p.Accounting.Complete = rd.Complete()
	b.p.Accounting.Bytes = in.n
	return b.finish(), nil
}

// countingReader counts the bytes read and reports them from time to time.
type countingReader struct {
	r        io.Reader
	n        int64
	report   func(n int64) // may be nil
	reported int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	if c.report != nil && (c.n-c.reported >= progressStep || err == io.EOF && c.n != c.reported) {
		c.reported = c.n
		c.report(c.n)
	}
	return n, err
}

// builder makes a Log of a log's records, in their order. Each of its parts collects what one
// part of the Log has, and completes that when all records have been added.
type builder struct {
	p         *Log
	events    eventTable
	stacks    stackTable
	columns   sampleTable
	symbols   symbolTable
	nurseries nurseryTable
	dumps     dumpTable
	graphs    graphTable
	rts       rtsState
	last      uint64 // time of the last event written while the program ran
	damaged   bool   // there was damage since
	reading   *eventlog.Origins
	without   []uint16 // types of events that are passed over
}

// on makes the parts write to a Log.
func (b *builder) on(p *Log) {
	b.p, b.events.p, b.stacks.p, b.columns.p, b.symbols.p, b.nurseries.p, b.dumps.p, b.graphs.p, b.rts.p, b.rts.heap.p = p, p, p, p, p, p, p, p, p, p
}

// maxWarnings bounds the number of warnings kept.
const maxWarnings = 1000

func newBuilder() *builder {
	b := &builder{
		events:  eventTable{index: make(map[uint32]int)},
		stacks:  stackTable{nodes: newNodeTable(), sites: newSiteTable()},
		columns: newSampleTable(),
		symbols: symbolTable{modules: make(map[uint32]int)},
	}
	b.rts.collector.gcs = make(map[int]*gcState)
	b.on(&Log{Symbols: Symbols{
		Bindings: make([]Binding, 1), Spans: make([]Span, 1), Files: make([]File, 1), Blocks: make([]Block, 1),
		Cores: make([]Core, 1),
	}})
	return b
}

func (b *builder) add(rec *eventlog.Record) {
	p := b.p
	switch ev := rec.Event.(type) {
	case *eventlog.Sample:
		b.record(rec.Time, ev)
	case *eventlog.CentreDef:
		b.stacks.centreDef(ev)
	case *eventlog.CentreStack:
		b.stacks.centreStack(ev)
	case *eventlog.Nodes:
		refused, orphans := b.stacks.nodes.add(ev)
		p.Accounting.Redefined += uint64(refused)
		p.Accounting.Undefined.Parents += uint64(orphans)
	case *eventlog.Malformed:
		b.malformed(ev)
	case *eventlog.Unknown:
		if slices.Contains(b.without, ev.ID) {
			if !p.HaveCapture {
				b.ran(rec.Time)
			}
			return
		}
		p.Accounting.Unknown++

	case *eventlog.Capture:
		if p.HaveCapture {
			p.Accounting.Redefined++
			return
		}
		p.Capture, p.HaveCapture = *ev, true
		p.Capture.Args = append([]string(nil), ev.Args...)
		p.Capture.Labels = append([]eventlog.Label(nil), ev.Labels...)
	case *eventlog.ThreadName:
		b.columns.names[thread{ev.PID, ev.TSO}] = ev.Name
	case *eventlog.EventDef:
		b.events.eventDef(ev)
	case *eventlog.EventCount:
		if i, ok := b.events.event(ev.Event); ok {
			p.Events[i].Count = *ev
		}
	case *eventlog.Sampling:
		if i, ok := b.events.event(ev.Event); ok {
			p.Events[i].Sampling = *ev
		}
	case *eventlog.EventRate:
		b.events.eventRate(rec.Time, ev)
	case *eventlog.Module:
		b.symbols.module(ev)
	case *eventlog.Closure:
		b.nurseries.closure(ev, &b.stacks.nodes)
	case *eventlog.TransactionWindow:
		p.Transactions.Add(ev)
	case *eventlog.SearchWindow:
		p.Search.add(ev)
	case *eventlog.TransactionVariables:
		b.attempt(ev)
	case *eventlog.NurseryBlock:
		b.ran(rec.Time)
		b.nurseries.nurseryBlock(rec.Time, ev)
	case *eventlog.ThreadDump:
		b.dumps.begin(rec.Time, ev)
	case *eventlog.Blocker:
		b.dumps.blocker(ev, &b.stacks.nodes)
	case *eventlog.HaskellThread:
		b.dumps.thread(ev, &b.stacks.nodes)
	case *eventlog.OSThread:
		b.dumps.os(ev)
	case *eventlog.HeapCensus:
		b.rts.heap.taken(ev)
	case *eventlog.HeapDraw:
		b.rts.heap.drawn(ev)
	case *eventlog.HeapKinds:
		b.rts.heap.kindsOf(ev, &b.nurseries.closures)
	case *eventlog.HeapSeries:
		b.ran(rec.Time)
		p.series(ev)
	case *eventlog.HeapGraph:
		b.graphs.begin(rec.Time, ev)
	case *eventlog.HeapBand:
		b.graphs.band(ev, &b.nurseries.closures)
	case *eventlog.HeapRoot:
		b.graphs.root(ev, &b.nurseries.closures)
	case *eventlog.HeapBranch:
		b.graphs.branch(ev, &b.nurseries.closures)
	case *eventlog.HeapPath:
		b.graphs.path(ev, &b.nurseries.closures)
	case *eventlog.HeapStuck:
		b.graphs.stuck(ev)
	case *eventlog.Footprint, *eventlog.FootprintPart, *eventlog.FootprintPin, *eventlog.FootprintStack:
		p.footprint(rec.Time, ev, &b.stacks.nodes)
	case *eventlog.Mapping:
		p.Mappings = append(p.Mappings, Mapping{rec.Time, *ev})
	case *eventlog.Process:
		p.Processes = append(p.Processes, Process{rec.Time, *ev})
	case *eventlog.Loss:
		b.ran(rec.Time)
		b.events.loss(rec.Time, ev)
	case *eventlog.AgentCost:
		p.Costs = append(p.Costs, Cost{rec.Time, *ev})
	case *eventlog.Overhead:
		p.Overheads = append(p.Overheads, Overhead{rec.Time, *ev})
	case *eventlog.Warning:
		if len(p.Warnings) < maxWarnings {
			p.Warnings = append(p.Warnings, Warning{rec.Time, ev.Text})
		}
	case *eventlog.Unrecorded:
		b.unrecorded(rec.Time-min(ev.Ns, rec.Time), rec.Time)
	case *eventlog.CaptureEnd:
		b.ran(rec.Time)
		p.End, p.HaveEnd = *ev, true

	case *eventlog.ModuleSymbols, *eventlog.File, *eventlog.FileText, *eventlog.Binding,
		*eventlog.Span, *eventlog.Block, *eventlog.Locations, *eventlog.Core, *eventlog.CoreText:
		p.Symbolised = true
		b.symbols.symbol(ev)
	default:
		b.standard(rec)
	}
}

// ran notes that the program was still being observed at a time.
func (b *builder) ran(time uint64) {
	if time <= b.last {
		return
	}
	b.resumed(time)
	b.last = time
}

// resumed notes a gap before the first event after damage that has a time of its own. What was under
// way when it began has no end.
func (b *builder) resumed(time uint64) {
	if !b.damaged || time <= b.last {
		return
	}
	b.damaged = false
	b.unrecorded(b.last, time)
	b.rts.gap(b.last, time)
}

func (b *builder) unrecorded(from, to uint64) {
	if from < to && len(b.p.Gaps) < maxGaps {
		b.p.Gaps = append(b.p.Gaps, Gap{from, to})
	}
}

// maxGaps bounds what is kept of a log that is damaged in many places, or of very many captures.
const maxGaps = 1 << 12

func (b *builder) malformed(ev *eventlog.Malformed) {
	b.damaged = true
	a := &b.p.Accounting
	a.Malformed++
	a.Passed += ev.Length
	if len(a.Damage) < maxDamage {
		a.Damage = append(a.Damage, Damage{ev.Offset, ev.Length, ev.Reason})
	}
}

// SatAdd adds weights and saturates. A sum that overflows 64 bits is meaningless, but
// must not wrap around to a plausible value.
func SatAdd(a, b uint64) uint64 {
	if s := a + b; s >= a {
		return s
	}
	return ^uint64(0)
}

// standard processes the events of GHC's own that this package shows.
func (b *builder) standard(rec *eventlog.Record) {
	p := b.p
	b.resumed(rec.Time)
	switch ev := rec.Event.(type) {
	case *eventlog.RequestSeqGC, *eventlog.RequestParGC, *eventlog.GCStart, *eventlog.GCWork, *eventlog.GCIdle, *eventlog.GCDone, *eventlog.GCEnd:
		b.rts.collector.collection(b.p, rec)
	case *eventlog.ThreadLabel:
		b.columns.labels[uint64(ev.Thread)] = ev.Label
	case *eventlog.HeapLive:
		p.Heap = append(p.Heap, HeapPoint{rec.Time, HeapLive, rec.Cap, ev.Bytes})
	case *eventlog.HeapSize:
		p.Heap = append(p.Heap, HeapPoint{rec.Time, HeapSize, rec.Cap, ev.Bytes})
	case *eventlog.HeapAllocated:
		p.Heap = append(p.Heap, HeapPoint{rec.Time, HeapAllocated, rec.Cap, ev.Bytes})
	case *eventlog.BlocksSize:
		p.Heap = append(p.Heap, HeapPoint{rec.Time, HeapBlocks, rec.Cap, ev.Bytes})
	case *eventlog.UserMarker:
		if p.HaveCapture && strings.HasPrefix(ev.Text, eventlog.OwnMarker) {
			break // says what a RTSWatch says
		}
		p.Markers = append(p.Markers, Marker{Time: rec.Time, Cap: rec.Cap, Text: ev.Text})
	case *eventlog.UserMsg:
		p.Markers = append(p.Markers, Marker{Time: rec.Time, Cap: rec.Cap, Text: ev.Text, Message: true})
	case *eventlog.ProfSample:
		b.profSample(rec.Time, ev)
	case *eventlog.RTSIdentifier:
		p.RTS = ev.Text
	}
	b.rts.add(rec)
	if _, mark := rec.Event.(*eventlog.BlockMarker); !mark && !p.HaveCapture {
		b.ran(rec.Time)
	}
}

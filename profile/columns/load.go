package columns

import (
	"fmt"
	"io"
	"os"
	"runtime"
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

func loadFrom(in *countingReader, b *builder) (*Log, error) {
	rd := eventlog.NewReader(in)
	if runtime.GOMAXPROCS(0) > 1 && rd.Declares(eventlog.IDSample) {
		b.takeBeside(rd) // copying and decoding records takes longer than adding them
	} else {
		b.take(rd)
	}
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

// builder collects a log's records in their order and makes a Log of them.
type builder struct {
	p        *Log
	nodes    nodeTable
	sites    siteTable
	threads  map[ThreadKey]uint32
	chunk    *Chunk
	sums     eventSums // used instead of chunks, if not nil
	contexts contextTable

	events   map[uint32]int // EventDef.Index → position
	lastDef  [2]uint32      // cache: 1 + the event index looked up last, and its position
	modules  map[uint32]int
	bindings ids
	spans    ids
	files    ids
	blocks   ids
	cores    ids
	closures ids
	text     uint64 // bytes of text held

	locations []rawLocation
	labels    map[uint64]string // by TSO
	names     map[thread]string
	gcs       map[int]*gcState // the running collection by capability
	last      uint64           // time of the last event written while the program ran
	rtsState
	exact exactState
}

// maxWarnings bounds the number of warnings kept.
const maxWarnings = 1000

// rawLocation is a location with the log's ids, before they are resolved.
type rawLocation struct {
	at       Place
	block    uint32
	binding  uint32
	offset   uint64
	lines    [2]uint32
	quality  eventlog.Quality
	category eventlog.Category
}

func newBuilder() *builder {
	return &builder{
		p: &Log{Symbols: Symbols{
			Bindings: make([]Binding, 1), Spans: make([]Span, 1), Files: make([]File, 1), Blocks: make([]Block, 1),
			Cores: make([]Core, 1),
		}},
		nodes:    newNodeTable(),
		sites:    newSiteTable(),
		threads:  make(map[ThreadKey]uint32),
		contexts: newContextTable(),
		events:   make(map[uint32]int),
		modules:  make(map[uint32]int),
		labels:   make(map[uint64]string),
		names:    make(map[thread]string),
		gcs:      make(map[int]*gcState),
	}
}

func (b *builder) add(rec *eventlog.Record) {
	p := b.p
	switch ev := rec.Event.(type) {
	case *eventlog.Sample:
		b.sample(rec.Time, ev)
	case *eventlog.CentreDef:
		b.centreDef(ev)
	case *eventlog.CentreStack:
		b.centreStack(ev)
	case *eventlog.Nodes:
		refused, orphans := b.nodes.add(ev)
		p.Accounting.Redefined += uint64(refused)
		p.Accounting.Undefined.Parents += uint64(orphans)
	case *eventlog.Malformed:
		b.malformed(ev)
	case *eventlog.Unknown:
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
		b.names[thread{ev.PID, ev.TSO}] = ev.Name
	case *eventlog.EventDef:
		b.eventDef(ev)
	case *eventlog.EventCount:
		if i, ok := b.event(ev.Event); ok {
			p.Events[i].Count = *ev
		}
	case *eventlog.Sampling:
		if i, ok := b.event(ev.Event); ok {
			p.Events[i].Sampling = *ev
		}
	case *eventlog.EventRate:
		b.eventRate(rec.Time, ev)
	case *eventlog.Module:
		b.module(ev)
	case *eventlog.Closure:
		b.closure(ev)
	case *eventlog.NurseryBlock:
		b.nurseryBlock(rec.Time, ev)
	case *eventlog.Mapping:
		p.Mappings = append(p.Mappings, Mapping{rec.Time, *ev})
	case *eventlog.Process:
		p.Processes = append(p.Processes, Process{rec.Time, *ev})
	case *eventlog.Loss:
		b.ran(rec.Time)
		b.loss(rec.Time, ev)
	case *eventlog.AgentCost:
		p.Costs = append(p.Costs, Cost{rec.Time, *ev})
	case *eventlog.Overhead:
		p.Overheads = append(p.Overheads, Overhead{rec.Time, *ev})
	case *eventlog.Warning:
		if len(p.Warnings) < maxWarnings {
			p.Warnings = append(p.Warnings, Warning{rec.Time, ev.Text})
		}
	case *eventlog.CaptureEnd:
		b.ran(rec.Time)
		p.End, p.HaveEnd = *ev, true

	case *eventlog.ModuleSymbols, *eventlog.File, *eventlog.FileText, *eventlog.Binding,
		*eventlog.Span, *eventlog.Block, *eventlog.Locations, *eventlog.Core, *eventlog.CoreText:
		p.Symbolised = true
		b.symbol(ev)
	default:
		b.standard(rec)
	}
}

// ran notes that the program was still being observed at a time.
func (b *builder) ran(time uint64) { b.last = max(b.last, time) }

func (b *builder) malformed(ev *eventlog.Malformed) {
	a := &b.p.Accounting
	a.Malformed++
	a.Passed += ev.Length
	if len(a.Damage) < maxDamage {
		a.Damage = append(a.Damage, Damage{ev.Offset, ev.Length, ev.Reason})
	}
}

func (b *builder) eventDef(ev *eventlog.EventDef) {
	if i, ok := b.events[ev.Index]; ok {
		if e := &b.p.Events[i]; e.Undefined {
			e.EventDef, e.Undefined = *ev, false
		} else {
			b.p.Accounting.Redefined++
		}
		return
	}
	b.newEvent(Event{EventDef: *ev})
}

// eventRate records a change of an event's rate. A log that rotation started repeats the
// rates of the logs before it.
func (b *builder) eventRate(time uint64, ev *eventlog.EventRate) {
	i, ok := b.event(ev.Event)
	if !ok {
		b.p.Accounting.Dropped++
		return
	}
	e := &b.p.Events[i]
	if n := len(e.Rates); n == maxRates || n > 0 && e.Rates[n-1].EventRate == *ev {
		return
	}
	e.Rates = append(e.Rates, EventRate{time, *ev})
}

func (b *builder) newEvent(e Event) (int, bool) {
	i := len(b.p.Events)
	if i == maxEvents {
		return 0, false
	}
	b.events[e.Index] = i
	b.p.Events = append(b.p.Events, e)
	return i, true
}

// event returns the position of the event with an index. It creates an event that the log
// does not define, so that the samples that refer to it are not lost.
func (b *builder) event(index uint32) (int, bool) {
	if b.lastDef[0] == index+1 && b.lastDef[0] != 0 {
		return int(b.lastDef[1]), true
	}
	i, ok := b.events[index]
	if ok {
		if b.p.Events[i].Undefined {
			b.p.Accounting.Undefined.Events++
		} else {
			b.lastDef = [2]uint32{index + 1, uint32(i)}
		}
		return i, true
	}
	b.p.Accounting.Undefined.Events++
	name := fmt.Sprintf("event#%d", index)
	return b.newEvent(Event{Undefined: true, EventDef: eventlog.EventDef{Index: index, Requested: name, Granted: name}})
}

// sample adds a sample.
func (b *builder) sample(time uint64, ev *eventlog.Sample) {
	b.samples([]eventlog.TimedSample{{Time: time, Sample: *ev}}, nil)
}

// node returns the index of a sample's node.
func (b *builder) node(id uint32) uint32 {
	node, ok := b.nodes.resolve(id)
	if !ok {
		b.p.Accounting.Undefined.Nodes++
		return 0
	}
	return node
}

// context returns a sample's context.
func (b *builder) context(ev *eventlog.Sample) (uint32, bool) {
	k := keyOf(ev)
	t := &b.contexts
	slot := &t.recent[k.hash()%uint64(len(t.recent))]
	if slot.id != 0 && slot.key == k {
		return slot.id - 1, true
	}
	event, ok := b.event(ev.Event)
	if !ok {
		return 0, false
	}
	id, known := t.index[k]
	if !known {
		id = uint32(len(t.list))
		t.list = append(t.list, Context{
			Thread: b.thread(ThreadKey{ev.PID, ev.TID, ev.TSO}), CPU: uint16(min(ev.CPU, 0xffff)),
			Cap: capability(ev.Capability), Flags: ev.Flags, Event: uint8(event),
		})
		t.index[k] = id
	}
	if !b.p.Events[event].Undefined {
		*slot = recentContext{k, id + 1}
	}
	return id, true
}

// capability returns a sample's capability, or none if no log can have so many.
func capability(n uint32) uint16 {
	if n >= eventlog.MaxCapabilities {
		return eventlog.NoCapability
	}
	return uint16(n)
}

// thread identifies a Haskell thread among those of several processes.
type thread struct {
	pid uint32
	tso uint64
}

// thread returns the index of a thread.
func (b *builder) thread(key ThreadKey) uint32 {
	p := b.p
	i, ok := b.threads[key]
	if !ok {
		i = uint32(len(p.Threads))
		b.threads[key] = i
		p.Threads = append(p.Threads, Thread{ThreadKey: key})
	}
	return i
}

// SatAdd adds weights and saturates. A sum that overflows 64 bits is meaningless, but
// must not wrap around to a plausible value.
func SatAdd(a, b uint64) uint64 {
	if s := a + b; s >= a {
		return s
	}
	return ^uint64(0)
}

func (b *builder) loss(time uint64, ev *eventlog.Loss) {
	if ev.Reason == eventlog.LossSideBand { // these losses are not samples
		b.p.Losses = append(b.p.Losses, Loss{time, *ev})
		return
	}
	i, ok := b.event(ev.Event)
	if !ok {
		b.p.Accounting.Dropped++
		return
	}
	e := &b.p.Events[i]
	if ev.Reason == eventlog.LossThrottled {
		e.Throttled = SatAdd(e.Throttled, ev.Count)
	} else {
		e.Lost = SatAdd(e.Lost, ev.Count)
	}
	b.p.Losses = append(b.p.Losses, Loss{time, *ev})
}

func (b *builder) module(ev *eventlog.Module) {
	if _, ok := b.modules[ev.ID]; ok {
		b.p.Accounting.Redefined++
		return
	}
	m := Module{Module: *ev}
	m.BuildID = append([]byte(nil), ev.BuildID...)
	b.modules[ev.ID] = len(b.p.Modules)
	b.p.Modules = append(b.p.Modules, m)
}

// standard processes the events of GHC's own that this package shows.
func (b *builder) standard(rec *eventlog.Record) {
	p := b.p
	switch ev := rec.Event.(type) {
	case *eventlog.RequestSeqGC, *eventlog.RequestParGC, *eventlog.GCStart, *eventlog.GCWork, *eventlog.GCIdle, *eventlog.GCDone, *eventlog.GCEnd:
		b.collection(rec)
	case *eventlog.ThreadLabel:
		b.labels[uint64(ev.Thread)] = ev.Label
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
	case *eventlog.RTSIdentifier:
		p.RTS = ev.Text
	}
	b.rts(rec)
	if _, mark := rec.Event.(*eventlog.BlockMarker); !mark && !p.HaveCapture {
		b.ran(rec.Time)
	}
}

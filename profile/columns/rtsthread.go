package columns

import (
	"ccagent/eventlog"
)

// RTSThread is a Haskell thread's life as the RTS told it.
type RTSThread struct {
	ID       uint32
	Label    string
	Created  uint64 // ns; 0 if it was there before the log's events, or that is not told
	Finished uint64 // ns; 0 if it was not seen to finish
	Runs     uint64
	RunNs    uint64
	// Stops counts why it stopped running, by eventlog.StopStatus.
	Stops map[eventlog.StopStatus]uint64
	Moves uint64 // from one capability to another
}

// Collection is one garbage collection as a whole.
type Collection struct {
	Time       uint64 // ns, when its statistics were told
	Cap        int
	Generation uint16
	Copied     uint64 // bytes
	Slop, Frag uint64 // bytes
	Threads    uint32 // that took part
	Live       uint64 // bytes live after it; 0 if not told, as after minor ones
}

// ConcurrentPhase is a phase of the non-moving collector beside the program.
type ConcurrentPhase struct {
	Kind       ConcurrentKind
	Start, End uint64 // ns
}

// ConcurrentKind tells what such a phase does.
type ConcurrentKind uint8

const (
	ConcurrentMark ConcurrentKind = iota
	ConcurrentSync                // the program waits
	ConcurrentSweep
	concurrentKinds
)

// String names the kind.
func (k ConcurrentKind) String() string {
	return [...]string{"mark", "sync", "sweep", "?"}[min(k, concurrentKinds)]
}

// TickyCounter counts entries of one piece of code (-ticky).
type TickyCounter struct {
	eventlog.TickyCounterDef
	Undefined bool
	// Sums of what was told: each sample counts since the one before.
	Entries, Allocs, Allocated uint64
	Samples                    uint64
}

type threadState struct {
	threads map[uint32]int // id → position in Log.RTSLog.Threads
	ticky   map[uint64]int // counter → position in Log.Ticky
	phases  [concurrentKinds]struct {
		start uint64
		on    bool
	}
}

func (b *builder) rtsThread(id uint32) *RTSThread {
	l := &b.p.RTSLog
	if b.threadsRTS.threads == nil {
		b.threadsRTS.threads = make(map[uint32]int)
	}
	i, ok := b.threadsRTS.threads[id]
	if !ok {
		i = len(l.Threads)
		b.threadsRTS.threads[id] = i
		l.Threads = append(l.Threads, RTSThread{ID: id})
	}
	return &l.Threads[i]
}

// ranThread adds a run that has ended.
func (b *builder) ranThread(run *Run) {
	t := b.rtsThread(run.Thread)
	t.Runs++
	t.RunNs += run.End - run.Start
}

func (b *builder) stopped(ev *eventlog.StopThread, time uint64) {
	t := b.rtsThread(ev.Thread)
	if t.Stops == nil {
		t.Stops = make(map[eventlog.StopStatus]uint64)
	}
	t.Stops[ev.Status]++
	if ev.Status == eventlog.StoppedFinished {
		t.Finished = time
	}
}

func (b *builder) phase(k ConcurrentKind, begins bool, time uint64) {
	ph := &b.threadsRTS.phases[k]
	if !begins && ph.on && time >= ph.start {
		b.p.RTSLog.Concurrent = append(b.p.RTSLog.Concurrent, ConcurrentPhase{k, ph.start, time})
	}
	ph.start, ph.on = time, begins
}

func (b *builder) tickyCounter(id uint64) *TickyCounter {
	p := b.p
	if b.threadsRTS.ticky == nil {
		b.threadsRTS.ticky = make(map[uint64]int)
	}
	i, ok := b.threadsRTS.ticky[id]
	if !ok {
		i = len(p.Ticky)
		b.threadsRTS.ticky[id] = i
		p.Ticky = append(p.Ticky, TickyCounter{Undefined: true, TickyCounterDef: eventlog.TickyCounterDef{Counter: id}})
	}
	return &p.Ticky[i]
}

// thread takes the events of threads, collections, the non-moving collector,
// ticky counters and info tables.
func (b *builder) told(rec *eventlog.Record) {
	p := b.p
	l := &p.RTSLog
	switch ev := rec.Event.(type) {
	case *eventlog.CreateThread:
		if t := b.rtsThread(ev.Thread); t.Created == 0 {
			t.Created = rec.Time
		}
	case *eventlog.MigrateThread:
		b.rtsThread(ev.Thread).Moves++
	case *eventlog.ThreadLabel:
		if !p.HaveCapture {
			b.rtsThread(ev.Thread).Label = ev.Label
		} else if i, ok := b.threadsRTS.threads[ev.Thread]; ok {
			l.Threads[i].Label = ev.Label
		}
	case *eventlog.GCStats:
		l.Collections = append(l.Collections, Collection{Time: rec.Time, Cap: rec.Cap, Generation: ev.Generation,
			Copied: ev.Copied, Slop: ev.Slop, Frag: ev.Frag, Threads: ev.Threads})
	case *eventlog.HeapLive:
		if n := len(l.Collections); n > 0 && l.Collections[n-1].Cap == rec.Cap {
			l.Collections[n-1].Live = ev.Bytes
		}
	case *eventlog.ConcMarkBegin:
		b.phase(ConcurrentMark, true, rec.Time)
	case *eventlog.ConcMarkEnd:
		b.phase(ConcurrentMark, false, rec.Time)
	case *eventlog.ConcSyncBegin:
		b.phase(ConcurrentSync, true, rec.Time)
	case *eventlog.ConcSyncEnd:
		b.phase(ConcurrentSync, false, rec.Time)
	case *eventlog.ConcSweepBegin:
		b.phase(ConcurrentSweep, true, rec.Time)
	case *eventlog.ConcSweepEnd:
		b.phase(ConcurrentSweep, false, rec.Time)
	case *eventlog.InfoTable:
		p.InfoTables = append(p.InfoTables, *ev)
	case *eventlog.TickyCounterDef:
		c := b.tickyCounter(ev.Counter)
		if c.Undefined {
			c.TickyCounterDef, c.Undefined = *ev, false
		}
	case *eventlog.TickyCounterSample:
		c := b.tickyCounter(ev.Counter)
		c.Samples++
		c.Entries = SatAdd(c.Entries, ev.Entries)
		c.Allocs = SatAdd(c.Allocs, ev.Allocs)
		c.Allocated = SatAdd(c.Allocated, ev.Allocated)
	}
}

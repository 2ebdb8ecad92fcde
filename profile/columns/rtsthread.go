package columns

import (
	"ccagent/eventlog"
)

// RTSThread is the life of a Haskell thread, as reported by the RTS.
type RTSThread struct {
	ID       uint32
	Label    string
	Created  uint64 // ns; 0 if it existed before the log's first event, or is unknown
	Finished uint64 // ns; 0 if the log does not show its end
	Runs     uint64
	RunNs    uint64
	// Stops counts the reasons why the thread stopped running, by
	// eventlog.StopStatus.
	Stops map[eventlog.StopStatus]uint64
	Moves uint64 // number of moves from one capability to another
}

// Collection is one garbage collection of all capabilities that took part.
type Collection struct {
	Time       uint64 // ns, at which its statistics were reported
	Cap        int
	Generation uint16
	Copied     uint64 // bytes
	Slop, Frag uint64 // bytes
	Threads    uint32 // GC threads that took part
	Live       uint64 // live bytes after it; 0 if not reported, as after minor collections
}

// ConcurrentPhase is a phase of the non-moving collector that runs concurrently with the
// program.
type ConcurrentPhase struct {
	Kind       ConcurrentKind
	Start, End uint64 // ns
}

// ConcurrentKind is the kind of such a phase.
type ConcurrentKind uint8

const (
	ConcurrentMark ConcurrentKind = iota
	ConcurrentSync                // stops the program
	ConcurrentSweep
	concurrentKinds
)

// String returns the name of the kind.
func (k ConcurrentKind) String() string {
	return [...]string{"mark", "sync", "sweep", "?"}[min(k, concurrentKinds)]
}

// TickyCounter counts the entries of a function, thunk or other code (-ticky).
type TickyCounter struct {
	eventlog.TickyCounterDef
	Undefined bool
	// Sums of the reported values: each sample has the difference to the one before.
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

func (s *rtsState) rtsThread(id uint32) *RTSThread {
	l := &s.p.RTSLog
	if s.threads.threads == nil {
		s.threads.threads = make(map[uint32]int)
	}
	i, ok := s.threads.threads[id]
	if !ok {
		i = len(l.Threads)
		s.threads.threads[id] = i
		l.Threads = append(l.Threads, RTSThread{ID: id})
	}
	return &l.Threads[i]
}

// ranThread adds a completed run to its thread.
func (s *rtsState) ranThread(run *Run) {
	t := s.rtsThread(run.Thread)
	t.Runs++
	t.RunNs += run.End - run.Start
}

func (s *rtsState) stopped(ev *eventlog.StopThread, time uint64) {
	t := s.rtsThread(ev.Thread)
	if t.Stops == nil {
		t.Stops = make(map[eventlog.StopStatus]uint64)
	}
	t.Stops[ev.Status]++
	if ev.Status == eventlog.StoppedFinished {
		t.Finished = time
	}
}

func (s *rtsState) phase(k ConcurrentKind, begins bool, time uint64) {
	ph := &s.threads.phases[k]
	if !begins && ph.on && time >= ph.start {
		s.p.RTSLog.Concurrent = append(s.p.RTSLog.Concurrent, ConcurrentPhase{k, ph.start, time})
	}
	ph.start, ph.on = time, begins
}

func (s *rtsState) tickyCounter(id uint64) *TickyCounter {
	p := s.p
	if s.threads.ticky == nil {
		s.threads.ticky = make(map[uint64]int)
	}
	i, ok := s.threads.ticky[id]
	if !ok {
		i = len(p.Ticky)
		s.threads.ticky[id] = i
		p.Ticky = append(p.Ticky, TickyCounter{Undefined: true, TickyCounterDef: eventlog.TickyCounterDef{Counter: id}})
	}
	return &p.Ticky[i]
}

// lifeEvent adds an event of threads, collections, the non-moving collector, ticky
// counters or info tables.
func (s *rtsState) lifeEvent(rec *eventlog.Record) {
	p := s.p
	l := &p.RTSLog
	switch ev := rec.Event.(type) {
	case *eventlog.CreateThread:
		if t := s.rtsThread(ev.Thread); t.Created == 0 {
			t.Created = rec.Time
		}
	case *eventlog.MigrateThread:
		s.rtsThread(ev.Thread).Moves++
	case *eventlog.ThreadLabel:
		if !p.HaveCapture {
			s.rtsThread(ev.Thread).Label = ev.Label
		} else if i, ok := s.threads.threads[ev.Thread]; ok {
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
		s.phase(ConcurrentMark, true, rec.Time)
	case *eventlog.ConcMarkEnd:
		s.phase(ConcurrentMark, false, rec.Time)
	case *eventlog.ConcSyncBegin:
		s.phase(ConcurrentSync, true, rec.Time)
	case *eventlog.ConcSyncEnd:
		s.phase(ConcurrentSync, false, rec.Time)
	case *eventlog.ConcSweepBegin:
		s.phase(ConcurrentSweep, true, rec.Time)
	case *eventlog.ConcSweepEnd:
		s.phase(ConcurrentSweep, false, rec.Time)
	case *eventlog.InfoTable:
		p.InfoTables = append(p.InfoTables, *ev)
	case *eventlog.TickyCounterDef:
		c := s.tickyCounter(ev.Counter)
		if c.Undefined {
			c.TickyCounterDef, c.Undefined = *ev, false
		}
	case *eventlog.TickyCounterSample:
		c := s.tickyCounter(ev.Counter)
		c.Samples++
		c.Entries = SatAdd(c.Entries, ev.Entries)
		c.Allocs = SatAdd(c.Allocs, ev.Allocs)
		c.Allocated = SatAdd(c.Allocated, ev.Allocated)
	}
}

package rtsevents

import (
	"ccagent/bpf"
	"ccagent/eventlog"
)

// Write takes one event; time is in ns on the records' clock, cap may be
// eventlog.NoCap.
type Write func(time uint64, cap int, e eventlog.Event) error

// The capability set of the process and its heap, as the log's head declares it.
const capset = 0

const wordSize = 8

// maxThreads is the number of threads that are remembered.
const maxThreads = 1 << 18

// A Translator translates the records of one run-time system into standard events. New makes
// one; the zero value is not ready.
type Translator struct {
	// Write is where the events go.
	Write   Write
	caps    []*capability // by number; nil where one was not seen
	threads map[uint64]*thread
	// MajorGeneration is the number of the oldest generation, −1 while it is not
	// known. Only after its collections is the size of live data known.
	MajorGeneration int
	// Synced is set where a collection stops other capabilities and its end reports when it asked for that.
	Synced bool
	// workers has the capabilities of OS threads that take part in a collection.
	workers map[uint32]int
	// flushing is since when the non-moving collector stops all capabilities, ns; 0 = it does not.
	flushing uint64
	watches  [bpf.RTSGroups]watch
	gc       GCTotals
	spark    sparkTotals
	// Collected, if not nil, is called with each collection whose times are known.
	Collected func(Collection)
}

// GCTotals are sums over the GC events that were written.
type GCTotals struct {
	Collections uint64
	PauseNs     uint64
	Copied      uint64 // bytes
	// First and Last are the run-time system's own count of collections at the
	// first and after the last that was seen; what is between them and not in
	// Collections fell into gaps.
	First, Last uint64
	lastEnd     uint64 // ns
}

// Collection is one that was seen.
type Collection struct {
	PauseNs uint64 // from the request to stop
	Major   bool
}

type capability struct {
	running uint64 // thread, 0 = none
	since   uint64 // when that or the run before began, ns
	gc      part
}

type thread struct {
	cap     int
	blocked bool
}

// New makes a translator that writes events.
func New(write Write) *Translator {
	return &Translator{
		Write: write, threads: map[uint64]*thread{},
		MajorGeneration: -1, workers: map[uint32]int{},
	}
}

// Totals returns the sums so far.
func (t *Translator) Totals() GCTotals { return t.gc }

// Threads is how many threads were seen that have not ended; false while they are not watched.
func (t *Translator) Threads() (n int, watched bool) {
	w := &t.watches[bpf.RTSGroupThreads]
	return len(t.threads), w.said && !w.gap
}

// Declare repeats in a new log the definitions that the following events refer to.
func (t *Translator) Declare(time uint64) error {
	if err := t.declareWatches(time); err != nil {
		return err
	}
	old := t.caps
	t.caps = nil
	t.threads = map[uint64]*thread{}
	for n, c := range old {
		if c == nil {
			continue
		}
		now, err := t.cap(time, n)
		if err != nil {
			return err
		}
		now.gc = c.gc
		if c.gc.ended != 0 {
			if err := t.Write(time, n, &eventlog.GCStart{}); err != nil {
				return err
			}
		}
		if c.running != 0 {
			if err := t.run(time, n, c.running); err != nil {
				return err
			}
		}
	}
	return nil
}

// valid reports whether a program can have a capability with this number, which comes from
// the target's memory.
func valid(n int) bool { return n >= 0 && n < eventlog.MaxCapabilities }

// cap returns a capability, and declares it the first time.
func (t *Translator) cap(time uint64, n int) (*capability, error) {
	if c := t.known(n); c != nil {
		return c, nil
	}
	c := &capability{}
	for len(t.caps) <= n {
		t.caps = append(t.caps, nil)
	}
	t.caps[n] = c
	if err := t.Write(time, eventlog.NoCap, &eventlog.CapCreate{Cap: uint16(n)}); err != nil {
		return nil, err
	}
	return c, t.Write(time, eventlog.NoCap, &eventlog.CapsetAssignCap{Capset: capset, Cap: uint16(n)})
}

// known returns a capability that was seen, or nil.
func (t *Translator) known(n int) *capability {
	if n < 0 || n >= len(t.caps) {
		return nil
	}
	return t.caps[n]
}

// thread returns a thread, and writes its creation the first time.
func (t *Translator) thread(time uint64, n int, tso uint64) (*thread, error) {
	if th := t.threads[tso]; th != nil {
		return th, nil
	}
	if len(t.threads) >= maxThreads {
		clear(t.threads)
	}
	th := &thread{cap: n}
	t.threads[tso] = th
	return th, t.Write(time, n, &eventlog.CreateThread{Thread: uint32(tso)})
}

// Record is one hit of a probe.
type Record struct {
	Time   uint64 // ns
	Probe  bpf.RTSProbe
	Cap    int
	Thread uint64 // the log has its low 32 bits; a thread whose low bits are 0 is left out
	Task   uint32 // the OS thread
	CPU    uint32
	// Dropped counts the records of the probe's group that the CPU has dropped before.
	Dropped uint64
	Reason  uint64 // of a stop
	Words   []uint64
}

// Take translates a record. Records of one capability come in order of time.
func (t *Translator) Take(r Record) error {
	g := GroupOf(r.Probe)
	if err := t.dropped(r, g); err != nil || t.watches[g].gap {
		return err
	}
	switch r.Probe { // these have no capability
	case bpf.RTSWorkerEnd:
		n, known := t.workers[r.Task]
		delete(t.workers, r.Task)
		if c := t.known(n); known && c != nil {
			return t.goesOn(n, c, r.Time)
		}
		return nil
	case bpf.RTSFlushStart:
		t.flushing = max(r.Time, 1)
		return nil
	case bpf.RTSFlushEnd:
		return t.flushed(r.Time)
	}
	if !valid(r.Cap) {
		return nil
	}
	c, err := t.cap(r.Time, r.Cap)
	if err != nil {
		return err
	}
	switch r.Probe {
	case bpf.RTSGCStart:
		c.gc.began = r.Time
	case bpf.RTSWorkerStart:
		if err := t.goesOn(r.Cap, c, r.Time); err != nil {
			return err
		}
		c.gc.stood = max(r.Time, 1)
		if len(t.workers) < maxThreads {
			t.workers[r.Task] = r.Cap
		}
	case bpf.RTSWorkerDone:
		c.gc.done = r.Time
	case bpf.RTSSparks:
		return t.sparks(r)
	case bpf.RTSGCEnd:
		return t.gcEnd(r, c)
	case bpf.RTSRun, bpf.RTSResume:
		if uint32(r.Thread) == 0 {
			return nil
		}
		return t.run(r.Time, r.Cap, r.Thread)
	case bpf.RTSStop:
		return t.stop(r.Time, r.Cap, eventlog.StopStatus(min(r.Reason, 0xffff)))
	case bpf.RTSSuspend:
		return t.stop(r.Time, r.Cap, eventlog.StoppedForeignCall)
	case bpf.RTSCreate:
		if uint32(r.Thread) == 0 || t.threads[r.Thread] != nil {
			return nil // a thread that was there already
		}
		_, err := t.thread(r.Time, r.Cap, r.Thread)
		return err
	case bpf.RTSWakeup:
		th := t.threads[r.Thread]
		if th == nil || !th.blocked {
			return nil
		}
		th.blocked = false
		return t.Write(r.Time, r.Cap, &eventlog.ThreadWakeup{Thread: uint32(r.Thread), OtherCap: uint16(th.cap)})
	}
	return nil
}

// run writes the event that a capability runs a thread.
func (t *Translator) run(time uint64, n int, tso uint64) error {
	c, err := t.cap(time, n)
	if err != nil {
		return err
	}
	if c.running != 0 {
		if err := t.stop(time, n, eventlog.StoppedYielding); err != nil {
			return err
		}
	}
	th, err := t.thread(time, n, tso)
	if err != nil {
		return err
	}
	if th.blocked {
		th.blocked = false
		if err := t.Write(time, n, &eventlog.ThreadWakeup{Thread: uint32(tso), OtherCap: uint16(n)}); err != nil {
			return err
		}
	}
	if th.cap != n {
		if err := t.Write(time, th.cap, &eventlog.MigrateThread{Thread: uint32(tso), NewCap: uint16(n)}); err != nil {
			return err
		}
		th.cap = n
	}
	c.running, c.since = tso, time
	return t.Write(time, n, &eventlog.RunThread{Thread: uint32(tso)})
}

// stop writes the event that a capability's thread stops.
func (t *Translator) stop(time uint64, n int, why eventlog.StopStatus) error {
	c := t.known(n)
	if c == nil || c.running == 0 {
		return nil // it ran before the capture, or in a gap
	}
	tso := c.running
	c.running = 0
	if th := t.threads[tso]; th != nil {
		th.blocked = why > eventlog.StoppedForeignCall
		if why == eventlog.StoppedFinished {
			delete(t.threads, tso)
		}
	}
	return t.Write(max(time, c.since), n, &eventlog.StopThread{Thread: uint32(tso), Status: why})
}

// flushed writes a stop of all capabilities by the non-moving collector, which has ended.
func (t *Translator) flushed(time uint64) error {
	began := t.flushing
	t.flushing = 0
	if began == 0 || time < began {
		return nil
	}
	if err := t.Write(began, eventlog.NoCap, &eventlog.ConcSyncBegin{}); err != nil {
		return err
	}
	return t.Write(time, eventlog.NoCap, &eventlog.ConcSyncEnd{})
}

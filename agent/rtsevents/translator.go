package rtsevents

import (
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/ghc"
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
	// SampleGap is how far apart two samples of one thread may lie, in ns, for it
	// to have run all the time between them.
	SampleGap uint64
	inGap     bool
	gc        GCTotals
}

// GCTotals are sums over the GC events that were written.
type GCTotals struct {
	Collections uint64
	PauseNs     uint64
	MaxPauseNs  uint64
	Copied      uint64 // bytes
	// First and Last are the run-time system's own count of collections at the
	// first and after the last that was seen; what is between them and not in
	// Collections fell into gaps.
	First, Last uint64
}

type capability struct {
	running uint64 // thread, 0 = none
	coarse  bool   // it is known from samples
	seen    uint64 // when it was last sampled, ns
	// collecting since then; 0 = it is not
	collecting uint64
}

type thread struct {
	cap     int
	blocked bool
}

// New makes a translator that writes events.
func New(write Write) *Translator {
	return &Translator{
		Write: write, threads: map[uint64]*thread{},
		MajorGeneration: -1, SampleGap: 10e6,
	}
}

// Totals returns the sums so far.
func (t *Translator) Totals() GCTotals { return t.gc }

// Declare repeats in a new log the definitions that the following events refer to.
func (t *Translator) Declare(time uint64) error {
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
		now.collecting, now.seen = c.collecting, c.seen
		if c.collecting != 0 {
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
	Reason uint64 // of a stop
	Words  []uint64
}

// Take translates a record. Records of one capability come in order of time.
func (t *Translator) Take(r Record) error {
	if !valid(r.Cap) {
		return nil
	}
	c, err := t.cap(r.Time, r.Cap)
	if err != nil {
		return err
	}
	switch r.Probe {
	case bpf.RTSGCStart, bpf.RTSWorkerStart:
		return t.gcStart(r, c)
	case bpf.RTSWorkerEnd:
		return t.gcEnd(r, c)
	case bpf.RTSGCEnd:
		if err := t.gcStats(r, c); err != nil {
			return err
		}
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

func (t *Translator) gcStart(r Record, c *capability) error {
	if c.collecting != 0 {
		return nil
	}
	c.collecting = max(r.Time, 1)
	if err := t.Write(r.Time, r.Cap, &eventlog.GCStart{}); err != nil {
		return err
	}
	return t.Write(r.Time, r.Cap, &eventlog.GCWork{})
}

func (t *Translator) gcEnd(r Record, c *capability) error {
	if c.collecting == 0 {
		return nil // it began before the capture
	}
	c.collecting = 0
	if err := t.Write(r.Time, r.Cap, &eventlog.GCDone{}); err != nil {
		return err
	}
	return t.Write(r.Time, r.Cap, &eventlog.GCEnd{})
}

// gcStats writes the statistics of a collection and the heap, in the run-time system's order.
func (t *Translator) gcStats(r Record, c *capability) error {
	w := r.Words
	if len(w) < bpf.GCFirstCapability {
		return nil
	}
	if c.collecting != 0 {
		pause := r.Time - min(c.collecting, r.Time)
		t.gc.PauseNs += pause
		t.gc.MaxPauseNs = max(t.gc.MaxPauseNs, pause)
	}
	if t.gc.Collections == 0 {
		t.gc.First = w[bpf.GCCount]
	}
	t.gc.Collections++
	t.gc.Copied += w[bpf.GCCopied] * wordSize
	t.gc.Last = w[bpf.GCCount] + 1
	for i, words := range w[bpf.GCFirstCapability:] {
		if _, err := t.cap(r.Time, i); err != nil {
			return err
		}
		if err := t.Write(r.Time, i, &eventlog.HeapAllocated{Capset: capset, Bytes: words * wordSize}); err != nil {
			return err
		}
	}
	heap := w[bpf.GCMBlocks] * ghc.MegablockBytes
	used := w[bpf.GCBlocks] * ghc.BlockBytes
	stats := &eventlog.GCStats{
		Capset: capset, Generation: uint16(min(w[bpf.GCGeneration], 0xffff)),
		Copied: w[bpf.GCCopied] * wordSize, Slop: w[bpf.GCSlop] * wordSize,
		Threads: uint32(w[bpf.GCThreads]), MaxCopied: w[bpf.GCMaxCopied] * wordSize,
		TotCopied: w[bpf.GCCopied] * wordSize, BalancedCopied: w[bpf.GCBalanced] * wordSize,
	}
	// A megablock's first blocks hold the descriptors of the others.
	if usable := w[bpf.GCMBlocks] * ghc.BlocksPerMegablock * ghc.BlockBytes; usable > used {
		stats.Frag = usable - used
	}
	evs := []eventlog.Event{&eventlog.GCGlobalSync{}, stats}
	if int(stats.Generation) == t.MajorGeneration {
		evs = append(evs, &eventlog.HeapLive{Capset: capset, Bytes: w[bpf.GCLive] * wordSize})
	}
	if heap != 0 {
		evs = append(evs, &eventlog.HeapSize{Capset: capset, Bytes: heap}, &eventlog.BlocksSize{Capset: capset, Bytes: used})
	}
	for _, e := range evs {
		if err := t.Write(r.Time, r.Cap, e); err != nil {
			return err
		}
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
	c.running, c.coarse = tso, false
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
	return t.Write(time, n, &eventlog.StopThread{Thread: uint32(tso), Status: why})
}

// Gap begins or ends a gap: a group's probes were removed, or placed again.
func (t *Translator) Gap(time uint64, group int, begins bool) error {
	if group == int(bpf.RTSGroupGC) {
		return t.endCollections(time, begins)
	}
	t.inGap = begins
	return t.endRuns(time)
}

func (t *Translator) endRuns(time uint64) error {
	for n, c := range t.caps {
		if c == nil {
			continue
		}
		at := time
		if c.coarse {
			at = c.seen
		}
		if err := t.stop(at, n, eventlog.StoppedYielding); err != nil {
			return err
		}
	}
	return nil
}

// endCollections ends the collections that are under way. The end of one that runs into a gap
// is unknown, and the probes may have been removed long before the gap was noted, so it is
// cut to the length of the longest complete one.
func (t *Translator) endCollections(time uint64, gap bool) error {
	for n, c := range t.caps {
		if c == nil || c.collecting == 0 {
			continue
		}
		at := time
		if gap {
			at = min(time, c.collecting+t.gc.MaxPauseNs)
		}
		if err := t.gcEnd(Record{Time: at, Cap: n}, c); err != nil {
			return err
		}
	}
	return nil
}

// Sampled notes that a sample showed a capability running a thread. It has an effect in gaps
// only.
func (t *Translator) Sampled(time uint64, n int, tso uint64) error {
	if !t.inGap || uint32(tso) == 0 || !valid(n) {
		return nil
	}
	c, err := t.cap(time, n)
	if err != nil {
		return err
	}
	if c.running != 0 && (c.running != tso || time > c.seen+t.SampleGap) {
		if err := t.stop(c.seen, n, eventlog.StoppedYielding); err != nil {
			return err
		}
	}
	c.seen = max(c.seen, time)
	if c.running == tso {
		return nil
	}
	err = t.run(time, n, tso)
	c.coarse = true
	return err
}

// Close ends collections and runs that are under way, when the capture or process has ended.
func (t *Translator) Close(time uint64) error {
	if err := t.endCollections(time, false); err != nil {
		return err
	}
	return t.endRuns(time)
}

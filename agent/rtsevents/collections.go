package rtsevents

import (
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/ghc"
)

// A collection is written when its end is known, as the run-time system would have written it:
// the request to stop, and for each capability that took part when it stopped, worked and went
// on. What is unfinished when the probes go, or the capture ends, is not written.

// maxGCWait bounds the time between a request and the collection's end that is believed, in ns.
const maxGCWait = 3600e9

// part is what a capability does for the current collection; times are in ns, 0 = not yet.
type part struct {
	began uint64 // work, as a probe saw it; only where the end does not say
	stood uint64 // it stopped for a collection that another capability leads
	done  uint64 // its own work was done
	ended uint64 // the collection ended; it has been written that it began, but not that it goes on
}

// times returns when the collection was requested and when its work began.
func (t *Translator) times(r Record, c *capability) (requested, started uint64, known bool) {
	if r.Words[bpf.GCStarted] == 0 || r.Words[bpf.GCStarted] > r.Time || r.Time-r.Words[bpf.GCStarted] > maxGCWait {
		return c.gc.began, c.gc.began, c.gc.began != 0
	}
	started = r.Words[bpf.GCStarted]
	requested = r.Words[bpf.GCRequested]
	// A second collection for the same request does not stop anybody.
	if !t.Synced || requested > started || requested < t.gc.lastEnd || started-requested > maxGCWait {
		requested = started
	}
	return requested, started, true
}

// gcEnd writes a collection, which the record's capability has led.
func (t *Translator) gcEnd(r Record, c *capability) error {
	if len(r.Words) < bpf.GCFirstCapability {
		return nil
	}
	requested, started, known := t.times(r, c)
	if err := t.goesOn(r.Cap, c, c.gc.ended); err != nil { // in the collection before
		return err
	}
	if known {
		if err := t.gcParts(r, requested, started); err != nil {
			return err
		}
		t.gc.PauseNs += r.Time - requested
		if t.Collected != nil {
			t.Collected(Collection{PauseNs: r.Time - requested, Major: int(r.Words[bpf.GCGeneration]) == t.MajorGeneration})
		}
	}
	t.gc.lastEnd = r.Time
	if err := t.gcStats(r); err != nil || !known {
		return err
	}
	if err := t.Write(r.Time, r.Cap, &eventlog.GCDone{}); err != nil {
		return err
	}
	return t.Write(r.Time, r.Cap, &eventlog.GCEnd{})
}

// gcParts writes the request, the beginning of the leader's part, and the parts of others but
// for their ends.
func (t *Translator) gcParts(r Record, requested, started uint64) error {
	if t.Synced {
		var request eventlog.Event = &eventlog.RequestSeqGC{}
		if r.Words[bpf.GCThreads] > 1 {
			request = &eventlog.RequestParGC{}
		}
		if err := t.Write(requested, r.Cap, request); err != nil {
			return err
		}
	}
	for _, e := range []eventlog.Event{&eventlog.GCStart{}, &eventlog.GCWork{}} {
		if err := t.Write(started, r.Cap, e); err != nil {
			return err
		}
	}
	for n, c := range t.caps {
		if c == nil || c.gc.stood == 0 || c.gc.ended != 0 {
			continue
		}
		if c.gc.done < started {
			c.gc.done = r.Time
		}
		c.gc.ended = r.Time
		for _, step := range []struct {
			at uint64
			e  eventlog.Event
		}{{c.gc.stood, &eventlog.GCStart{}}, {max(started, c.gc.stood), &eventlog.GCWork{}}, {max(c.gc.done, c.gc.stood), &eventlog.GCDone{}}} {
			if err := t.Write(step.at, n, step.e); err != nil {
				return err
			}
		}
	}
	return nil
}

// goesOn writes the end of a capability's part in a collection that another led.
func (t *Translator) goesOn(n int, c *capability, time uint64) error {
	ended := c.gc.ended
	c.gc = part{}
	if ended == 0 {
		return nil
	}
	return t.Write(max(time, ended), n, &eventlog.GCEnd{})
}

// endCollections forgets collections that are under way. Capabilities whose collection has ended
// go on, at a time that will not be known.
func (t *Translator) endCollections() error {
	t.flushing = 0
	clear(t.workers)
	for n, c := range t.caps {
		if c == nil {
			continue
		}
		if err := t.goesOn(n, c, c.gc.ended); err != nil {
			return err
		}
	}
	return nil
}

// gcStats writes the statistics of a collection and the heap, in the run-time system's order.
func (t *Translator) gcStats(r Record) error {
	w := r.Words
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

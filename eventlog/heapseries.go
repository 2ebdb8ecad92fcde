package eventlog

// This file holds the events of a series of censuses of the heap, beside the standard's samples of a
// heap profile.

// HeapCensus says how the census was taken whose HeapSampleBegin, of the same time, follows.
type HeapCensus struct {
	PID uint32
	// Collection is the number of the collection, among those of the oldest generation.
	Collection uint32
	PauseNs    uint64 // for how long the process stood
	TookNs     uint64 // from then until all was copied and counted
	Beside     bool   // the process ran while its oldest generation was copied
	Closures   uint64
	Slop       uint64 // bytes that closures have left behind; in no band
	Pinned     uint64 // bytes of blocks with byte arrays that are not moved; in the bands
	// Counts is how many closures each band has, in the order of the HeapSampleStrings.
	Counts []uint64
	// AtRest is set if the process was stopped between collections: garbage was counted too.
	AtRest bool
}

// HeapDraw says of the census whose HeapSampleBegin, of the same time, follows that it has counted a random part of
// the heap, and how sure its bands are.
type HeapDraw struct {
	PID uint32
	// Megablocks of the heap are divided between groups of blocks; Drawn of them were counted. The descriptors of Stood
	// were read while the process stood.
	Megablocks, Drawn, Stood uint32
	// Margins are the distances in bytes to the ends of 95 % confidence intervals, in the order of the
	// HeapSampleStrings.
	Margins []uint64
}

// HeapKinds is what the census has counted by info table whose HeapSampleBegin, of the same time, follows. Where a census has
// several, they add up. Their bytes are those of its HeapSampleStrings, divided otherwise.
type HeapKinds struct {
	PID uint32
	// Pinned and PinnedBytes are of blocks with byte arrays that are not moved, each counted as one closure.
	Pinned, PinnedBytes uint64
	// Rest and RestBytes are of closures whose info tables are not in Kinds, because there are too many of these.
	Rest, RestBytes uint64
	Kinds           []HeapKind
}

// HeapKind is what the closures of one info table have.
type HeapKind struct {
	Closure uint32 // Closure.ID
	Count   uint64
	Bytes   uint64
	Margin  uint64 // distance to the ends of the 95 % confidence interval, in bytes, of a census that has a HeapDraw
}

// HeapMiss is why a census was given up.
type HeapMiss uint8

// Reasons for which a census is given up.
const (
	HeapMissOther     HeapMiss = iota
	HeapMissLate               // the collection was over before the thread that leads it could be held
	HeapMissCollected          // the heap was collected again before it was copied
	HeapMissPause              // the process would have stood longer than is allowed
	HeapMissTraced             // another process traces it
	HeapMissStopped            // a signal had stopped it, or its control group was frozen
	HeapMissOdd                // what was read contradicts what the run-time system says of it
	HeapMissEnded              // the process ended, or executed another program, meanwhile
	HeapMisses                 // how many reasons there are
)

// HeapSeries is the account of a process's series of censuses since it began. The last one of a
// process counts.
type HeapSeries struct {
	PID        uint32
	Problem    string // why there can be none; empty if there can
	PeriodNs   uint64 // between censuses, at the least
	MaxPauseNs uint64 // asked for; 0 is no bound
	// Collections and Majors have begun while the probes were in place.
	Collections, Majors uint64
	Taken               uint64
	Missed              []uint64 // censuses that were given up, by HeapMiss; HeapMisses of them
	LongestNs           uint64   // for which the process stood
	StoodNs             uint64   // all of it, also for censuses that were given up
	AgentNs             uint64   // the agent's CPU time of copying and counting
	CostNs              uint64   // charged to the process: StoodNs on all CPUs that it used, and its part of AgentNs
	DeferredNs          uint64   // for how long a census was due and --max-overhead did not allow it
	Detail              string   // the last HeapMissOther's or HeapMissOdd's reason
	// Stops is how often the process was stopped, also for censuses that were given up, and Over how often for longer than MaxPauseNs. Both are 0 in
	// logs of before they were counted.
	Stops, Over uint64
}

// missText says why censuses are given up, and what helps.
var missText = [HeapMisses]string{
	HeapMissOther:     "another reason",
	HeapMissLate:      "the collection was over before the thread that leads it was held",
	HeapMissCollected: "the heap was collected again before it was copied: a longer --max-pause helps",
	HeapMissPause:     "the program would have stood longer than --max-pause allows",
	HeapMissTraced:    "another process traces the program",
	HeapMissStopped:   "a signal had stopped the program, or it was frozen",
	HeapMissOdd:       "what was read contradicts what the run-time system says of its heap",
	HeapMissEnded:     "the program ended, or executed another one",
}

// EachMiss calls f with each reason for which censuses were given up, in words too, and how often.
func (e *HeapSeries) EachMiss(f func(m HeapMiss, why string, n uint64)) {
	for i, n := range e.Missed {
		if n == 0 {
			continue
		}
		m, text := HeapMiss(i), missText[HeapMissOther]
		if i < len(missText) {
			text = missText[i]
		}
		if e.Detail != "" && (m == HeapMissOther || m == HeapMissOdd) {
			text += ": " + e.Detail
		}
		f(m, text, n)
	}
}

func (*HeapCensus) EventID() uint16 { return IDHeapCensus }
func (*HeapSeries) EventID() uint16 { return IDHeapSeries }
func (*HeapDraw) EventID() uint16   { return IDHeapDraw }
func (*HeapKinds) EventID() uint16  { return IDHeapKinds }

func (e *HeapCensus) layout(c *codec) {
	c.v32(&e.PID)
	c.v32(&e.Collection)
	c.v64(&e.PauseNs)
	c.v64(&e.TookNs)
	c.flag(&e.Beside)
	c.v64(&e.Closures)
	c.v64(&e.Slop)
	c.v64(&e.Pinned)
	list(c, &e.Counts, 1)
	for i := range e.Counts {
		c.v64(&e.Counts[i])
	}
	c.done()
	c.flag(&e.AtRest)
}

func (e *HeapDraw) layout(c *codec) {
	for _, n := range []*uint32{&e.PID, &e.Megablocks, &e.Drawn, &e.Stood} {
		c.v32(n)
	}
	list(c, &e.Margins, 1)
	for i := range e.Margins {
		c.v64(&e.Margins[i])
	}
	c.done()
}

func (e *HeapKinds) layout(c *codec) {
	c.v32(&e.PID)
	for _, n := range []*uint64{&e.Pinned, &e.PinnedBytes, &e.Rest, &e.RestBytes} {
		c.v64(n)
	}
	list(c, &e.Kinds, 4)
	for i := range e.Kinds {
		k := &e.Kinds[i]
		c.v32(&k.Closure)
		c.v64(&k.Count)
		c.v64(&k.Bytes)
		c.v64(&k.Margin)
	}
	c.done()
}

func (e *HeapSeries) layout(c *codec) {
	c.v32(&e.PID)
	c.str(&e.Problem)
	for _, n := range []*uint64{&e.PeriodNs, &e.MaxPauseNs, &e.Collections, &e.Majors, &e.Taken} {
		c.v64(n)
	}
	list(c, &e.Missed, 1)
	for i := range e.Missed {
		c.v64(&e.Missed[i])
	}
	c.done()
	for _, n := range []*uint64{&e.LongestNs, &e.StoodNs, &e.AgentNs, &e.CostNs, &e.DeferredNs} {
		c.v64(n)
	}
	c.str(&e.Detail)
	c.v64(&e.Stops)
	c.v64(&e.Over)
}

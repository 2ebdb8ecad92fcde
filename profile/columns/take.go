package columns

import (
	"ccagent/eventlog"
)

// take adds all records and samples of a reader. It does so on one goroutine: handing samples over to
// another takes as long as reading them.
func (b *builder) take(rd *eventlog.Reader) (some bool) {
	if b.reading == nil {
		b.reading = new(eventlog.Origins)
	}
	var samples [lookups]eventlog.PackedSample
	for {
		n := rd.NextSamples(samples[:], b.reading)
		b.samples(samples[:n], b.reading.New)
		if n == len(samples) {
			some = true
			continue
		}
		if !rd.Next() {
			return some || n > 0
		}
		some = true
		b.add(rd.Record())
	}
}

// lookups is the number of samples whose nodes are looked up before any of them is added.
// The tables are large, and grouped look-ups let a CPU overlap cache misses.
const lookups = 64

// samples adds at most lookups samples, with the origins that are new to them.
func (b *builder) samples(samples []eventlog.PackedSample, origins []eventlog.NewOrigin) {
	b.stacks.sites.hold(len(b.stacks.nodes.Parent))
	if b.columns.origins == nil {
		b.columns.origins = new([eventlog.MaxOrigins]knownOrigin)
	}
	var nodes [lookups]uint32
	var last [lookups]lastSite
	for i := range samples {
		nodes[i] = b.stacks.node(samples[i].Node)
		last[i] = b.stacks.sites.last[nodes[i]]
	}
	for i := range samples {
		s := &samples[i]
		for len(origins) > 0 && origins[0].At == i {
			b.columns.origins[origins[0].Number] = knownOrigin{Origin: origins[0].Origin}
			origins = origins[1:]
		}
		b.sample(s, &b.columns.origins[s.Origin], nodes[i], last[i])
	}
}

// sample adds a sample with a node; last is as intern takes it.
func (b *builder) sample(s *eventlog.PackedSample, origin *knownOrigin, node uint32, last lastSite) {
	b.ran(s.Time)
	var context uint32
	event, ok := 0, false
	if b.columns.sums != nil {
		event, ok = b.events.event(origin.Event)
	} else if context, ok = b.columns.contextOf(s, origin, &b.events); ok {
		event = int(b.columns.contexts.list[context].Event)
	}
	if !ok {
		b.p.Accounting.Dropped++
		return
	}
	site := b.stacks.site(s, node, last)
	if b.columns.sums != nil {
		b.columns.sums.add(event, site, s.Weight)
	} else {
		b.columns.column(s, site, context)
	}
	b.p.nsamples++
	b.p.Events[event].count(s)
}

// record adds a sample that was read as a record.
func (b *builder) record(time uint64, s *eventlog.Sample) {
	packed := eventlog.PackedSample{
		Time: time, Weight: s.Weight, SkippedWords: s.SkippedWords, Node: s.Node, FoldedFrames: s.FoldedFrames,
		Centres: s.Centres, Flags: s.Flags, Stop: s.Stop,
	}
	origin := knownOrigin{Origin: eventlog.Origin{
		Event: s.Event, CPU: s.CPU, PID: s.PID, TID: s.TID, Capability: s.Capability, TSO: s.TSO,
	}}
	b.stacks.sites.hold(len(b.stacks.nodes.Parent))
	node := b.stacks.node(s.Node)
	b.sample(&packed, &origin, node, b.stacks.sites.last[node])
}

package columns

import (
	"slices"

	"ccagent/eventlog"
)

// OpenTotals is like Open, but its Log has Totals instead of samples, for callers that
// only need figures of the whole log. It needs memory for the distinct stacks only, and
// no time for building columns.
func OpenTotals(path string, progress func(done, total int64)) (*Log, error) {
	return openFile(path, progress, newTotalsBuilder)
}

// Totals are an event's sums by site over the whole log.
type Totals struct {
	Weight, Count []uint64
	Total         uint64 // weight
	Samples       uint64
}

func newTotalsBuilder() *builder {
	b := newBuilder()
	b.totals = newTotals()
	return b
}

// summer receives what sumUp reads. A method that returns false stops the reading.
type summer interface {
	briefs(samples []eventlog.BriefSample, last uint64) bool
	sample(time uint64, s *eventlog.Sample) bool
	record(rd *eventlog.Reader) bool
}

// sumUp reads a log and adds up its samples, in order with the records between them.
func sumUp(rd *eventlog.Reader, to summer) bool {
	var briefs [256]eventlog.BriefSample
	var others [32]eventlog.TimedSample
	sampled := rd.Declares(eventlog.IDSample)
	for {
		if sampled {
			n := rd.NextBriefs(briefs[:])
			if n > 0 && !to.briefs(briefs[:n], rd.Time()) {
				return false
			}
			if n == len(briefs) {
				continue
			}
			n = rd.NextSamples(others[:])
			for i := range others[:n] {
				if !to.sample(others[i].Time, &others[i].Sample) {
					return false
				}
			}
			if n == len(others) {
				continue
			}
		}
		if !rd.Next() {
			return true
		}
		rec, ok := rd.Record(), false
		if s, is := rec.Event.(*eventlog.Sample); is {
			ok = to.sample(rec.Time, s)
		} else {
			ok = to.record(rd)
		}
		if !ok {
			return false
		}
	}
}

// inOrder is a summer that adds a log's samples and records to a builder in their order.
type inOrder struct{ b *builder }

func (o inOrder) briefs(samples []eventlog.BriefSample, last uint64) bool {
	o.b.ran(last)
	known := samples[:0]
	for i := range samples {
		s := samples[i]
		s.Node = o.b.node(s.Node)
		event, ok := o.b.event(uint32(s.Event))
		if !ok {
			o.b.p.Accounting.Dropped++
			continue
		}
		s.Event = uint8(event)
		known = append(known, s)
	}
	o.b.totals.briefs(known)
	return true
}

func (o inOrder) sample(time uint64, s *eventlog.Sample) bool {
	o.b.ran(time)
	node := o.b.node(s.Node)
	event, ok := o.b.event(s.Event)
	if !ok {
		o.b.p.Accounting.Dropped++
		return true
	}
	o.b.totals.sample(node, uint8(event), s)
	return true
}

func (o inOrder) record(rd *eventlog.Reader) bool {
	o.b.add(rd.Record())
	return true
}

// finishTotals computes from the sums what builders of columns count for each sample, and
// the Totals that queries use.
func (b *builder) finishTotals() {
	p := b.p
	b.sites.hold(len(b.nodes.Parent))
	site := func(k *totalKey) uint32 {
		return b.sites.intern(Site{k.node, k.stop, k.flags&eventlog.SampleInKernel != 0, k.centres})
	}
	all := append(slices.Clip(b.sectionTotals), b.totals)
	for _, t := range all {
		for sum := range t.all {
			site(&sum.totalKey)
		}
	}
	p.Totals = make([]Totals, len(p.Events))
	for i := range p.Totals {
		p.Totals[i].Weight, p.Totals[i].Count = make([]uint64, len(b.sites.sites)), make([]uint64, len(b.sites.sites))
	}
	for _, t := range all {
		for sum := range t.all {
			id, s, e := site(&sum.totalKey), &p.Totals[sum.event], &p.Events[sum.event]
			s.Weight[id], s.Count[id] = SatAdd(s.Weight[id], sum.weight), s.Count[id]+sum.count
			s.Total, s.Samples = SatAdd(s.Total, sum.weight), s.Samples+sum.count
			e.Samples, e.Weight = s.Samples, s.Total
			e.Stops[min(int(sum.stop), len(e.Stops)-1)] += sum.count
			e.countTops(sum.flags, sum.count)
			b.centreSamples(sum.centres, sum.count)
			p.nsamples += int(sum.count)
		}
	}
}

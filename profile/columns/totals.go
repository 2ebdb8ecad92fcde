package columns

import (
	"ccagent/eventlog"
)

// OpenTotals is Open for who asks only about the whole log: its Log has Totals in
// place of samples. Its memory is that of the distinct stacks, and no time is spent on
// columns.
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

// totals are sums over a log's samples, in place of their columns.
type totals struct {
	sums []totalOf
	// last are the latest sums of nodes, plus 1: those of each of the first events,
	// and of all others together. They make looking into index rare.
	last    [8][]uint32
	touched uint64 // keeps the looks at sums that are only to have them in the cache
	index   map[totalKey]uint32
}

// totalKey is what samples that are summed up agree in.
type totalKey struct {
	node, centres uint32
	event         uint8
	stop          eventlog.StopReason
	kernel        bool
	top           eventlog.SampleFlags // how the topmost frame was found
}

type totalOf struct {
	totalKey
	weight, count uint64
}

func newTotals() *totals { return &totals{index: make(map[totalKey]uint32)} }

// some are samples to be summed up.
type some struct {
	n       int
	keys    [lookups]totalKey
	weights [lookups]uint64
}

func (s *some) add(node uint32, event uint8, b *eventlog.BriefSample) {
	s.keys[s.n] = totalKey{node, b.Centres, event, b.Stop, b.Flags&eventlog.SampleInKernel != 0, b.Flags & tops}
	s.weights[s.n] = b.Weight
	s.n++
}

// add takes samples. It looks up what many of them need before it takes any: the
// tables are large, and a CPU can wait for many places at once.
func (t *totals) add(s *some) {
	var ids [lookups]uint32
	for i := range s.n {
		k := &s.keys[i]
		if last := t.last[min(int(k.event), len(t.last)-1)]; int(k.node) < len(last) {
			ids[i] = last[k.node]
		}
	}
	for i := range s.n {
		if id := ids[i]; id != 0 {
			t.touched += t.sums[id-1].count
		}
	}
	for i := range s.n {
		id := ids[i]
		if id == 0 || t.sums[id-1].totalKey != s.keys[i] {
			id = t.find(s.keys[i])
		}
		sum := &t.sums[id-1]
		sum.weight = SatAdd(sum.weight, s.weights[i])
		sum.count++
	}
	s.n = 0
}

// find gives the number of a sum, plus 1.
func (t *totals) find(k totalKey) uint32 {
	id, ok := t.index[k]
	if !ok {
		t.sums = append(t.sums, totalOf{totalKey: k})
		id = uint32(len(t.sums))
		t.index[k] = id
	}
	last := &t.last[min(int(k.event), len(t.last)-1)]
	if n := int(k.node) + 1; n > len(*last) {
		*last = append(*last, make([]uint32, n-len(*last))...)
	}
	(*last)[k.node] = id
	return id
}

// briefs takes samples that are only summed up.
func (b *builder) briefs(samples []eventlog.BriefSample) {
	var s some
	for i := range samples {
		x := &samples[i]
		b.ran(x.Time)
		node := b.node(x.Node)
		event, ok := b.event(x.Event)
		if !ok {
			b.p.Accounting.Dropped++
			continue
		}
		s.add(node, uint8(event), x)
		if s.n == lookups {
			b.totals.add(&s)
		}
	}
	b.totals.add(&s)
}

// finishTotals makes of the sums what builders of columns count sample by sample, and
// what queries sum up.
func (b *builder) finishTotals() {
	p, t := b.p, b.totals
	b.sites.hold(len(b.nodes.Parent))
	sites := make([]uint32, len(t.sums))
	for i := range t.sums {
		k := &t.sums[i].totalKey
		sites[i] = b.sites.intern(Site{k.node, k.stop, k.kernel, k.centres})
	}
	p.Totals = make([]Totals, len(p.Events))
	for i := range p.Totals {
		p.Totals[i].Weight, p.Totals[i].Count = make([]uint64, len(b.sites.sites)), make([]uint64, len(b.sites.sites))
	}
	for i, site := range sites {
		sum := &t.sums[i]
		s, e := &p.Totals[sum.event], &p.Events[sum.event]
		s.Weight[site], s.Count[site] = SatAdd(s.Weight[site], sum.weight), s.Count[site]+sum.count
		s.Total, s.Samples = SatAdd(s.Total, sum.weight), s.Samples+sum.count
		e.Samples, e.Weight = s.Samples, s.Total
		e.Stops[min(int(sum.stop), len(e.Stops)-1)] += sum.count
		e.countTops(sum.top, sum.count)
		b.centreSamples(sum.centres, sum.count)
		p.nsamples += int(sum.count)
	}
}

package profile

import (
	"iter"
	"runtime"
	"sync"
	"sync/atomic"

	"ccagent/profile/columns"
)

// siteSums are weights and counts by site.
type siteSums struct {
	weight, count []uint64
	total         uint64
	samples       uint64
	cells         *batchCells // of these and possibly more sites; nil for a log of totals
}

// sums returns an event's sums by site over the whole log. A selection that chooses
// stacks only is computed from them, without another scan of the samples.
func (p *Profile) sums(event int) *siteSums {
	l := &p.scanned
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sums == nil {
		l.sums = make(map[int]*siteSums)
	}
	s := l.sums[event]
	switch {
	case s != nil:
	case p.Totals != nil:
		t := &p.Totals[event]
		s = &siteSums{weight: t.Weight, count: t.Count, total: t.Total, samples: t.Samples}
	default:
		q := p.contextsOf(&Filter{}, event)
		s = p.sum(&q)
	}
	l.sums[event] = s
	return s
}

// chunks returns the samples. It panics for a log of totals.
func (p *Profile) chunks() []*columns.Chunk {
	if p.Totals != nil {
		panic("profile: a log that OpenTotals read was asked for its samples; Open reads them")
	}
	return p.Chunks
}

// scanned caches results of scanning all samples. It has a lock because a Profile may be
// used by any number of goroutines.
type scanned struct {
	mu     sync.Mutex
	sums   map[int]*siteSums
	spans  []Range  // by chunk: its first and last time
	grids  []*asked // the most recently used is last
	making bool     // a grid is being made
	beside sync.WaitGroup
}

// chunkSpans returns the time range of each chunk, From ≤ t ≤ To.
func (p *Profile) chunkSpans() []Range {
	l := &p.scanned
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spans == nil {
		l.spans = make([]Range, len(p.chunks()))
		for i, c := range p.chunks() {
			r := Range{From: ^uint64(0)}
			for _, t := range c.Time[:c.N] {
				r.From, r.To = min(r.From, t), max(r.To, t)
			}
			l.spans[i] = r
		}
	}
	return l.spans
}

// within returns the chunks that may have samples in a range.
func (p *Profile) within(r Range) []*columns.Chunk {
	if r == (Range{}) {
		return p.chunks()
	}
	var out []*columns.Chunk
	for i, s := range p.chunkSpans() {
		if s.To >= r.From && (r.To == 0 || s.From < r.To) {
			out = append(out, p.Chunks[i])
		}
	}
	return out
}

// workers returns the number of goroutines to scan a number of samples with, if each
// goroutine needs the given number of bytes.
func workers(samples, bytes int) int {
	const worth, most = 1 << 18, 64 << 20
	return max(1, min(runtime.GOMAXPROCS(0), samples/worth, most/max(1, bytes), 8))
}

// parallel calls f for i from 0 to n−1 on k goroutines. f receives the number of its
// goroutine.
func parallel(k, n int, f func(worker, i int)) {
	if k <= 1 {
		for i := range n {
			f(0, i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for w := range k {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(w, i)
			}
		})
	}
	wg.Wait()
}

// ofEvent reports whether a predicate restricts only the event.
func (q *samplePredicate) ofEvent() bool { return q.ofStacks() && q.sites == nil }

// ofStacks reports whether a predicate restricts only the event and stacks.
func (q *samplePredicate) ofStacks() bool {
	return q.rng == (Range{}) && !q.narrow
}

// sift returns the sums of the sites that are kept. It does not change s.
func (s *siteSums) sift(sites []bool) *siteSums {
	if sites == nil {
		return s
	}
	out := &siteSums{weight: make([]uint64, len(s.weight)), count: make([]uint64, len(s.count)), cells: s.cells}
	for site, keep := range sites {
		if keep && s.count[site] > 0 {
			out.weight[site], out.count[site] = s.weight[site], s.count[site]
			out.samples += s.count[site]
			out.total = columns.SatAdd(out.total, s.weight[site])
		}
	}
	return out
}

// EachSample yields the selection's samples in the order of the log.
func (s *Selection) EachSample() iter.Seq2[columns.SiteID, columns.Sample] {
	return func(yield func(columns.SiteID, columns.Sample) bool) {
		if s.Event < 0 {
			return
		}
		p := s.Profile
		for k, c := range p.chunks() {
			for i := 0; i < c.N; i++ {
				if s.pred.keep(c, i) && !yield(columns.SiteID(c.Site[i]), p.Sample(k*columns.ChunkSize+i)) {
					return
				}
			}
		}
	}
}

// Keeps reports whether the selection has the i-th sample of the log.
func (s *Selection) Keeps(i int) bool {
	return s.Event >= 0 && s.pred.keep(s.Profile.chunks()[i/columns.ChunkSize], i%columns.ChunkSize)
}

package profile

import (
	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Window is a time range divided into buckets of equal length. The last may extend beyond
// To.
type Window struct {
	From, To, Step uint64 // ns
	Buckets        int    // at least 1, at most 1<<16
}

// bucket returns the bucket of a time in the window.
func (w *Window) bucket(t uint64) int { return min(int((t-w.From)/w.Step), w.Buckets-1) }

// inWindow returns the chunks that may have samples in a window, and the predicate that keeps those of q's
// contexts in it, whatever their sites.
func (p *Profile) inWindow(q *samplePredicate, w Window) ([]*columns.Chunk, samplePredicate) {
	window := *q
	window.sites, window.rng = nil, Range{From: w.From, To: w.To}
	if w.To <= w.From {
		return nil, window
	}
	return p.within(window.rng), window
}

// What a scan knows of a site: whether its samples are kept, whether they are marked, and their category.
const (
	siteKept   = 1 << 7
	siteMarked = 1 << 6
	siteIs     = siteMarked - 1
)

// scan adds up the samples of a window that a predicate's contexts keep, of the sites in keep, or all if
// that is nil. It goes through them once, in the order of the log.
func (p *Profile) scan(q *samplePredicate, keep, marked []bool, w Window) *Bucketed {
	chunks, window := p.inWindow(q, w)
	caps, ids := p.capNumbers()
	sites := make([]uint8, len(p.Sites))
	for i, cat := range p.siteCategories() {
		sites[i] = uint8(cat)
		if keep == nil || keep[i] {
			sites[i] |= siteKept
		}
		if marked != nil && marked[i] {
			sites[i] |= siteMarked
		}
	}
	k := workers(len(chunks)*columns.ChunkSize, 8*w.Buckets*len(ids)*Categories)
	parts := make([]scanPart, k)
	for i := range parts {
		parts[i] = scanPart{newGridSums(w.Buckets, len(ids)), make([]uint64, w.Buckets)}
	}
	parallel(k, len(chunks), func(worker, i int) { parts[worker].add(&window, w, chunks[i], sites, caps) })
	all := parts[0]
	for _, part := range parts[1:] {
		all.merge(part)
	}
	out := all.bucketed(ids)
	if marked != nil {
		out.Marked = all.marked
	}
	return out
}

// scanPart is what a goroutine adds up.
type scanPart struct {
	*gridSums
	marked []uint64 // by bucket
}

func (s *scanPart) add(window *samplePredicate, w Window, c *columns.Chunk, sites []uint8, caps []uint16) {
	b, from, to := 0, uint64(1), uint64(0) // the last sample's bucket, and its time; most follow within it
	for j := range c.N {
		of := sites[c.Site[j]]
		if of&siteKept == 0 || !window.keep(c, j) {
			continue
		}
		if t := c.Time[j]; t < from || t >= to {
			b = w.bucket(t)
			from = w.From + uint64(b)*w.Step
			if to = from + w.Step; b == w.Buckets-1 || to < from {
				to = ^uint64(0)
			}
		}
		weight := c.Weight(j)
		by := &s.weight[caps[c.Context[j]]][of&siteIs]
		if *by == nil {
			*by = make([]uint64, w.Buckets)
		}
		(*by)[b] = columns.SatAdd((*by)[b], weight)
		s.samples[b]++
		if of&siteMarked != 0 {
			s.marked[b] = columns.SatAdd(s.marked[b], weight)
		}
	}
}

func (s *scanPart) merge(o scanPart) {
	for b := range s.samples {
		s.samples[b] += o.samples[b]
		s.marked[b] = columns.SatAdd(s.marked[b], o.marked[b])
	}
	for c := range s.weight {
		for cat, ws := range o.weight[c] {
			by := &s.weight[c][cat]
			if *by == nil {
				*by = ws
				continue
			}
			for b, w := range ws {
				(*by)[b] = columns.SatAdd((*by)[b], w)
			}
		}
	}
}

// Categories is the number of eventlog.Category values.
const Categories = int(eventlog.CategoryKernel) + 1

// CapWeight is the weight of the samples of one capability, or of samples without one.
type CapWeight struct {
	Cap        uint32 // or eventlog.NoCapability
	Weight     uint64
	ByCategory [Categories][]uint64 // weight by bucket; nil where all are 0
}

package profile

import (
	"slices"
	"sync"

	"ccagent/profile/columns"
	"ccagent/profile/interval"
)

// Sure says how sure a row's figures are.
type Sure struct {
	interval.Interval // of the row's share
	// Tied is set if the row's order after the row before it is within noise.
	Tied bool
}

// Batched is a selection's samples in batches of time: see package interval. Of a log of
// totals, which does not have the times of samples, nothing is known: all intervals are
// from 0 to 1.
type Batched struct {
	interval.Whole
	s     *Selection
	cells *batchCells
}

// Batched returns the selection's samples in batches.
func (s *Selection) Batched() *Batched {
	s.batched.once.Do(func() {
		b := &Batched{s: s, cells: s.cells}
		if b.cells == nil { // no event, or a log of totals
			b.cells = &batchCells{start: make([]uint32, len(s.Count)+1), squares: make([]float64, len(s.Count))}
		}
		b.Reset(&b.Part)
		for site, n := range s.Count {
			if n > 0 {
				b.cells.add(&b.Part, uint32(site))
				b.Samples += n
			}
		}
		s.batched.b = b
	})
	return s.batched.b
}

// Reset makes a part empty.
func (b *Batched) Reset(p *interval.Part) { p.Reset(b.cells.batches) }

// Add adds the selection's samples of a site, which the part must not have, to a part.
func (b *Batched) Add(p *interval.Part, site columns.SiteID) {
	if n := b.s.Count[site]; n > 0 {
		b.cells.add(p, uint32(site))
		p.Samples += n
	}
}

// Sum sums up the selection's samples of sites, which must be different ones, into p.
func (b *Batched) Sum(p *interval.Part, sites []columns.SiteID) {
	b.Reset(p)
	for _, site := range sites {
		b.Add(p, site)
	}
}

// Of returns the interval of the share that the samples of different sites have.
func (b *Batched) Of(sites []columns.SiteID) interval.Interval {
	var p interval.Part
	b.Sum(&p, sites)
	return b.Share(&p)
}

// List returns how sure rows are that are listed one after the other, largest share first.
// Each is given by the sites whose samples it has, in ascending order.
func (b *Batched) List(rows [][]columns.SiteID) []Sure {
	out := make([]Sure, len(rows))
	var now, before, shared interval.Part
	for i, sites := range rows {
		b.Sum(&now, sites)
		out[i].Interval = b.Share(&now)
		if i > 0 && before.Weight > 0 {
			b.Sum(&shared, common(rows[i-1], sites))
			out[i].Tied = !b.Ordered(&before, &now, &shared)
		}
		now, before = before, now
	}
	return out
}

// common returns the sites that are in both of two ascending lists.
func common(a, b []columns.SiteID) []columns.SiteID {
	var out []columns.SiteID
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			out = append(out, a[i])
			i, j = i+1, j+1
		}
	}
	return out
}

// Sure returns how sure the first n rows of a level are, in the order of Hot.
func (s *Selection) Sure(level Level, n int) []Sure {
	return s.SureOf(level, s.Hot(level).IDs(n))
}

// SureOf returns how sure the shares of different elements of a level are that are listed in
// this order.
func (s *Selection) SureOf(level Level, ids []ElementID) []Sure {
	rows := make([]ElementAt, len(ids))
	for i, id := range ids {
		rows[i] = ElementAt{Level: level, ID: id, First: i == 0}
	}
	return s.SureEach(rows)
}

// ElementAt is an element in a list of rows of several levels.
type ElementAt struct {
	Level Level
	ID    ElementID
	First bool // of its list: it is compared with none
}

// SureEach returns how sure the shares of elements are. Each is compared with the one before
// it, unless it is the first of its list.
func (s *Selection) SureEach(rows []ElementAt) []Sure {
	sites := make([][]columns.SiteID, len(rows))
	for level := range levels {
		if !slices.ContainsFunc(rows, func(r ElementAt) bool { return r.Level == level }) {
			continue
		}
		ix := s.index(level)
		first := make([]int32, len(ix.elements)) // 1 + the element's first row
		next := make([]int32, len(rows))         // 1 + the row after that of the same element
		for i, r := range rows {
			if r.Level == level {
				next[i], first[r.ID] = first[r.ID], int32(i+1)
			}
		}
		for site, count := range s.Count {
			if count == 0 {
				continue
			}
			at, _ := s.leafElements(ix, site)
			for _, id := range at {
				for r := first[id]; r > 0; r = next[r-1] {
					sites[r-1] = append(sites[r-1], columns.SiteID(site))
				}
			}
		}
	}
	out := s.Batched().List(sites)
	for i, r := range rows {
		out[i].Tied = out[i].Tied && !r.First
	}
	return out
}

// batchCells is the weight of samples by site and batch. It is independent of the choice of
// stacks.
type batchCells struct {
	batches int
	start   []uint32 // by site; its cells are start[site] to start[site+1]
	batch   []uint8
	weight  []float64
	squares []float64 // by site: the sum of its samples' squared weights
}

func (c *batchCells) add(p *interval.Part, site uint32) {
	for i := c.start[site]; i < c.start[site+1]; i++ {
		w := c.weight[i]
		p.Batch[c.batch[i]] += w
		p.Weight += w
	}
	p.Squares += c.squares[site]
}

// siteSum is the sum of a site's samples in a batch. It is small, so that those of many
// sites stay in a CPU's cache.
type siteSum struct {
	weight  uint64
	count   uint32
	squares float32 // in units of squareUnit
}

// squareUnit keeps the squares of all weights, and their sums, within a float32.
const squareUnit = 1 << 40

// batchPart is what a goroutine adds up samples in.
type batchPart struct {
	sums    []siteSum // by site: of the current batch
	touched []uint32  // the sites with samples in it
}

// batchOf is the sums of a batch by site.
type batchOf []struct {
	site uint32
	siteSum
}

// sum adds up the samples that a predicate's contexts and range keep, by site and in
// batches. It ignores the predicate's sites; the caller applies them. Batches are of equal
// numbers of samples, in the order of the log, in which the agent merges samples by time.
func (p *Profile) sum(q *samplePredicate) *siteSums {
	window := *q
	window.sites = nil
	chunks := p.within(window.rng)
	counts := p.keptBefore(&window, chunks)
	n := counts[len(chunks)]
	batches := make([]batchOf, min(interval.Batches, n))
	k := min(workers(n, 16*len(p.Sites)), max(1, len(batches)))
	parts := make([]batchPart, k)
	parallel(k, len(batches), func(w, b int) {
		if parts[w].sums == nil {
			parts[w].sums = make([]siteSum, len(p.Sites))
		}
		batches[b] = parts[w].add(&window, chunks, counts, n*b/len(batches), n*(b+1)/len(batches))
	})
	return p.transposed(batches)
}

// keptBefore returns the number of samples that a predicate keeps before each of some
// chunks, and after the last.
func (p *Profile) keptBefore(q *samplePredicate, chunks []*columns.Chunk) []int {
	out := make([]int, len(chunks)+1)
	every := q.everything(p)
	parallel(workers(len(chunks)*columns.ChunkSize, 0), len(chunks), func(_, i int) {
		c := chunks[i]
		if every {
			out[i+1] = c.N
			return
		}
		n := 0
		for j := range c.N {
			if q.keep(c, j) {
				n++
			}
		}
		out[i+1] = n
	})
	for i := range chunks {
		out[i+1] += out[i]
	}
	return out
}

// everything reports whether a predicate keeps all samples of the log.
func (q *samplePredicate) everything(p *Profile) bool { return q.ofEvent() && len(p.Events) == 1 }

// add adds up the kept samples from a number to another. before is as of keptBefore.
func (part *batchPart) add(q *samplePredicate, chunks []*columns.Chunk, before []int, from, to int) batchOf {
	onlyEvent := q.ofEvent()
	i, found := slices.BinarySearch(before, from)
	if !found {
		i--
	}
	part.touched = part.touched[:0]
	for at := before[i]; at < to; i++ {
		c := chunks[i]
		j, all := 0, before[i+1]-before[i] == c.N
		if all && at < from {
			j, at = from-at, from
		}
		for ; j < c.N && at < to; j++ {
			if all {
			} else if onlyEvent {
				if !q.contexts[c.Context[j]] {
					continue
				}
			} else if !q.keep(c, j) {
				continue
			}
			if at++; at <= from {
				continue
			}
			w, x := c.Weight(j), &part.sums[c.Site[j]]
			if x.count == 0 {
				part.touched = append(part.touched, c.Site[j])
			}
			x.weight = columns.SatAdd(x.weight, w)
			x.count++
			scaled := float32(w) / (1 << 20)
			x.squares += scaled * scaled
		}
	}
	// Sums in the order of sites are read faster afterwards.
	if 8*len(part.touched) > len(part.sums) {
		part.touched = part.touched[:0]
		for site := range part.sums {
			if part.sums[site].count > 0 {
				part.touched = append(part.touched, uint32(site))
			}
		}
	} else {
		slices.Sort(part.touched)
	}
	out := make(batchOf, len(part.touched))
	for k, site := range part.touched {
		out[k].site, out[k].siteSum = site, part.sums[site]
		part.sums[site] = siteSum{}
	}
	return out
}

// transposed sorts the sums of batches by site.
func (p *Profile) transposed(batches []batchOf) *siteSums {
	n := len(p.Sites)
	out := &siteSums{weight: make([]uint64, n), count: make([]uint64, n)}
	c := &batchCells{batches: len(batches), start: make([]uint32, n+1), squares: make([]float64, n)}
	for _, es := range batches {
		for i := range es {
			c.start[es[i].site+1]++
		}
	}
	for i := range n {
		c.start[i+1] += c.start[i]
	}
	c.batch, c.weight = make([]uint8, c.start[n]), make([]float64, c.start[n])
	next := slices.Clone(c.start)
	for b, es := range batches {
		for i := range es {
			e := &es[i]
			at := next[e.site]
			next[e.site]++
			c.batch[at], c.weight[at] = uint8(b), float64(e.weight)
			c.squares[e.site] += float64(e.squares) * squareUnit
			out.weight[e.site] = columns.SatAdd(out.weight[e.site], e.weight)
			out.count[e.site] += uint64(e.count)
		}
		batches[b] = nil
	}
	for site, n := range out.count {
		out.samples += n
		out.total = columns.SatAdd(out.total, out.weight[site])
	}
	out.cells = c
	return out
}

// batchedOnce holds a selection's batches, which are computed once.
type batchedOnce struct {
	once sync.Once
	b    *Batched
}

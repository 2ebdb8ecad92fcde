package profile

import (
	"cmp"
	"fmt"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Window is a time range divided into buckets of equal length. The last may extend beyond
// To.
type Window struct {
	From, To, Step uint64 // ns
	Buckets        int    // at least 1, at most 1<<16
}

// Bucketed is a selection's weight in each bucket of a window.
type Bucketed struct {
	Weight  []uint64
	Samples []uint64
	Marked  []uint64 // of the marked sites only; nil if marked was nil
	Caps    []CapWeight
}

// Over returns the weight in each bucket of an event, given by its position in
// Profile.Events, for the stacks and threads that the selection keeps. The window
// replaces the selection's own time range. marked is by site, or nil.
func (s *Selection) Over(event int, w Window, marked []bool) *Bucketed {
	p := s.Profile
	q := p.contextsOf(&s.Filter, event)
	g := p.gridOf(&q, &s.Filter, w.From, w.To, w.Step, w.Buckets)
	sums := g.sums(s.pred.sites, p.siteCategories())
	out := &Bucketed{Samples: slices.Clone(sums.samples)}
	out.Weight = g.rows(sums, &out.Caps)
	if marked != nil {
		out.Marked = g.weights(s.pred.sites, marked, out.Weight)
	}
	slices.SortFunc(out.Caps, func(a, b CapWeight) int { return cmp.Compare(a.Cap, b.Cap) })
	return out
}

// grid summarises an event's samples in a window: for each site, its samples in each
// bucket and on each capability. It is independent of the choice of stacks; only another
// window, event or choice of threads requires scanning the samples again.
type grid struct {
	key     string
	buckets int
	caps    []uint32 // by a cell's cap: the capability
	start   []int    // by site; its cells are start[site] to start[site+1]
	cells   []gridCell
	all     *gridSums
}

type gridCell struct {
	weight uint64
	count  uint32
	bucket uint16
	cap    uint16
}

// gridSums are the sums of a grid's cells.
type gridSums struct {
	samples []uint64 // by bucket
	// weight is indexed by capability (its position in the grid's caps), category and
	// bucket; nil if no site of the category was added.
	weight    [][Categories][]uint64
	saturated bool // a sum overflowed, so subtracting cells would give wrong sums
}

// maxGrids is the number of grids cached: the windows on screen and before it, each for
// two events.
const maxGrids = 4

// gridOf returns the grid of the samples that a predicate's contexts keep, in n buckets.
// It ignores the predicate's sites; the caller applies them.
func (p *Profile) gridOf(q *samplePredicate, f *Filter, from, to, step uint64, n int) *grid {
	key := fmt.Sprint(q.event, from, to, n, f.Threads, f.TIDs, f.PIDs, f.Caps, f.CPUs)
	l := &p.scanned
	l.mu.Lock()
	for i, g := range l.grids {
		if g.key == key {
			l.grids = append(append(l.grids[:i:i], l.grids[i+1:]...), g)
			l.mu.Unlock()
			return g
		}
	}
	l.mu.Unlock()
	g := p.newGrid(q, from, to, step, n)
	g.key = key
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.grids) == maxGrids {
		l.grids = l.grids[1:]
	}
	l.grids = append(l.grids[:len(l.grids):len(l.grids)], g)
	return g
}

func (p *Profile) newGrid(q *samplePredicate, from, to, step uint64, n int) *grid {
	window := *q
	window.sites, window.rng = nil, Range{From: from, To: to}
	var chunks []*columns.Chunk
	if to > from {
		chunks = p.within(window.rng)
	}
	bucket := func(t uint64) int { return min(int((t-from)/step), n-1) }

	// Sort the samples by bucket, as chunk and index in the chunk. Chunks are counted
	// in parallel, which gives each the positions to write its own samples to.
	k := workers(len(chunks)*columns.ChunkSize, 0)
	counts := make([][]uint32, len(chunks))
	parallel(k, len(chunks), func(_, i int) {
		c := chunks[i]
		counts[i] = make([]uint32, n)
		for j := range c.N {
			if window.keep(c, j) {
				counts[i][bucket(c.Time[j])]++
			}
		}
	})
	starts := make([]int, n+1)
	for b := range n {
		at := starts[b]
		for i := range chunks {
			had := counts[i][b]
			counts[i][b] = uint32(at)
			at += int(had)
		}
		starts[b+1] = at
	}
	order := make([]uint32, starts[n])
	parallel(k, len(chunks), func(_, i int) {
		c := chunks[i]
		for j := range c.N {
			if window.keep(c, j) {
				b := bucket(c.Time[j])
				order[counts[i][b]] = uint32(i)*columns.ChunkSize + uint32(j)
				counts[i][b]++
			}
		}
	})

	// Combine the samples of a bucket that agree in site and capability.
	k = workers(len(order), 8*len(p.Sites))
	slots := make([]gridSlots, k)
	byBucket := make([][]gridEntry, n)
	parallel(k, n, func(w, b int) {
		s := &slots[w]
		if s.head == nil {
			s.head = make([]uint32, len(p.Sites))
		}
		var out []gridEntry
		s.next = s.next[:0]
		for _, at := range order[starts[b]:starts[b+1]] {
			c, j := chunks[at/columns.ChunkSize], at%columns.ChunkSize
			site, cp := c.Site[j], p.Contexts[c.Context[j]].Cap
			e := s.head[site]
			for e != 0 && out[e-1].cap != cp {
				e = s.next[e-1]
			}
			if e == 0 {
				out = append(out, gridEntry{site: site, cap: cp})
				s.next = append(s.next, s.head[site])
				e = uint32(len(out))
				s.head[site] = e
			}
			x := &out[e-1]
			x.weight = columns.SatAdd(x.weight, c.Weight(int(j)))
			x.count++
		}
		for i := range out {
			s.head[out[i].site] = 0
		}
		byBucket[b] = out
	})
	return p.transpose(byBucket, n)
}

// gridEntry is what combined samples of a bucket agree in, with their sum.
type gridEntry struct {
	weight uint64
	count  uint32
	site   uint32
	cap    uint16
}

// transpose sorts entries by site.
func (p *Profile) transpose(byBucket [][]gridEntry, n int) *grid {
	g := &grid{buckets: n, start: make([]int, len(p.Sites)+1)}
	caps := make(map[uint16]uint16)
	for _, es := range byBucket {
		for i := range es {
			g.start[es[i].site+1]++
			if _, ok := caps[es[i].cap]; !ok {
				caps[es[i].cap] = uint16(len(g.caps))
				g.caps = append(g.caps, uint32(es[i].cap))
			}
		}
	}
	for i := range p.Sites {
		g.start[i+1] += g.start[i]
	}
	g.cells = make([]gridCell, g.start[len(p.Sites)])
	next := slices.Clone(g.start)
	for b, es := range byBucket {
		for i := range es {
			e := &es[i]
			g.cells[next[e.site]] = gridCell{e.weight, e.count, uint16(b), caps[e.cap]}
			next[e.site]++
		}
	}
	g.all = g.empty()
	cats := p.siteCategories()
	for site := range p.Sites {
		g.add(g.all, site, cats[site])
	}
	for _, by := range g.all.weight {
		for _, ws := range by {
			g.all.saturated = g.all.saturated || slices.Contains(ws, ^uint64(0))
		}
	}
	return g
}

func (g *grid) empty() *gridSums {
	return &gridSums{samples: make([]uint64, g.buckets), weight: make([][Categories][]uint64, len(g.caps))}
}

func (g *grid) add(s *gridSums, site int, cat eventlog.Category) {
	for i := g.start[site]; i < g.start[site+1]; i++ {
		c := &g.cells[i]
		s.samples[c.bucket] += uint64(c.count)
		by := &s.weight[c.cap][cat]
		if *by == nil {
			*by = make([]uint64, g.buckets)
		}
		(*by)[c.bucket] = columns.SatAdd((*by)[c.bucket], c.weight)
	}
}

func (g *grid) remove(s *gridSums, site int, cat eventlog.Category) {
	for i := g.start[site]; i < g.start[site+1]; i++ {
		c := &g.cells[i]
		s.samples[c.bucket] -= uint64(c.count)
		s.weight[c.cap][cat][c.bucket] -= c.weight
	}
}

// sums adds up the cells of the sites that are kept; nil keeps all. The result must not
// be changed. It visits either the kept sites or the others, whichever are fewer.
func (g *grid) sums(keep []bool, cats []eventlog.Category) *gridSums {
	if keep == nil {
		return g.all
	}
	kept := 0
	for site, ok := range keep {
		if ok {
			kept += g.start[site+1] - g.start[site]
		}
	}
	out := g.empty()
	if 2*kept <= len(g.cells) || g.all.saturated {
		for site, ok := range keep {
			if ok {
				g.add(out, site, cats[site])
			}
		}
		return out
	}
	copy(out.samples, g.all.samples)
	for c := range out.weight {
		for cat, ws := range g.all.weight[c] {
			out.weight[c][cat] = slices.Clone(ws)
		}
	}
	for site, ok := range keep {
		if !ok {
			g.remove(out, site, cats[site])
		}
	}
	return out
}

// weights adds up, by bucket, the sites that are both kept and marked. total is the sum
// of all kept sites.
func (g *grid) weights(keep, marked []bool, total []uint64) []uint64 {
	cells := [2]int{}
	for site, m := range marked {
		if keep == nil || keep[site] {
			cells[b2i(m)] += g.start[site+1] - g.start[site]
		}
	}
	out := make([]uint64, g.buckets)
	few := cells[1] <= cells[0] || g.all.saturated
	for site, m := range marked {
		if keep != nil && !keep[site] || m != few {
			continue
		}
		for i := g.start[site]; i < g.start[site+1]; i++ {
			c := &g.cells[i]
			out[c.bucket] = columns.SatAdd(out[c.bucket], c.weight)
		}
	}
	if !few {
		for b := range out {
			out[b] = total[b] - out[b]
		}
	}
	return out
}

// rows returns the weight of sums by bucket, and sets caps to the capabilities with any
// weight.
func (g *grid) rows(s *gridSums, caps *[]CapWeight) []uint64 {
	total := make([]uint64, g.buckets)
	for c, by := range s.weight {
		r := CapWeight{Cap: g.caps[c]}
		for cat, ws := range by {
			sum := uint64(0)
			for b, w := range ws {
				total[b] = columns.SatAdd(total[b], w)
				sum = columns.SatAdd(sum, w)
			}
			if sum > 0 {
				r.ByCategory[cat] = ws
				r.Weight = columns.SatAdd(r.Weight, sum)
			}
		}
		if r.Weight > 0 {
			*caps = append(*caps, r)
		}
	}
	return total
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// gridSlots find the entries of a site. head (by site) and next (by entry) are 1 + an
// entry's index; 0 means none.
type gridSlots struct{ head, next []uint32 }

// Categories is the number of eventlog.Category values.
const Categories = int(eventlog.CategoryKernel) + 1

// CapWeight is the weight of the samples of one capability, or of samples without one.
type CapWeight struct {
	Cap        uint32 // or eventlog.NoCapability
	Weight     uint64
	ByCategory [Categories][]uint64 // weight by bucket; nil where all are 0
}

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

// At most maxGrids grids are kept: of the windows on screen and before it, each for two events; and no more
// than have maxCells cells (200 MB), but always the last.
const (
	maxGrids = 4
	maxCells = 12 << 20
)

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
	l.makeRoom(maxGrids-1, maxCells/2) // before the next is made
	l.mu.Unlock()
	g := p.newGrid(q, from, to, step, n)
	g.key = key
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grids = append(l.grids[:len(l.grids):len(l.grids)], g)
	l.makeRoom(maxGrids, maxCells)
	return g
}

// makeRoom drops the oldest grids, but not the last, until there are few enough with few enough cells.
func (l *scanned) makeRoom(grids, cells int) {
	has := 0
	for _, g := range l.grids {
		has += len(g.cells)
	}
	for len(l.grids) > 1 && (len(l.grids) > grids || has > cells) {
		has -= len(l.grids[0].cells)
		l.grids = l.grids[1:]
	}
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

	return p.gather(chunks, order, starts)
}

// gather makes a grid of samples, given as chunk and index in the chunk, by bucket.
func (p *Profile) gather(chunks []*columns.Chunk, order []uint32, starts []int) *grid {
	n := len(starts) - 1
	g := &grid{buckets: n, start: make([]int, len(p.Sites)+1)}
	caps := p.capNumbers(g)

	// Count the cells of each site: by capability, of which the first 64 are told apart.
	type mark struct {
		caps   uint64 // seen in the bucket
		bucket int    // 1 + the last one seen
	}
	marks := make([]mark, len(p.Sites))
	for b := range n {
		for _, at := range order[starts[b]:starts[b+1]] {
			c, j := chunks[at/columns.ChunkSize], at%columns.ChunkSize
			m := &marks[c.Site[j]]
			if m.bucket != b+1 {
				*m = mark{bucket: b + 1}
			}
			if bit := uint64(1) << caps[c.Context[j]]; bit == 0 || m.caps&bit == 0 {
				m.caps |= bit
				g.start[c.Site[j]+1]++
			}
		}
	}
	for i := range p.Sites {
		g.start[i+1] += g.start[i]
	}

	// A site's cells are in the order of buckets. Those that are left over stay empty.
	g.cells = make([]gridCell, g.start[len(p.Sites)])
	next := slices.Clone(g.start)
	for b := range n {
		for _, at := range order[starts[b]:starts[b+1]] {
			c, j := chunks[at/columns.ChunkSize], at%columns.ChunkSize
			site, cp := c.Site[j], caps[c.Context[j]]
			i := next[site] - 1
			for i >= g.start[site] && int(g.cells[i].bucket) == b && g.cells[i].cap != cp {
				i--
			}
			if i < g.start[site] || int(g.cells[i].bucket) != b {
				i = next[site]
				next[site]++
				g.cells[i] = gridCell{bucket: uint16(b), cap: cp}
			}
			x := &g.cells[i]
			x.weight = columns.SatAdd(x.weight, c.Weight(int(j)))
			x.count++
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

// capNumbers sets a grid's capabilities, and returns the position there of each context's.
func (p *Profile) capNumbers(g *grid) []uint16 {
	known := make(map[uint16]uint16)
	out := make([]uint16, len(p.Contexts))
	for i := range p.Contexts {
		c := p.Contexts[i].Cap
		at, ok := known[c]
		if !ok {
			at = uint16(len(g.caps))
			known[c] = at
			g.caps = append(g.caps, uint32(c))
		}
		out[i] = at
	}
	return out
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

// Categories is the number of eventlog.Category values.
const Categories = int(eventlog.CategoryKernel) + 1

// CapWeight is the weight of the samples of one capability, or of samples without one.
type CapWeight struct {
	Cap        uint32 // or eventlog.NoCapability
	Weight     uint64
	ByCategory [Categories][]uint64 // weight by bucket; nil where all are 0
}

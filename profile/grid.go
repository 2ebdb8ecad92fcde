package profile

import (
	"cmp"
	"fmt"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

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
	g := p.gridOf(&q, &s.Filter, w)
	if g == nil {
		return p.scan(&q, s.pred.sites, marked, w)
	}
	sums := g.sums(s.pred.sites, p.siteCategories())
	out := sums.bucketed(g.caps)
	if marked != nil {
		out.Marked = g.weights(s.pred.sites, marked, out.Weight)
	}
	return out
}

// grid summarises an event's samples in a window: for each site, its samples in each
// bucket and on each capability. It is independent of the choice of stacks; only another
// window, event or choice of threads requires scanning the samples again.
type grid struct {
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

// scansFirst is how often a window is scanned before a grid of it is made. That takes as much CPU time
// as a dozen scans, so it is not done for a first picture, but once somebody moves about in a window.
const scansFirst = 2

// asked is a window that was asked for, with its grid once that is ready.
type asked struct {
	key   string
	times int
	*grid
}

// gridOf returns the grid of the samples that a predicate's contexts keep, or nil if the samples are to be
// scanned: the first times, and while the grid is being made, which is done beside.
// It ignores the predicate's sites; the caller applies them.
func (p *Profile) gridOf(q *samplePredicate, f *Filter, w Window) *grid {
	key := fmt.Sprint(q.event, w.From, w.To, w.Buckets, f.Threads, f.TIDs, f.PIDs, f.Caps, f.CPUs)
	l := &p.scanned
	l.mu.Lock()
	defer l.mu.Unlock()
	a := &asked{key: key}
	if i := slices.IndexFunc(l.grids, func(a *asked) bool { return a.key == key }); i >= 0 {
		a = l.grids[i]
		l.grids = slices.Delete(l.grids, i, i+1)
	}
	l.grids = append(l.grids, a)
	l.makeRoom(maxCells)
	if a.times++; a.grid == nil && a.times > scansFirst && !l.making {
		l.making = true
		l.makeRoom(maxCells / 2)
		l.beside.Go(func() {
			made := p.newGrid(q, w)
			l.mu.Lock()
			defer l.mu.Unlock()
			a.grid, l.making = made, false
			l.makeRoom(maxCells)
		})
	}
	return a.grid
}

// makeRoom drops the oldest grids, but not the last, until there are few enough with few enough cells.
func (l *scanned) makeRoom(cells int) {
	has := 0
	for _, g := range l.grids {
		has += g.size()
	}
	for len(l.grids) > 1 && (len(l.grids) > maxGrids || has > cells) {
		has -= l.grids[0].size()
		l.grids = slices.Delete(l.grids, 0, 1)
	}
}

func (a *asked) size() int {
	if a.grid == nil {
		return 0
	}
	return len(a.cells)
}

// newGrid makes a grid, on one goroutine: others answer the user meanwhile.
func (p *Profile) newGrid(q *samplePredicate, w Window) *grid {
	chunks, window := p.inWindow(q, w)
	// Sort the samples by bucket, as chunk and index in the chunk.
	starts := make([]int, w.Buckets+1)
	for _, c := range chunks {
		for j := range c.N {
			if window.keep(c, j) {
				starts[w.bucket(c.Time[j])+1]++
			}
		}
	}
	for b := range w.Buckets {
		starts[b+1] += starts[b]
	}
	order, next := make([]uint32, starts[w.Buckets]), slices.Clone(starts)
	for i, c := range chunks {
		for j := range c.N {
			if window.keep(c, j) {
				b := w.bucket(c.Time[j])
				order[next[b]] = uint32(i)*columns.ChunkSize + uint32(j)
				next[b]++
			}
		}
	}
	return p.gather(chunks, order, starts)
}

// gather makes a grid of samples, given as chunk and index in the chunk, by bucket.
func (p *Profile) gather(chunks []*columns.Chunk, order []uint32, starts []int) *grid {
	n := len(starts) - 1
	caps, ids := p.capNumbers()
	g := &grid{buckets: n, caps: ids, start: make([]int, len(p.Sites)+1)}

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

// capNumbers numbers capabilities: it returns that of each context's, and the capabilities.
func (p *Profile) capNumbers() (of []uint16, ids []uint32) {
	known := make(map[uint16]uint16)
	of = make([]uint16, len(p.Contexts))
	for i := range p.Contexts {
		c := p.Contexts[i].Cap
		at, ok := known[c]
		if !ok {
			at = uint16(len(ids))
			known[c] = at
			ids = append(ids, uint32(c))
		}
		of[i] = at
	}
	return of, ids
}

func (g *grid) empty() *gridSums { return newGridSums(g.buckets, len(g.caps)) }

func newGridSums(buckets, caps int) *gridSums {
	return &gridSums{samples: make([]uint64, buckets), weight: make([][Categories][]uint64, caps)}
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

// bucketed returns sums by bucket; ids are the capabilities.
func (s *gridSums) bucketed(ids []uint32) *Bucketed {
	out := &Bucketed{Weight: make([]uint64, len(s.samples)), Samples: slices.Clone(s.samples)}
	for c, by := range s.weight {
		r := CapWeight{Cap: ids[c]}
		for cat, ws := range by {
			sum := uint64(0)
			for b, w := range ws {
				out.Weight[b] = columns.SatAdd(out.Weight[b], w)
				sum = columns.SatAdd(sum, w)
			}
			if sum > 0 {
				r.ByCategory[cat] = ws
				r.Weight = columns.SatAdd(r.Weight, sum)
			}
		}
		if r.Weight > 0 {
			out.Caps = append(out.Caps, r)
		}
	}
	slices.SortFunc(out.Caps, func(a, b CapWeight) int { return cmp.Compare(a.Cap, b.Cap) })
	return out
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

package graph

import (
	"cmp"
	"fmt"
	"slices"

	"ccagent/heap"
	"ccagent/internal/ghc"
)

// analysis is the work on one snapshot.
type analysis struct {
	layout   layout
	threaded bool
	atRest   bool
	modules  *modules
	tables   tables
	nodes    nodes
	edges    edges

	roots      []Root
	ephemerons [][2]uint32 // a key, and what it keeps alive
	finalizers []uint32
	sleepers   []sleeper // all threads that have not ended
	chunks     int       // of transactions that were read

	// seen are the static closures that were come to, todo those that were not yet followed. recent
	// and lastStatic spare most look-ups in seen.
	seen       map[uint64]bool
	todo       []uint64
	recent     [1 << 10]uint64
	lastStatic uint64

	here  uint64 // address of the closure that is followed
	frame uint64 // info pointer of the frame that is followed
	// found takes the pointers that lead to nodes.
	found func(node uint32)
	// trial is set while frames are only tried: static closures to which they refer are not taken.
	trial bool

	filling                      []uint64
	running                      []heap.Running
	dangling, outside, badFrames uint64
	cut                          bool
	astray                       []astray
}

// astray is how many pointers of a node lead to no closure.
type astray struct {
	node   uint32
	number uint64
}

// maxAstray bounds the nodes of which that is kept.
const maxAstray = 1 << 20

// layout is a release's and way's.
type layout struct {
	ghc.Layout
	header int // words
}

// pointer takes a pointer of a closure.
func (a *analysis) pointer(p uint64) {
	p &^= pointerTag
	if !a.nodes.in(p) {
		a.static(p)
		return
	}
	if node := a.nodes.node(p); node != 0 {
		a.found(node)
	} else if !a.isFilling(p) && !a.unwritten(a.here) {
		a.dangling++
	}
}

// isFilling reports whether an address is in a block that a capability fills.
func (a *analysis) isFilling(at uint64) bool {
	for _, start := range a.filling {
		if at-start < ghc.BlockBytes {
			return true
		}
	}
	return false
}

// Analyse finds what is retained by whom. limit bounds the memory in bytes that its arrays take, 0
// is none.
func Analyse(s *Snapshot, limit uint64) (*Result, error) {
	l, _ := ghc.LayoutOf(s.GHCVersion, s.Profiled, s.Threaded)
	a := &analysis{
		layout: layout{l, int(l.Header) / 8}, threaded: s.Threaded, atRest: s.AtRest, modules: newModules(s.Regions), seen: map[uint64]bool{},
		filling: s.Filling, running: s.Running,
	}
	a.tables = tables{modules: a.modules, profiled: s.Profiled, known: map[uint64]*table{}}
	a.nodes.layout, _ = heap.LayoutOf(s.GHCVersion, s.Profiled, s.Threaded)
	if err := a.mark(s); err != nil {
		return nil, err
	}
	if err := a.connect(limit); err != nil {
		return nil, err
	}
	for i, p := range s.Stable {
		if node := a.nodes.node(p &^ pointerTag); node != 0 {
			a.root(Root{Kind: StablePointer, Number: uint64(i), node: node})
		} else {
			a.static(p &^ pointerTag)
		}
	}
	for i := range a.running {
		for _, at := range a.running[i].Code {
			a.code(at)
		}
	}
	a.statics()
	first, err := a.connectRoots()
	if err != nil {
		return nil, err
	}
	r := a.result(first)
	stuck := a.stuck()
	r.StuckThreads, r.Stuck = uint64(len(stuck)), stuck[:min(len(stuck), maxStuck)]
	return r, nil
}

// bytesPerNode and bytesPerEdge are what the arrays of the analysis take at their most.
const (
	bytesPerNode = 72
	bytesPerEdge = 8
)

// NeedError is returned where an analysis needs more memory than it may have.
type NeedError struct{ Closures, Pointers, Need, Limit uint64 }

func (e *NeedError) Error() string {
	return fmt.Sprintf("%d closures with %d pointers or more need %d MB, and %d MB are allowed", e.Closures, e.Pointers, e.Need>>20, e.Limit>>20)
}

func (a *analysis) fits(limit uint64) error {
	n, m := uint64(a.nodes.number), uint64(len(a.edges.to))
	if need := bytesPerNode*n + bytesPerEdge*m; limit > 0 && need > limit || m > maxEdges-maxRoots*2 {
		return &NeedError{n, m, need, limit}
	}
	return nil
}

// connect finds the edges of all nodes.
func (a *analysis) connect(limit uint64) error {
	e, n := &a.edges, &a.nodes
	if err := a.fits(limit); err != nil {
		return err
	}
	e.first = make([]uint32, n.number+2, n.number+2+1)
	a.found = func(node uint32) { e.to = append(e.to, node) }
	for i := range n.blocks {
		n.each(&n.blocks[i], func(node uint32, w []uint64) {
			e.first[node] = uint32(len(e.to))
			t := n.types[n.kinds[node]].table
			if t == nil {
				return
			}
			a.here = n.startOf(&n.blocks[i], w)
			before := a.dangling
			a.special(node, t, a.here, w)
			a.follow(t, w)
			if more := a.dangling - before; more > 0 && len(a.astray) < maxAstray {
				a.astray = append(a.astray, astray{node, more})
			}
		})
		if err := a.fits(limit); err != nil {
			return err
		}
	}
	a.fill()
	return nil
}

// fill gives nodes that were not visited an empty range. Those that were have ranges in order.
func (a *analysis) fill() {
	e, n := &a.edges, &a.nodes
	e.first[n.number+1] = uint32(len(e.to))
	for i := range n.blocks {
		if b := &n.blocks[i]; b.starts == nil && b.node != 0 && (b.Has(ghc.BlockPinned) || b.Has(ghc.BlockCompact)) {
			e.first[b.node] = none
		}
	}
	for i := n.number; i > 0; i-- {
		if e.first[i] == none {
			e.first[i] = e.first[i+1]
		}
	}
	e.first[0] = 0
}

// connectRoots adds a node for all roots together, which is the first, one for each CAF and stable
// pointer, and what weak pointers' keys keep alive.
func (a *analysis) connectRoots() (first uint32, err error) {
	old, n := a.edges, &a.nodes
	slices.SortFunc(a.ephemerons, func(x, y [2]uint32) int { return cmp.Compare(x[0], y[0]) })
	a.mergeRoots()
	own := uint32(0) // roots with a node of their own
	for i := range a.roots {
		if a.roots[i].apart() {
			own++
		}
	}
	if uint64(len(old.to))+uint64(len(a.ephemerons))+2*uint64(len(a.roots)) > maxEdges {
		return 0, ErrTooLarge
	}
	e := &edges{first: make([]uint32, 0, n.number+own+3), to: make([]uint32, 0, len(old.to)+len(a.ephemerons)+len(a.roots)+int(own))}
	weak := a.ephemerons
	for node := uint32(0); node <= n.number; node++ {
		e.first = append(e.first, uint32(len(e.to)))
		e.to = append(e.to, old.of(node)...)
		for len(weak) > 0 && weak[0][0] == node {
			e.to = append(e.to, weak[0][1])
			weak = weak[1:]
		}
	}
	next := n.number + 1
	var all []uint32
	for i := range a.roots {
		r := &a.roots[i]
		if r.apart() {
			e.first = append(e.first, uint32(len(e.to)))
			e.to = append(e.to, r.node)
			r.node = next
			next++
		}
		all = append(all, r.node)
	}
	e.first = append(e.first, uint32(len(e.to)))
	e.to = append(e.to, all...)
	e.first = append(e.first, uint32(len(e.to)))
	a.edges = *e
	return next, nil
}

// apart reports whether the root is not a closure of the heap itself.
func (r *Root) apart() bool { return r.Kind == CAF || r.Kind == StablePointer }

// mergeRoots makes one of roots that are the same.
func (a *analysis) mergeRoots() {
	type key struct {
		kind    RootKind
		pointer uint64
		node    uint32
	}
	seen := map[key]bool{}
	a.roots = slices.DeleteFunc(a.roots, func(r Root) bool {
		k := key{r.Kind, r.Pointer, r.node}
		was := seen[k]
		seen[k] = true
		return was
	})
}

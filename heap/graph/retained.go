package graph

import (
	"cmp"
	"slices"
)

// Bounds of what a result has.
const (
	maxTypes    = 4096
	maxBranches = 4096
	maxFolds    = 1 << 18 // branches before the small ones are left out
	maxDepth    = 64
	maxPaths    = 512
	pathRoots   = 3 // paths to closures of one type
	maxSteps    = 40
	maxPairs    = 1 << 20
	leastPart   = 4096 // of all bytes, that a branch or a type with a path has
)

// sums are what the nodes retain, by number in the order.
type sums struct {
	*order
	idom     []uint32
	retained []uint64
}

// result finds what a result has. The first node leads to all roots.
func (a *analysis) result(first uint32) *Result {
	n := &a.nodes
	r := &Result{
		Closures: uint64(n.number), Pointers: uint64(len(a.edges.to)), Dangling: a.dangling, Outside: a.outside, BadFrames: a.badFrames,
		Cut: a.cut, Slop: 8 * n.slop, Unread: 8 * n.unread,
	}
	o := depthFirst(&a.edges, first)
	for node := uint32(1); node <= n.number; node++ {
		r.Bytes += 8 * uint64(n.words[node])
		if o.number[node] == none {
			r.Unreached++
			r.UnreachedBytes += 8 * uint64(n.words[node])
		}
	}
	for _, lost := range a.astray {
		if o.number[lost.node] == none {
			r.Dangling -= lost.number // what garbage points to may have been freed before it, without moving
		}
	}
	for i := range a.roots {
		r.AllRoots[a.roots[i].Kind]++
	}
	s := &sums{order: o, idom: dominators(&a.edges, o), retained: make([]uint64, len(o.node))}
	for i := len(o.node) - 1; i >= 0; i-- {
		s.retained[i] += a.size(o.node[i])
		if i > 0 {
			s.retained[s.idom[i]] += s.retained[i]
		}
	}
	rootOf := map[uint32]int32{}
	for i := range a.roots {
		root := &a.roots[i]
		rootOf[root.node] = int32(i)
		if k := o.number[root.node]; k != none && s.idom[k] == 0 {
			root.Retained = s.retained[k]
		}
	}
	types := a.byType(s)
	tree := a.fold(s, rootOf)
	paths := a.paths(s, first, rootOf, types)
	a.keep(r, types, tree, paths)
	return r
}

// size is a node's own bytes; roots have none.
func (a *analysis) size(node uint32) uint64 {
	if node > a.nodes.number {
		return 0
	}
	return 8 * uint64(a.nodes.words[node])
}

func (a *analysis) kind(node uint32) uint32 {
	if node > a.nodes.number {
		return 0
	}
	return a.nodes.kinds[node]
}

// byType sums by type. What closures of a type retain together is what those retain that no other
// one of the type dominates.
func (a *analysis) byType(s *sums) []Type {
	types := make([]Type, len(a.nodes.types))
	for i := range types {
		types[i] = Type{Pointer: a.nodes.types[i].pointer, Kind: uint32(a.nodes.types[i].kind)}
	}
	for node := uint32(1); node <= a.nodes.number; node++ {
		t := &types[a.nodes.kinds[node]]
		t.Count++
		t.Bytes += 8 * uint64(a.nodes.words[node])
	}
	// The tree of dominators from parent to child.
	n := len(s.node)
	child, sibling := make([]uint32, n), make([]uint32, n)
	for i := range child {
		child[i], sibling[i] = none, none
	}
	for i := n - 1; i > 0; i-- {
		sibling[i] = child[s.idom[i]]
		child[s.idom[i]] = uint32(i)
	}
	above := make([]uint32, len(types)) // how many of the nodes above are of a type
	for at := uint32(0); ; {
		if node := s.node[at]; node <= a.nodes.number {
			k := a.kind(node)
			if above[k] == 0 {
				types[k].Retained += s.retained[at]
			}
			types[k].Largest = max(types[k].Largest, s.retained[at])
			above[k]++
		}
		if child[at] != none {
			at = child[at]
			continue
		}
		for {
			if node := s.node[at]; node <= a.nodes.number {
				above[a.kind(node)]--
			}
			if at == 0 {
				return types
			}
			if sibling[at] != none {
				at = sibling[at]
				break
			}
			at = s.idom[at]
		}
	}
}

// folded is a branch while the tree is made.
type folded struct {
	parent uint32
	depth  uint8
	kind   uint32
	root   int32
	Branch
}

// fold makes branches of the tree of dominators.
func (a *analysis) fold(s *sums, rootOf map[uint32]int32) []folded {
	type key struct {
		parent, kind uint32
		root         int32
	}
	tree := []folded{{root: -1, Branch: Branch{Bytes: a.size(s.node[0])}}}
	at := map[key]uint32{}
	of := make([]uint32, len(s.node))
	for i := 1; i < len(s.node); i++ {
		node := s.node[i]
		up, kind, root := of[s.idom[i]], a.kind(node), int32(-1)
		if s.idom[i] == 0 {
			if k, is := rootOf[node]; is {
				root = k
			}
		}
		to := up
		if root < 0 {
			for to != 0 && (tree[to].kind != kind || tree[to].kind == 0) {
				to = tree[to].parent
			}
		} else {
			to = 0
		}
		if to == 0 {
			k := key{up, kind, root}
			known := false
			if to, known = at[k]; !known {
				if len(tree) >= maxFolds || tree[up].depth >= maxDepth {
					to = up // it counts for the one above
				} else {
					to = uint32(len(tree))
					at[k] = to
					tree = append(tree, folded{parent: up, depth: tree[up].depth + 1, kind: kind, root: root})
				}
			}
		}
		of[i] = to
		if node <= a.nodes.number {
			tree[to].Count++
		}
		tree[to].Bytes += a.size(node)
	}
	for i := len(tree) - 1; i >= 0; i-- {
		tree[i].Retained += tree[i].Bytes
		if i > 0 {
			tree[tree[i].parent].Retained += tree[i].Retained
		}
	}
	return tree
}

// pair is closures of one type to which one root is the nearest.
type pair struct {
	kind  uint32
	root  int32
	count uint64
	bytes uint64
	best  uint32 // number of the one that retains most
}

// paths finds the shortest paths from roots to closures of the types that have most.
func (a *analysis) paths(s *sums, first uint32, rootOf map[uint32]int32, types []Type) []Path {
	from := make([]uint32, len(a.edges.first)-1) // by node: the one before on a shortest path
	near := make([]int32, len(from))             // by node: its root
	for i := range from {
		from[i] = none
	}
	queue := make([]uint32, 0, len(s.node))
	from[first] = first
	queue = append(queue, first)
	pairs := map[[2]uint32]*pair{}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, to := range a.edges.of(at) {
			if from[to] != none {
				continue
			}
			from[to] = at
			if near[to] = near[at]; at == first {
				near[to] = rootOf[to]
			}
			queue = append(queue, to)
			if to > a.nodes.number {
				continue
			}
			k := [2]uint32{a.kind(to), uint32(near[to])}
			p := pairs[k]
			if p == nil {
				if len(pairs) >= maxPairs {
					continue
				}
				p = &pair{kind: k[0], root: near[to], best: s.number[to]}
				pairs[k] = p
			}
			p.count++
			p.bytes += a.size(to)
			if s.retained[s.number[to]] > s.retained[p.best] {
				p.best = s.number[to]
			}
		}
	}
	return a.choosePaths(s, first, from, near, pairs, types)
}

func (a *analysis) choosePaths(s *sums, first uint32, from []uint32, near []int32, pairs map[[2]uint32]*pair, types []Type) (paths []Path) {
	byType := map[uint32][]*pair{}
	for _, p := range pairs {
		byType[p.kind] = append(byType[p.kind], p)
	}
	kinds := make([]uint32, 0, len(byType))
	for k := range byType {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(x, y uint32) int {
		return cmp.Or(cmp.Compare(types[y].Retained, types[x].Retained), cmp.Compare(types[y].Bytes, types[x].Bytes), cmp.Compare(x, y))
	})
	for _, k := range kinds {
		list := byType[k]
		slices.SortFunc(list, func(x, y *pair) int { return cmp.Or(cmp.Compare(y.bytes, x.bytes), cmp.Compare(x.root, y.root)) })
		for _, p := range list[:min(len(list), pathRoots)] {
			if len(paths) >= maxPaths {
				return paths
			}
			node := s.node[p.best]
			path := Path{Type: int(k), Root: int(p.root), Count: p.count, Bytes: p.bytes, Retained: s.retained[p.best]}
			var way []uint32
			for at := node; at != first; at = from[at] {
				way = append(way, at)
			}
			slices.Reverse(way)
			path.Steps = a.steps(way)
			paths = append(paths, path)
		}
	}
	return paths
}

// steps makes the steps of a path from its nodes, which begin with the root.
func (a *analysis) steps(way []uint32) (all []Step) {
	for i, node := range way {
		if node > a.nodes.number {
			continue // the root itself
		}
		k := int(a.kind(node))
		frame := uint64(0)
		if i > 0 {
			frame = a.frameOf(way[i-1], node)
		}
		if n := len(all); n > 0 && all[n-1].Type == k && frame == 0 {
			all[n-1].Times++
			continue
		}
		all = append(all, Step{Type: k, Times: 1, Frame: frame})
	}
	if n := len(all); n > maxSteps {
		skipped := uint32(0)
		for _, s := range all[maxSteps/2 : n-maxSteps/2] {
			skipped += s.Times
		}
		all = append(all[:maxSteps/2], all[n-maxSteps/2:]...)
		all[maxSteps/2].Skipped = skipped
	}
	return all
}

// frameOf finds the frame of a stack that refers to a node; 0 if the other node is no stack.
func (a *analysis) frameOf(stack, node uint32) (frame uint64) {
	if stack > a.nodes.number {
		return 0
	}
	t := a.nodes.types[a.nodes.kinds[stack]].table
	at := a.nodes.address(stack)
	w := a.nodes.closure(at)
	if t == nil || w == nil || !isStack(t.kind) {
		return 0
	}
	a.here = at
	a.found = func(to uint32) {
		if to == node && frame == 0 {
			frame = a.frame
		}
	}
	a.follow(t, w[:min(len(w), int(a.nodes.words[stack]))])
	return frame
}

package graph

// order is a depth-first numbering of the nodes that are reached from a first one. Numbers begin
// with 0, the first node's own.
type order struct {
	node   []uint32 // by number
	number []uint32 // by node; none for what is not reached
	parent []uint32 // by number: that of the node from which it was reached
}

const none = ^uint32(0)

// depthFirst numbers nodes. The walk keeps no stack but one place in the pointers of each node.
func depthFirst(e *edges, from uint32) *order {
	n := len(e.first) - 1
	o := &order{number: make([]uint32, n)}
	for i := range o.number {
		o.number[i] = none
	}
	place := make([]uint32, n)
	copy(place, e.first[:n])
	o.number[from] = 0
	o.node, o.parent = append(o.node, from), append(o.parent, 0)
	for at := from; ; {
		if i := place[at]; i < e.first[at+1] {
			place[at]++
			if to := e.to[i]; o.number[to] == none {
				o.number[to] = uint32(len(o.node))
				o.node, o.parent = append(o.node, to), append(o.parent, o.number[at])
				at = to
			}
			continue
		}
		if at == from {
			return o
		}
		at = o.node[o.parent[o.number[at]]]
	}
}

// dominators returns the immediate dominator of each node that was reached, by number; that of the
// first is itself (Lengauer and Tarjan, with path compression alone).
func dominators(e *edges, o *order) []uint32 {
	n := uint32(len(o.node))
	into := reversed(e, o)
	semi, best := make([]uint32, n), make([]uint32, n)
	ancestor, idom := make([]uint32, n), make([]uint32, n)
	bucket, next := make([]uint32, n), make([]uint32, n) // lists of nodes by their semidominator
	for i := range n {
		semi[i], best[i], ancestor[i], bucket[i], next[i] = i, i, none, none, none
	}
	var path []uint32
	// eval returns the node with the least semidominator on the way up to v's root in the forest.
	eval := func(v uint32) uint32 {
		if ancestor[v] == none {
			return v
		}
		path = path[:0]
		for u := v; ancestor[ancestor[u]] != none; u = ancestor[u] {
			path = append(path, u)
		}
		for i := len(path) - 1; i >= 0; i-- {
			u := path[i]
			if up := ancestor[u]; semi[best[up]] < semi[best[u]] {
				best[u] = best[up]
			}
			ancestor[u] = ancestor[ancestor[u]]
		}
		return best[v]
	}
	for w := n - 1; w > 0 && w != none; w-- {
		for _, v := range into.of(w) {
			semi[w] = min(semi[w], semi[eval(v)])
		}
		next[w] = bucket[semi[w]]
		bucket[semi[w]] = w
		parent := o.parent[w]
		ancestor[w] = parent
		for v := bucket[parent]; v != none; v = next[v] {
			if u := eval(v); semi[u] < semi[v] {
				idom[v] = u
			} else {
				idom[v] = parent
			}
		}
		bucket[parent] = none
	}
	for w := uint32(1); w < n; w++ {
		if idom[w] != semi[w] {
			idom[w] = idom[idom[w]]
		}
	}
	return idom
}

// reversed returns the edges into each node that was reached, all by number.
func reversed(e *edges, o *order) *edges {
	n := len(o.node)
	r := &edges{first: make([]uint32, n+1)}
	for _, node := range o.node {
		for _, to := range e.of(node) {
			r.first[o.number[to]+1]++
		}
	}
	for i := range n {
		r.first[i+1] += r.first[i]
	}
	r.to = make([]uint32, r.first[n])
	place := make([]uint32, n)
	copy(place, r.first[:n])
	for i, node := range o.node {
		for _, to := range e.of(node) {
			k := o.number[to]
			r.to[place[k]] = uint32(i)
			place[k]++
		}
	}
	return r
}

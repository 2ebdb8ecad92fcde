package dwarfindex

import "slices"

// segments are disjoint stretches of addresses with the block that owns each,
// sorted: blocks[i] owns [starts[i], starts[i+1]).
type segments struct {
	starts []uint64
	blocks []BlockID
}

// find gives the segment that an address is in, len(starts) if it is before all.
func (s *segments) find(addr uint64) int {
	starts := s.starts
	base, n := 0, len(starts)
	if n == 0 || starts[0] > addr {
		return n
	}
	for n > 1 { // starts[base] ≤ addr
		half := n / 2
		if starts[base+half] <= addr {
			base += half
		}
		n -= half
	}
	return base
}

func (s *segments) add(start uint64, b BlockID) {
	if n := len(s.starts); n > 0 {
		if s.blocks[n-1] == b {
			return
		}
		if s.starts[n-1] == start {
			s.blocks[n-1] = b
			if n > 1 && s.blocks[n-2] == b {
				s.starts, s.blocks = s.starts[:n-1], s.blocks[:n-1]
			}
			return
		}
	}
	s.starts = append(s.starts, start)
	s.blocks = append(s.blocks, b)
}

// active is a heap of the ranges that cover the sweep's position, the deepest
// (then the shortest) first.
type active struct {
	ids    []BlockID
	blocks []block
}

func (a *active) before(p, q BlockID) bool {
	x, y := &a.blocks[p], &a.blocks[q]
	if x.depth != y.depth {
		return x.depth > y.depth
	}
	if n, m := x.hi-x.lo, y.hi-y.lo; n != m {
		return n < m
	}
	return p < q
}

func (a *active) push(id BlockID) {
	a.ids = append(a.ids, id)
	for i := len(a.ids) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.before(a.ids[i], a.ids[up]) {
			return
		}
		a.ids[i], a.ids[up] = a.ids[up], a.ids[i]
		i = up
	}
}

func (a *active) pop() {
	n := len(a.ids) - 1
	a.ids[0] = a.ids[n]
	a.ids = a.ids[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			return
		}
		if child+1 < n && a.before(a.ids[child+1], a.ids[child]) {
			child++
		}
		if !a.before(a.ids[child], a.ids[i]) {
			return
		}
		a.ids[i], a.ids[child] = a.ids[child], a.ids[i]
		i = child
	}
}

// buildSegments sweeps over the live ranges: where they overlap, the innermost
// block wins.
func buildSegments(blocks []block) segments {
	live := 0
	for i := range blocks {
		if b := &blocks[i]; b.flags&flagDead == 0 && b.lo < b.hi {
			live++
		}
	}
	type begin struct {
		lo uint64
		id BlockID
	}
	order := make([]begin, 0, live)
	for i := 1; i < len(blocks); i++ {
		if b := &blocks[i]; b.flags&flagDead == 0 && b.lo < b.hi {
			order = append(order, begin{b.lo, BlockID(i)})
		}
	}
	slices.SortFunc(order, func(p, q begin) int {
		switch {
		case p.lo < q.lo:
			return -1
		case p.lo > q.lo:
			return 1
		}
		return int(p.id) - int(q.id)
	})
	s := segments{starts: make([]uint64, 0, live+live/2), blocks: make([]BlockID, 0, live+live/2)}
	open := active{blocks: blocks}
	// advance closes ranges that end before limit and gives what lies between
	// to the innermost that is left.
	advance := func(limit uint64) {
		for len(open.ids) > 0 {
			end := blocks[open.ids[0]].hi
			if end > limit {
				return
			}
			for len(open.ids) > 0 && blocks[open.ids[0]].hi <= end {
				open.pop()
			}
			next := NoBlock
			if len(open.ids) > 0 {
				next = open.ids[0]
			}
			s.add(end, next)
		}
	}
	for _, o := range order {
		advance(o.lo)
		open.push(o.id)
		s.add(o.lo, open.ids[0])
	}
	advance(^uint64(0))
	s.starts, s.blocks = slices.Clip(s.starts), slices.Clip(s.blocks)
	return s
}

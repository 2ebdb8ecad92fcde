package dwarfindex

import (
	"container/heap"
	"slices"
)

// segments are disjoint stretches of addresses with the block that owns each,
// sorted: blocks[i] owns [starts[i], starts[i+1]).
type segments struct {
	starts []uint64
	blocks []BlockID
}

func (s *segments) find(addr uint64) BlockID {
	i, found := slices.BinarySearch(s.starts, addr)
	if !found {
		i--
	}
	if i < 0 {
		return NoBlock
	}
	return s.blocks[i]
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

func (a *active) Len() int { return len(a.ids) }
func (a *active) Less(i, j int) bool {
	p, q := &a.blocks[a.ids[i]], &a.blocks[a.ids[j]]
	if p.depth != q.depth {
		return p.depth > q.depth
	}
	if n, m := p.hi-p.lo, q.hi-q.lo; n != m {
		return n < m
	}
	return a.ids[i] < a.ids[j]
}
func (a *active) Swap(i, j int) { a.ids[i], a.ids[j] = a.ids[j], a.ids[i] }
func (a *active) Push(v any)    { a.ids = append(a.ids, v.(BlockID)) }
func (a *active) Pop() any {
	v := a.ids[len(a.ids)-1]
	a.ids = a.ids[:len(a.ids)-1]
	return v
}

// buildSegments sweeps over the live ranges: where they overlap, the innermost
// block wins.
func buildSegments(blocks []block) segments {
	var order []BlockID
	for i := 1; i < len(blocks); i++ {
		if b := &blocks[i]; b.flags&flagDead == 0 && b.lo < b.hi {
			order = append(order, BlockID(i))
		}
	}
	slices.SortFunc(order, func(p, q BlockID) int {
		if blocks[p].lo != blocks[q].lo {
			if blocks[p].lo < blocks[q].lo {
				return -1
			}
			return 1
		}
		return int(p) - int(q)
	})
	s := segments{starts: make([]uint64, 0, 2*len(order)), blocks: make([]BlockID, 0, 2*len(order))}
	open := &active{blocks: blocks}
	// advance closes ranges that end before limit and gives what lies between
	// to the innermost that is left.
	advance := func(limit uint64) {
		for open.Len() > 0 {
			top := open.ids[0]
			end := blocks[top].hi
			if end > limit {
				return
			}
			heap.Pop(open)
			for open.Len() > 0 && blocks[open.ids[0]].hi <= end {
				heap.Pop(open)
			}
			next := NoBlock
			if open.Len() > 0 {
				next = open.ids[0]
			}
			s.add(end, next)
		}
	}
	for _, id := range order {
		lo := blocks[id].lo
		advance(lo)
		heap.Push(open, id)
		s.add(lo, open.ids[0])
	}
	advance(^uint64(0))
	s.starts, s.blocks = slices.Clip(s.starts), slices.Clip(s.blocks)
	return s
}

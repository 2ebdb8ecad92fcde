package centres

// Items of a cost-centre stack that are no centres but marks, pushed and
// compressed as centres are.
const (
	itemForced = -1 // an update frame was crossed: what is below forced what is above
	itemGap    = -2 // frames are missing
)

// maxStackDepth bounds a cost-centre stack, and so what a crafted log can make a
// query cost.
const maxStackDepth = 1000

// stack is a compressed cost-centre stack (Morgan & Jarvis 1998, §2.4.1):
// to push a centre takes it out where it was. It is a list, bottom to top, in
// which each item knows its place; what was pushed can be taken back, last first.
type stack struct {
	cells []cell
	pos   []int32 // by item: 1 + its cell, of this stack if not below the foot
	top   int32
	foot  int32 // the bottom's cell: a root or a CAF
	root  int32 // the bottom of all
	depth int
	log   []change
}

type cell struct {
	item       int32
	prev, next int32 // towards the bottom and the top; −1 is none
}

// change is what a push did.
type change struct {
	item  int32
	was   int32 // 1 + the item's cell before; 0 if it had none on this stack
	old   int32 // what pos held
	top   int32
	foot  int32
	depth int
	under int32 // 1 + the topmost cell, if the new one took its place
}

func (s *stack) reset(root int32) {
	*s = stack{root: root, foot: 0, depth: 1, cells: []cell{{root, -1, -1}}}
}

func (s *stack) mark() int { return len(s.log) }

// slot is where an item's cell is kept.
func (s *stack) slot(item int32) *int32 {
	i := int(item) + 2
	for len(s.pos) <= i {
		s.pos = append(s.pos, make([]int32, i+64)...)
	}
	return &s.pos[i]
}

func (s *stack) push(item int32) {
	if s.cells[s.top].item == item {
		return
	}
	p := s.slot(item)
	c := change{item: item, old: *p, top: s.top, foot: s.foot, depth: s.depth}
	// Cells from the foot on are of this stack.
	if x := *p - 1; x > s.foot {
		c.was = x + 1
		s.cells[s.cells[x].prev].next = s.cells[x].next
		s.cells[s.cells[x].next].prev = s.cells[x].prev
		s.depth--
	}
	below := s.top
	if s.depth >= maxStackDepth {
		below, c.under = s.cells[s.top].prev, s.top+1
		*s.slot(s.cells[s.top].item) = 0
		s.depth--
	}
	id := int32(len(s.cells))
	s.cells = append(s.cells, cell{item, below, -1})
	s.cells[below].next = id
	s.top = id
	s.depth++
	*s.slot(item) = id + 1
	s.log = append(s.log, c)
}

// base begins a stack that stands on nothing.
func (s *stack) base(item int32) {
	p := s.slot(item)
	s.log = append(s.log, change{item: item, old: *p, top: s.top, foot: s.foot, depth: s.depth})
	id := int32(len(s.cells))
	s.cells = append(s.cells, cell{item, -1, -1})
	*p = id + 1
	s.top, s.foot, s.depth = id, id, 1
}

// undo takes back what was done since a mark.
func (s *stack) undo(mark int) {
	for len(s.log) > mark {
		c := &s.log[len(s.log)-1]
		s.log = s.log[:len(s.log)-1]
		last := len(s.cells) - 1
		if below := s.cells[last].prev; below >= 0 {
			s.cells[below].next = -1
			if c.under > 0 {
				s.cells[below].next = c.top
				*s.slot(s.cells[c.top].item) = c.under
			}
		}
		s.cells = s.cells[:last]
		if c.was > 0 {
			x := c.was - 1
			s.cells[s.cells[x].prev].next = x
			s.cells[s.cells[x].next].prev = x
		}
		s.pos[c.item+2] = c.old
		s.top, s.foot, s.depth = c.top, c.foot, c.depth
	}
}

// nearest is the topmost centre, and which marks are above it.
func (s *stack) nearest() (top int32, forced, gap bool) {
	for i := s.top; ; i = s.cells[i].prev {
		switch s.cells[i].item {
		case itemForced:
			forced = true
		case itemGap:
			gap = true
		default:
			return s.cells[i].item, forced, gap
		}
	}
}

// pairTable maps pairs of numbers to numbers, by open addressing.
type pairTable struct {
	keys []uint64 // the key plus one; 0 is free
	vals []uint32
	n    int
}

func pair(a, b uint32) uint64 { return uint64(a)<<32 | uint64(b) }

func (t *pairTable) slot(k uint64) int {
	mask := len(t.keys) - 1
	i := int((k*0x9e3779b97f4a7c15)>>32) & mask
	for t.keys[i] != 0 && t.keys[i] != k+1 {
		i = (i + 1) & mask
	}
	return i
}

func (t *pairTable) get(k uint64) (uint32, bool) {
	if t.n == 0 {
		return 0, false
	}
	i := t.slot(k)
	return t.vals[i], t.keys[i] != 0
}

func (t *pairTable) put(k uint64, v uint32) {
	if 2*t.n >= len(t.keys) {
		old := *t
		t.keys, t.vals = make([]uint64, max(1024, 4*len(old.keys))), make([]uint32, max(1024, 4*len(old.keys)))
		for i, k := range old.keys {
			if k != 0 {
				j := t.slot(k - 1)
				t.keys[j], t.vals[j] = k, old.vals[i]
			}
		}
	}
	i := t.slot(k)
	if t.keys[i] == 0 {
		t.n++
	}
	t.keys[i], t.vals[i] = k+1, v
}

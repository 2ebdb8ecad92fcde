package graph

import (
	"cmp"
	"errors"
	"math/bits"
	"slices"
	"sort"

	"ccagent/heap"
	"ccagent/internal/ghc"
)

// nodes are the closures of a heap, numbered from 1 by address. Numbers above those are roots.
type nodes struct {
	layout heap.Layout
	blocks []block
	// of leads from a block of the heap to an index in blocks, from 1: by megablock since the
	// first, and block.
	first  uint64
	of     [][]uint32
	number uint32
	kinds  []uint32 // by node: index in types
	words  []uint32 // by node: size
	types  []nodeType

	unread, slop uint64 // words
}

// block is a group of blocks with the nodes that begin in it.
type block struct {
	*Block
	// starts has a bit for each word of a block of small closures at which one begins; ranks is the
	// number of the first node that begins in each 64 words. Both are nil where all is one node.
	starts []uint64
	ranks  []uint32
	node   uint32 // the block's first node; 0 for none
	from   uint32 // the first node that begins in it or behind it
}

// nodeType is an info table that nodes have.
type nodeType struct {
	pointer uint64
	kind    ghc.ClosureType
	table   *table
}

// Bounds of what is analysed.
const (
	maxNodes      = 1<<32 - 1<<24
	maxNodeWords  = 1<<32 - 1
	maxMegablocks = 1 << 20
)

// ErrTooLarge is returned where a heap has more closures than can be numbered.
var ErrTooLarge = errors.New("the heap has too many closures")

// blockNumber is how many blocks a megablock has.
const blockNumber = ghc.MegablockBytes / ghc.BlockBytes

// mark finds the closures of all blocks.
func (a *analysis) mark(s *Snapshot) error {
	n := &a.nodes
	n.types = make([]nodeType, 1)
	n.kinds, n.words = make([]uint32, 1), make([]uint32, 1)
	sorted := make([]*Block, len(s.Blocks))
	for i := range s.Blocks {
		sorted[i] = &s.Blocks[i]
	}
	slices.SortFunc(sorted, func(a, b *Block) int { return cmp.Compare(a.Start, b.Start) })
	if len(sorted) == 0 {
		return nil
	}
	n.first = sorted[0].Start / ghc.MegablockBytes
	end := uint64(0)
	for _, b := range sorted {
		if b.Start%ghc.BlockBytes != 0 || b.Blocks == 0 || b.Start > 1<<56 {
			continue
		}
		end = max(end, b.Start+uint64(b.Blocks)*ghc.BlockBytes)
	}
	if end == 0 || (end-1)/ghc.MegablockBytes-n.first >= maxMegablocks {
		return ErrTooLarge
	}
	n.of = make([][]uint32, (end-1)/ghc.MegablockBytes-n.first+1)
	for _, b := range sorted {
		if b.Start%ghc.BlockBytes != 0 || b.Blocks == 0 || b.Start > 1<<56 {
			continue
		}
		n.blocks = append(n.blocks, block{Block: b})
		index := uint32(len(n.blocks))
		for at := b.Start / ghc.BlockBytes; at < b.Start/ghc.BlockBytes+uint64(b.Blocks); at++ {
			m := at/blockNumber - n.first
			if n.of[m] == nil {
				n.of[m] = make([]uint32, blockNumber)
			}
			n.of[m][at%blockNumber] = index
		}
	}
	for i := range n.blocks {
		n.blocks[i].from = n.number + 1
		if err := a.markBlock(&n.blocks[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *analysis) markBlock(b *block) error {
	n := &a.nodes
	switch {
	case b.Has(ghc.BlockPinned): // byte arrays: one that is alive holds them all
		for _, w := range b.Words {
			if t := a.tables.of(w); t.kind == ghc.ArrWords {
				return n.add(b, t, uint64(b.Blocks)*ghc.BlockBytes/8)
			}
		}
		return n.add(b, nil, uint64(b.Blocks)*ghc.BlockBytes/8)
	case b.Has(ghc.BlockCompact):
		const owner, region = ghc.CompactOwner / 8, ghc.CompactRegion / 8
		if len(b.Words) <= region+n.layout.Header || b.Words[owner] != b.Start+ghc.CompactRegion {
			return nil // a further block: whoever points into it holds the region
		}
		if t := a.tables.of(b.Words[region]); t.kind == ghc.Compact {
			return n.add(b, t, b.Words[region+n.layout.Header])
		}
		n.unread += b.Used() / 8
		return nil
	case b.Has(ghc.BlockLarge):
		if len(b.Words) > 0 {
			t := a.tables.of(b.Words[0])
			if size, ok := n.layout.Size(t.info, b.Words); t.inHeap && ok && size > 0 && uint64(size) <= b.Used()/8 {
				n.slop += b.Used()/8 - uint64(size)
				return n.add(b, t, uint64(size))
			}
		}
		n.unread += b.Used() / 8
		return nil
	case len(b.Words) > 0 && b.Words[0] == b.Start:
		return nil // a further block of a compact region
	}
	size := (len(b.Words) + 63) / 64
	b.starts, b.ranks = make([]uint64, size), make([]uint32, size)
	var err error
	from, segment := 0, b.IsSegment()
	for segment && from < len(b.Words) && b.Words[from] == 0 { // see heap.ReadSegment
		from++
	}
	n.unread += uint64(n.layout.Walk(b.Words[from:], a.look, func(c heap.Closure) {
		if err == nil {
			c.At += from
			b.starts[c.At/64] |= 1 << (c.At % 64)
			if !segment { // free cells are no slop
				n.slop += uint64(c.Slop)
			}
			err = n.add(b, a.tables.of(c.Pointer), uint64(c.Words))
		}
	}))
	rank := b.node
	for i := range b.starts {
		b.ranks[i] = rank
		rank += uint32(bits.OnesCount64(b.starts[i]))
	}
	return err
}

func (a *analysis) look(pointer uint64) (heap.Info, bool) {
	t := a.tables.of(pointer)
	return t.info, t.inHeap
}

// add adds a node that begins in a block.
func (n *nodes) add(b *block, t *table, words uint64) error {
	if n.number >= maxNodes || words > maxNodeWords {
		return ErrTooLarge
	}
	kind := uint32(0)
	if t != nil && t != noTable {
		if t.index == 0 {
			n.types = append(n.types, nodeType{t.pointer, t.kind, t})
			t.index = uint32(len(n.types) - 1)
		}
		kind = t.index
	}
	n.number++
	n.kinds, n.words = append(n.kinds, kind), append(n.words, uint32(words))
	if b.node == 0 {
		b.node = n.number
	}
	return nil
}

// startOf returns the address of a closure whose words begin within a block's.
func (n *nodes) startOf(b *block, words []uint64) uint64 {
	return b.Start + 8*uint64(cap(b.Words)-cap(words))
}

// block returns that of an address, nil if there is none.
func (n *nodes) block(at uint64) *block {
	m := at/ghc.MegablockBytes - n.first
	if m >= uint64(len(n.of)) || n.of[m] == nil {
		return nil
	}
	i := n.of[m][at/ghc.BlockBytes%blockNumber]
	if i == 0 {
		return nil
	}
	return &n.blocks[i-1]
}

// in reports whether an address is where the heap lies.
func (n *nodes) in(at uint64) bool {
	return at/ghc.MegablockBytes-n.first < uint64(len(n.of))
}

// node returns the node that an untagged pointer leads to, 0 if it leads to none.
func (n *nodes) node(at uint64) uint32 {
	b := n.block(at)
	switch {
	case b == nil:
		return 0
	case b.starts != nil:
		w := (at - b.Start) / 8
		if at%8 != 0 || w/64 >= uint64(len(b.starts)) || b.starts[w/64]>>(w%64)&1 == 0 {
			return 0
		}
		return b.ranks[w/64] + uint32(bits.OnesCount64(b.starts[w/64]&(1<<(w%64)-1)))
	case b.node != 0:
		return b.node
	case len(b.Words) > ghc.CompactOwner/8 && (b.Has(ghc.BlockCompact) || b.Words[0] == b.Start):
		if owner := n.block(b.Words[ghc.CompactOwner/8]); owner != nil && owner.Has(ghc.BlockCompact) {
			return owner.node
		}
	}
	return 0
}

// closure returns the words from an untagged pointer's closure on, nil if there is none.
func (n *nodes) closure(at uint64) []uint64 {
	b := n.block(at)
	if b == nil || at%8 != 0 || (at-b.Start)/8 >= uint64(len(b.Words)) {
		return nil
	}
	return b.Words[(at-b.Start)/8:]
}

// each visits the nodes of a block with their words, in order.
func (n *nodes) each(b *block, visit func(node uint32, words []uint64)) {
	if b.starts == nil {
		if b.node != 0 && !b.Has(ghc.BlockPinned) && !b.Has(ghc.BlockCompact) {
			visit(b.node, b.Words)
		}
		return
	}
	node := b.node
	for i, mask := range b.starts {
		for ; mask != 0; mask &= mask - 1 {
			at := 64*i + bits.TrailingZeros64(mask)
			visit(node, b.Words[at:min(len(b.Words), at+int(n.words[node]))])
			node++
		}
	}
}

// address returns where a node is, 0 if it is none of a closure.
func (n *nodes) address(node uint32) uint64 {
	i := sort.Search(len(n.blocks), func(i int) bool { return n.blocks[i].from > node }) - 1
	if node == 0 || node > n.number || i < 0 {
		return 0
	}
	b := &n.blocks[i]
	if b.starts == nil {
		return b.Start
	}
	left := int(node - b.node)
	for i, mask := range b.starts {
		if c := bits.OnesCount64(mask); left >= c {
			left -= c
			continue
		}
		for ; left > 0; left-- {
			mask &= mask - 1
		}
		return b.Start + 8*uint64(64*i+bits.TrailingZeros64(mask))
	}
	return 0
}

package footprint

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/heap"
	"ccagent/internal/ghc"
)

// generation is the number of a group's generation; false if it belongs to none.
func (b *builder) generation(g *heap.Group) (n uint32, ok bool) {
	for i := range b.d.Generations {
		if b.d.Generations[i].Address == g.Generation {
			return b.d.Generations[i].Number, true
		}
	}
	return 0, false
}

// kind says what a group in use is for, and whether a collection moves what it holds.
func (b *builder) kind(g *heap.Group) (k key, moved bool) {
	generation, ok := b.generation(g)
	switch {
	case b.nursery[g.Start]:
		return key{kind: eventlog.FootprintNursery}, false
	case g.IsSegment():
		return key{kind: eventlog.FootprintNonmoving}, false
	case g.Has(ghc.BlockPinned):
		return key{kind: eventlog.FootprintPinned}, false
	case g.Has(ghc.BlockCompact):
		return key{kind: eventlog.FootprintCompact}, false
	case g.Has(ghc.BlockLarge) && b.types[g.Start] == ghc.Stack && ok:
		return key{kind: eventlog.FootprintStacks}, false
	case g.Has(ghc.BlockLarge) && ok:
		name := ""
		if t, known := b.types[g.Start]; known {
			name = t.String()
		}
		return key{kind: eventlog.FootprintLarge, name: name}, false
	case ok && (g.Has(ghc.BlockEvacuated) || b.d.Collecting && generation > 0):
		return key{kind: eventlog.FootprintLive, generation: generation}, true
	}
	return key{kind: eventlog.FootprintRTS}, false
}

// megablock is one that is in use and has free blocks.
type megablock struct {
	free uint64 // bytes in memory of its free blocks
	held map[key]*holding
}

// holding is what holds a megablock.
type holding struct {
	moved        bool
	bytes, count uint64
}

const (
	headerBytes    = heap.DescriptorBytes
	megablockOf    = ^uint64(ghc.MegablockBytes - 1)
	wholeMegablock = ghc.BlocksPerMegablock
)

// heap divides the heap's memory.
func (b *builder) heap() {
	var known uint64
	add := func(k key, bytes, mapped, count uint64) {
		known += bytes
		b.part(k, bytes, mapped, count)
	}
	var free uint64 // bytes in memory of free megablocks
	headers := map[uint64]bool{}
	header := func(at uint64, k key) {
		if at &= megablockOf; !headers[at] {
			headers[at] = true
			n := b.inMemory(at, at+headerBytes)
			add(k, n, headerBytes, 0)
			if k.kind == eventlog.FootprintFree {
				free += n
			}
		}
	}
	for i := range b.d.Free {
		g := &b.d.Free[i]
		size := uint64(g.Blocks) * ghc.BlockBytes
		bytes := b.inMemory(g.Start, g.Start+size)
		if g.Blocks >= wholeMegablock {
			free += bytes
			add(key{kind: eventlog.FootprintFree}, bytes, size, 1)
			header(g.Start, key{kind: eventlog.FootprintFree})
			continue
		}
		add(key{kind: eventlog.FootprintFreeBlocks}, bytes, size, 1)
		m := b.partly[g.Start&megablockOf]
		if m == nil {
			m = &megablock{held: map[key]*holding{}}
			b.partly[g.Start&megablockOf] = m
		}
		m.free += bytes
	}
	for i := range b.d.Groups {
		g := &b.d.Groups[i]
		k, moved := b.kind(g)
		size := uint64(g.Blocks) * ghc.BlockBytes
		end := g.Start + size
		whole := b.inMemory(g.Start, end)
		switch k.kind {
		case eventlog.FootprintNursery, eventlog.FootprintPinned, eventlog.FootprintRTS, eventlog.FootprintNonmoving:
			add(k, whole, size, 1)
		default:
			used := b.inMemory(g.Start, g.Free)
			add(k, used, g.Used(), 1)
			add(key{kind: eventlog.FootprintBlockEnds}, whole-used, size-g.Used(), 0)
		}
		header(g.Start, key{kind: eventlog.FootprintRTS})
		if m := b.partly[g.Start&megablockOf]; m != nil {
			h := m.held[k]
			if h == nil {
				h = &holding{moved: moved}
				m.held[k] = h
			}
			h.bytes += whole
			h.count++
		}
	}
	for at, m := range b.partly {
		if len(m.held) == 0 { // nothing is known to be there
			delete(b.partly, at)
		}
	}
	// What was given back the kernel counts until it takes it.
	for _, g := range b.d.Returned {
		bytes := b.inMemory(g.Start, g.End)
		add(key{kind: eventlog.FootprintGivenBack}, bytes, g.End-g.Start, 1)
	}
	given := uint64(0)
	if b.d.Returned == nil { // it is among what has descriptors of free megablocks
		for i := range b.r.Mappings {
			if b.ofHeap(&b.r.Mappings[i]) {
				given += b.r.Mappings[i].LazyFree
			}
		}
	}
	if given = min(given, free); given > 0 {
		b.parts[key{kind: eventlog.FootprintFree}].Bytes -= given
		b.part(key{kind: eventlog.FootprintGivenBack}, given, given, 0)
	}
	var all uint64
	for i, p := range b.r.Pages {
		if i == 0 || p.Start >= b.r.Pages[i-1].End { // a list of mappings has none twice
			all += p.Resident(p.Start, p.End)
		}
	}
	if all > known {
		b.part(key{kind: eventlog.FootprintHeapOther}, all-known, all-known, 0)
	}
}

// pins lists what holds megablocks that have free blocks.
func (b *builder) pins() (all []eventlog.FootprintPin) {
	by := map[key]*eventlog.FootprintPin{}
	for _, m := range b.partly {
		var best key
		var h *holding
		for k, other := range m.held {
			if h == nil || cmp.Or(compareBool(h.moved, other.moved), cmp.Compare(other.bytes, h.bytes), compareKey(best, k)) > 0 {
				best, h = k, other
			}
		}
		best.generation = 0
		p := by[best]
		if p == nil {
			p = &eventlog.FootprintPin{Kind: best.kind, Name: best.name, Moved: h.moved}
			by[best] = p
		}
		p.Megablocks++
		p.Free += m.free
		p.Held += h.bytes
		p.Count += h.count
	}
	for _, p := range by {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(x, y eventlog.FootprintPin) int {
		return cmp.Or(cmp.Compare(y.Free, x.Free), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Name, y.Name))
	})
	return all
}

// compareBool has false before true.
func compareBool(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return 1
	}
	return -1
}

func compareKey(x, y key) int {
	return cmp.Or(cmp.Compare(x.kind, y.kind), cmp.Compare(x.generation, y.generation), cmp.Compare(x.name, y.name))
}

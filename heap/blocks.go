package heap

import (
	"encoding/binary"

	"ccagent/internal/ghc"
)

// Group is a group of blocks of the heap that belong together, as its descriptor says: blocks with
// closures one after another, or a large object.
type Group struct {
	Start, Free uint64 // the bytes in use lie from Start to Free
	Blocks      uint32
	Flags       uint16 // ghc.Block…
	Generation  uint64 // address of the generation's descriptor
	Link        uint64 // address of the descriptor of the group that follows in its list
	Cell        int    // bytes of each cell, of a segment of the non-moving collector (Segments); else 0
}

// IsSegment reports whether the group is a segment of the non-moving collector: small closures that it has in cells.
func (g *Group) IsSegment() bool {
	return g.Flags&(ghc.BlockNonmoving|ghc.BlockLarge|ghc.BlockCompact) == ghc.BlockNonmoving
}

// DescribedBy is the first byte of the block whose descriptor has an address.
func DescribedBy(descriptor uint64) uint64 {
	const inside = ghc.MegablockBytes - 1
	return descriptor&^inside + descriptor&inside/ghc.BlockDescriptorBytes*ghc.BlockBytes
}

// LinkOf is the link of the descriptor that has an address, by the descriptors of its megablock; 0 if it is none of them.
func LinkOf(descriptor uint64, descriptors []byte) uint64 {
	at := descriptor % ghc.MegablockBytes
	if at%ghc.BlockDescriptorBytes != 0 || at >= DescriptorBytes || len(descriptors) < DescriptorBytes {
		return 0
	}
	return binary.LittleEndian.Uint64(descriptors[at+ghc.BlockLink:])
}

// Used is how many bytes of the group are in use.
func (g *Group) Used() uint64 { return g.Free - g.Start }

// Has reports whether the group has all of the flags.
func (g *Group) Has(flags uint16) bool { return g.Flags&flags == flags }

// DescriptorBytes is how much of a megablock its descriptors take, from its first byte on.
const DescriptorBytes = (ghc.MegablockBytes / ghc.BlockBytes) * ghc.BlockDescriptorBytes

// firstBlock is the first block of a megablock that has a descriptor: the ones before hold the
// descriptors.
const firstBlock = ghc.MegablockBytes/ghc.BlockBytes - ghc.BlocksPerMegablock

// HeadOffset is where in a megablock the descriptor of its first group lies, of HeadBytes.
const (
	HeadOffset = firstBlock * ghc.BlockDescriptorBytes
	HeadBytes  = ghc.BlockDescriptorBytes
)

// described reads a descriptor.
func described(d []byte) Group {
	return Group{
		Start:      binary.LittleEndian.Uint64(d[ghc.BlockStart:]),
		Free:       binary.LittleEndian.Uint64(d[ghc.BlockFree:]),
		Link:       binary.LittleEndian.Uint64(d[ghc.BlockLink:]),
		Generation: binary.LittleEndian.Uint64(d[ghc.BlockGen:]),
		Flags:      binary.LittleEndian.Uint16(d[ghc.BlockFlags:]),
		Blocks:     binary.LittleEndian.Uint32(d[ghc.BlockCount:]),
	}
}

// Head reads the first group of a megablock at an address, whose descriptor is given. whole is how many
// megablocks the group takes with all their blocks, limit at the most; 0 if it takes a part of one, or its
// descriptor contradicts itself: no segment is so long.
func Head(address uint64, descriptor []byte, limit uint64) (g Group, whole uint64) {
	g = described(descriptor)
	if n := uint64(g.Blocks); g.Start == address+firstBlock*ghc.BlockBytes && n >= ghc.BlocksPerMegablock {
		whole = 1 + (n-ghc.BlocksPerMegablock+blocksOfMegablock-1)/blocksOfMegablock
	}
	free := g.IsFree()
	if whole > limit || whole > 0 && !free && (g.IsSegment() || g.Free < g.Start || g.Free-g.Start > uint64(g.Blocks)*ghc.BlockBytes) {
		whole = 0
	}
	return g, whole
}

// GroupAt is the group in use that begins at an address, by the descriptors of its megablock; false if none does that lies in
// that megablock alone.
func GroupAt(start uint64, descriptors []byte) (g Group, ok bool) {
	i := start % ghc.MegablockBytes / ghc.BlockBytes
	if i < firstBlock || len(descriptors) < DescriptorBytes {
		return g, false
	}
	g = described(descriptors[i*ghc.BlockDescriptorBytes:])
	n := uint64(g.Blocks)
	return g, g.Start == start && n > 0 && n <= blocksOfMegablock-i && !g.IsFree() && g.Free >= g.Start && g.Free-g.Start <= n*ghc.BlockBytes
}

// IsFree reports whether the group is on the block allocator's lists of free ones.
func (g *Group) IsFree() bool { return g.Free == ^uint64(0) }

// blocksOfMegablock counts also those that hold descriptors.
const blocksOfMegablock = ghc.MegablockBytes / ghc.BlockBytes

// A Found is what a megablock's descriptors say.
type Found struct {
	// Unallocated counts blocks that are on the block allocator's lists of free ones; Odd blocks
	// whose descriptors contradict themselves.
	Unallocated, Odd uint64
	// Megablocks is how many the megablock's last group reaches into, itself included: at least 1.
	Megablocks uint64
}

// Groups visits the groups of a megablock at an address, whose descriptors are given: the first
// DescriptorBytes of it. A group that is longer than the megablock goes on in those that follow,
// which have no descriptors of their own; limit is how many megablocks there can be at the most.
// Groups that are on the block allocator's lists of free ones are visited by free, unless it is nil.
//
// The rules are those of the block allocator (rts/sm/BlockAlloc.c): the first descriptor of a
// group has its number of blocks, and a free group's free is −1.
func Groups(address uint64, descriptors []byte, limit uint64, visit, free func(Group)) Found {
	f := Found{Megablocks: 1}
	if len(descriptors) < DescriptorBytes {
		return f
	}
	const blocks = blocksOfMegablock
	for i := uint64(firstBlock); i < blocks; {
		g := described(descriptors[i*ghc.BlockDescriptorBytes:])
		n := uint64(g.Blocks)
		switch {
		case g.Start != address+i*ghc.BlockBytes || n == 0:
			// It was never used, or is part of a group that the allocator has joined.
			f.Odd++
			i++
			continue
		case n > blocks-i: // the only group of the megablock, with the whole of those that follow
			rest := (n - (blocks - i) + blocks - 1) / blocks
			if i != firstBlock || rest >= limit {
				f.Odd++
				i++
				continue
			}
			f.Megablocks += rest
		}
		if g.IsFree() {
			f.Unallocated += n
			if free != nil {
				free(g)
			}
		} else if g.IsSegment() || g.Free >= g.Start && g.Free-g.Start <= n*ghc.BlockBytes {
			visit(g)
		} else {
			f.Odd += n
		}
		i += n
	}
	return f
}

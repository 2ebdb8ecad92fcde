package dwarfindex

// Cause is one member of a cause set.
type Cause struct {
	Span     uint32 // span id
	Distance uint32 // 0: the block's own note
}

// Limits of a cause set. Tick-parent links of a crafted file may form a cycle.
const (
	maxHops   = 4096 // enclosing blocks and links
	maxCauses = 4096
)

// Causes appends the block's cause set to dst, nearest first: its own notes,
// those of its enclosing blocks, and, across tick parents, of the blocks that
// statically enclose its procedure, one step farther each. A note that recurs
// counts where it is nearest.
func (x *Index) Causes(dst []Cause, id BlockID) []Cause {
	start := len(dst)
	distance := uint32(0)
	x.outwards(id, func(b BlockID) bool {
		for n := x.blocks[b].note; n != 0 && len(dst)-start < maxCauses; n = x.notes[n].next {
			dst = appendCause(dst, start, Cause{x.notes[n].span, distance})
		}
		distance++
		return true
	})
	return dst
}

func appendCause(dst []Cause, start int, c Cause) []Cause {
	for _, d := range dst[start:] {
		if d.Span == c.Span {
			return dst
		}
	}
	return append(dst, c)
}

// Enclosing appends the procedures that statically enclose the block's own, by
// tick parents, innermost first.
func (x *Index) Enclosing(dst []ProcID, id BlockID) []ProcID {
	last := x.blocks[id].proc
	x.outwards(id, func(b BlockID) bool {
		if p := x.blocks[b].proc; p != last {
			dst, last = append(dst, p), p
		}
		return true
	})
	return dst
}

// outwards visits a block and all that statically enclose it: its ancestors up
// to its procedure's own block, then, across the tick parent, the block that
// the procedure's code came from, and so on. The procedure's own notes hold for
// all its blocks, since its entry's tick scope encloses theirs
// (blocksForScope in GHC/Cmm/DebugBlock.hs).
func (x *Index) outwards(id BlockID, visit func(BlockID) bool) {
	for hops := 0; id != NoBlock && hops < maxHops; hops++ {
		if !visit(id) {
			return
		}
		b := &x.blocks[id]
		if b.parent != NoBlock {
			id = b.parent
			continue
		}
		id = x.procs[b.proc].tickParent
	}
}

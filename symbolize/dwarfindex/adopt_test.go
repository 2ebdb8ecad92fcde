package dwarfindex

import (
	"math/rand/v2"
	"testing"
)

// forest is an index of procedures with blocks of 16 bytes each, at 16 times
// their id.
type forest struct{ Index }

func newForest() *forest {
	return &forest{Index{procs: make([]proc, 1), blocks: make([]block, 1), notes: make([]note, 1), spans: make([]Span, 1)}}
}

func (f *forest) proc(tickParent BlockID) ProcID {
	id := ProcID(len(f.procs))
	f.procs = append(f.procs, proc{tickParent: tickParent})
	f.procs[id].root = f.block(NoBlock, id)
	return id
}

func (f *forest) block(parent BlockID, p ProcID) BlockID {
	id := BlockID(len(f.blocks))
	f.blocks = append(f.blocks, block{lo: 16 * uint64(id), hi: 16 * uint64(id+1), parent: parent, proc: p})
	return id
}

func (f *forest) root(p ProcID) BlockID { return f.procs[p].root }

func (f *forest) adopt(orphans []ProcID, refs ...[2]uint32) int {
	f.segs = buildSegments(f.blocks)
	var rs []Reference
	for _, r := range refs { // from block, to procedure
		rs = append(rs, Reference{16*uint64(r[0]) + 3, ProcID(r[1])})
	}
	return f.Adopt(orphans, rs)
}

// A procedure without notes is adopted by the innermost block that encloses all references
// to it.
func TestAdopt(t *testing.T) {
	f := newForest()
	main := f.proc(NoBlock)
	left, right := f.block(f.root(main), main), f.block(f.root(main), main)
	inner := f.block(left, main)
	other := f.proc(NoBlock)
	local := f.proc(inner)

	loop := f.proc(NoBlock)     // jumped to from inner, and by itself
	both := f.proc(NoBlock)     // from inner and from right
	across := f.proc(NoBlock)   // from two procedures that share nothing
	viaLocal := f.proc(NoBlock) // from a procedure whose tick parent is inner, and from left
	even := f.proc(NoBlock)     // mutually recursive with odd
	odd := f.proc(NoBlock)      //
	unused := f.proc(NoBlock)   // from nowhere
	byUnused := f.proc(NoBlock) // from unused and from right
	island1 := f.proc(NoBlock)  // from each other alone
	island2 := f.proc(NoBlock)  //
	worker := f.proc(NoBlock)   // from its own local procedure, and from right
	its := f.proc(f.root(worker))
	below := f.proc(NoBlock) // from loop alone

	b := func(id BlockID, p ProcID) [2]uint32 { return [2]uint32{uint32(id), uint32(p)} }
	orphans := []ProcID{loop, both, across, viaLocal, even, odd, unused, byUnused, island1, island2, worker, below}
	n := f.adopt(orphans,
		b(inner, loop), b(f.root(loop), loop),
		b(inner, both), b(right, both),
		b(right, across), b(f.root(other), across),
		b(f.root(local), viaLocal), b(left, viaLocal),
		b(right, even), b(f.root(odd), even), b(f.root(even), odd),
		b(f.root(unused), byUnused), b(right, byUnused),
		b(f.root(island1), island2), b(f.root(island2), island1),
		b(right, worker), b(f.root(its), worker),
		b(f.root(loop), below),
	)
	for p, want := range map[ProcID]BlockID{
		loop: inner, both: f.root(main), across: NoBlock, viaLocal: left, even: right, odd: f.root(even),
		unused: NoBlock, island1: NoBlock, island2: NoBlock, byUnused: NoBlock, worker: right, below: f.root(loop),
	} {
		if got := f.procs[p].tickParent; got != want || f.procs[p].adopted != (want != NoBlock) {
			t.Errorf("procedure %d: adopted by block %d, want %d", p, got, want)
		}
	}
	if n != 7 {
		t.Errorf("%d found a place, want 7", n)
	}
}

// Whatever refers to whatever: a place encloses all references from outside,
// and following tick parents ends.
func TestAdoptOnRandomForests(t *testing.T) {
	placed := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 4))
		f := newForest()
		var orphans []ProcID
		for range 3 + rng.IntN(12) {
			parent := NoBlock
			if n := len(f.blocks); n > 1 && rng.IntN(3) > 0 {
				parent = BlockID(1 + rng.IntN(n-1))
			}
			p := f.proc(parent)
			at := f.root(p)
			for range rng.IntN(4) {
				next := f.block(at, p)
				if rng.IntN(2) == 0 {
					at = next
				}
			}
			if parent == NoBlock && rng.IntN(2) == 0 {
				orphans = append(orphans, p)
			}
		}
		var refs [][2]uint32
		for range rng.IntN(40) {
			if len(orphans) > 0 {
				refs = append(refs, [2]uint32{uint32(1 + rng.IntN(len(f.blocks)-1)), uint32(orphans[rng.IntN(len(orphans))])})
			}
		}
		placed += f.adopt(orphans, refs...)
		for i := 1; i < len(f.blocks); i++ {
			hops := 0
			f.outwards(BlockID(i), func(BlockID) bool { hops++; return true })
			if hops > len(f.blocks) {
				t.Fatalf("seed %d: the way out of block %d runs in a circle", seed, i)
			}
		}
		for _, r := range refs {
			p := ProcID(r[1])
			if !f.procs[p].adopted {
				continue
			}
			enclosed := false
			f.outwards(BlockID(r[0]), func(b BlockID) bool {
				enclosed = enclosed || b == f.procs[p].tickParent || f.blocks[b].proc == p
				return !enclosed
			})
			if !enclosed {
				t.Fatalf("seed %d: block %d refers to procedure %d and lies neither in it nor in block %d", seed, r[0], p, f.procs[p].tickParent)
			}
		}
	}
	if placed < 100 {
		t.Errorf("only %d procedures found a place in all forests", placed)
	}
}

package footprint

import (
	"encoding/binary"
	"testing"

	"ccagent/agent/census"
	"ccagent/agent/procfs"
	"ccagent/eventlog"
	"ccagent/heap"
	"ccagent/internal/ghc"
)

const (
	space = 0x4200000000
	young = 0x1000 // addresses of generations
	old   = 0x2000
)

// made is a heap of megablocks with the descriptors that a text has, all of it in memory but pages that
// a bit is not set for.
func made(t testing.TB, descriptors []byte, megablocks uint64, absent func(page uint64) bool) *census.Census {
	t.Helper()
	d := &census.Descriptors{
		Generations: []census.Generation{{Address: young}, {Address: old, Number: 1}},
		Space:       [2]uint64{space, space + megablocks*ghc.MegablockBytes},
	}
	for at := uint64(0); at < megablocks; {
		part := make([]byte, heap.DescriptorBytes)
		if from := at * heap.DescriptorBytes; from < uint64(len(descriptors)) {
			copy(part, descriptors[from:])
		}
		f := heap.Groups(space+at*ghc.MegablockBytes, part, megablocks-at, func(g heap.Group) {
			d.Groups = append(d.Groups, g)
		}, func(g heap.Group) { d.Free = append(d.Free, g) })
		at += f.Megablocks
		d.Megablocks += f.Megablocks
	}
	size := megablocks * ghc.MegablockBytes
	pages := procfs.PagesOf(space, space+size, ghc.BlockBytes, func(page uint64) bool { return !absent(page) })
	use := procfs.Usage{Region: procfs.Region{Start: space, End: space + size, Readable: true, Writable: true}, Resident: pages.Resident(space, space+size)}
	return &census.Census{
		Descriptors: d, Tally: heap.NewTally(heap.Layout{}, func(uint64) (heap.Info, bool) { return heap.Info{}, false }),
		Residence: &census.Residence{Mappings: []procfs.Usage{use}, Pages: []*procfs.Pages{pages}, Nurseries: []census.Nursery{{First: space + 5*ghc.BlockDescriptorBytes, Blocks: 3}}},
	}
}

// describe writes a group's descriptor.
func describe(text []byte, megablock, block uint64, free uint64, generation uint64, flags uint16, blocks uint32, link uint64) {
	start := space + megablock*ghc.MegablockBytes + block*ghc.BlockBytes
	d := text[megablock*heap.DescriptorBytes+block*ghc.BlockDescriptorBytes:]
	binary.LittleEndian.PutUint64(d[ghc.BlockStart:], start)
	if free != ^uint64(0) {
		free += start
	}
	binary.LittleEndian.PutUint64(d[ghc.BlockFree:], free)
	binary.LittleEndian.PutUint64(d[ghc.BlockLink:], link)
	binary.LittleEndian.PutUint64(d[ghc.BlockGen:], generation)
	binary.LittleEndian.PutUint16(d[ghc.BlockFlags:], flags)
	binary.LittleEndian.PutUint32(d[ghc.BlockCount:], blocks)
}

func sum(f *Footprint) (n uint64) {
	for i := range f.Parts {
		n += f.Parts[i].Bytes
	}
	return n
}

// A heap of three megablocks is divided as it was made: one that a pinned block holds, one that is free, and one with live
// data and a nursery, of which a page is not in memory.
func TestOfAMadeHeap(t *testing.T) {
	const none = ^uint64(0)
	text := make([]byte, 3*heap.DescriptorBytes)
	link := func(block uint64) uint64 { return space + block*ghc.BlockDescriptorBytes }
	describe(text, 0, 4, 100, old, ghc.BlockEvacuated, 1, 0)
	describe(text, 0, 5, 0, young, 0, 1, link(7))
	describe(text, 0, 6, 5000, old, ghc.BlockEvacuated, 1, 0) // beyond its end
	describe(text, 0, 7, 0, young, 0, 1, link(5))             // leads back
	describe(text, 0, 8, 3*ghc.BlockBytes+8, old, ghc.BlockEvacuated|ghc.BlockLarge, 248, 0)
	describe(text, 1, 4, 2000, old, ghc.BlockEvacuated|ghc.BlockLarge|ghc.BlockPinned, 1, 0)
	describe(text, 1, 5, none, 0, 0, 251, 0)
	describe(text, 2, 4, none, 0, 0, 252, 0)
	f := Of(made(t, text, 3, func(page uint64) bool { return page == 9 })) // of the large object, the second
	got := map[eventlog.FootprintKind]uint64{}
	for _, p := range f.Parts {
		got[p.Kind] += p.Bytes
	}
	const k = ghc.BlockBytes
	for kind, want := range map[eventlog.FootprintKind]uint64{
		eventlog.FootprintLive: 100, eventlog.FootprintNursery: 2 * k, eventlog.FootprintLarge: 2*k + 8, eventlog.FootprintPinned: k,
		eventlog.FootprintBlockEnds: k - 100 + 245*k - 8, eventlog.FootprintFreeBlocks: 251 * k, eventlog.FootprintFree: 256 * k,
		eventlog.FootprintRTS: 8 * k, eventlog.FootprintHeapOther: k,
	} {
		if got[kind] != want {
			t.Errorf("%v has %d bytes, want %d", kind, got[kind], want)
		}
	}
	if sum(f) != f.Resident || f.Resident != (3*256-1)*k {
		t.Errorf("the sum is %d of %d", sum(f), f.Resident)
	}
	if len(f.Pins) != 1 || f.Pins[0] != (eventlog.FootprintPin{Kind: eventlog.FootprintPinned, Megablocks: 1, Free: 251 * k, Held: k, Count: 1}) {
		t.Errorf("pins: %+v", f.Pins)
	}
}

// Of a census that has counted a part of the heap, the number of threads is estimated like all else, and no list of stacks is
// taken for that of the largest.
func TestThreadsOfAPart(t *testing.T) {
	layout, ok := heap.LayoutOf("9.0.2", false, false)
	if !ok {
		t.Fatal("no layout")
	}
	tso := heap.Info{Type: ghc.TSO}
	tables := func(uint64) (heap.Info, bool) { return tso, true }
	words, _ := layout.Size(tso, make([]uint64, 64))
	part := heap.NewTally(layout, tables)
	part.Threads = []heap.ThreadStack{}
	text := make([]uint64, 2*words)
	text[0], text[words] = 8, 8
	part.Add(text)
	c := made(t, nil, 1, func(uint64) bool { return false })
	c.Tally = part
	if f := Of(c); f.Threads != 2 || len(f.Stacks) != 2 || len(f.Notes) != 0 {
		t.Errorf("of all: %d threads, %+v, %q", f.Threads, f.Stacks, f.Notes)
	}
	c.Tally = heap.NewTally(layout, tables)
	c.Tally.Threads = []heap.ThreadStack{}
	c.Tally.AddTimes(part, 10)
	c.Draw = &census.Draw{Megablocks: 100, Drawn: 10}
	if f := Of(c); f.Threads != 20 || len(f.Stacks) != 0 || len(f.Notes) != 1 {
		t.Errorf("of a tenth: %d threads, %+v, %q", f.Threads, f.Stacks, f.Notes)
	}
}

// Whatever descriptors say, no page is in two parts, and all are in one.
func FuzzOf(f *testing.F) {
	text := make([]byte, 2*heap.DescriptorBytes)
	describe(text, 0, 5, 0, young, 0, 1, space+5*ghc.BlockDescriptorBytes) // a nursery that leads to itself
	describe(text, 0, 6, 10, old, ghc.BlockLarge, 400, 0)
	f.Add(text[:10*ghc.BlockDescriptorBytes], uint64(2), uint64(0))
	f.Fuzz(func(t *testing.T, descriptors []byte, megablocks, lazy uint64) {
		megablocks = megablocks%4 + 1
		c := made(t, descriptors, megablocks, func(page uint64) bool { return page%64 < lazy%64 })
		c.Residence.Mappings[0].LazyFree = lazy
		got := Of(c)
		if sum(got) != got.Resident {
			t.Errorf("the sum of the parts is %d of %d: %+v", sum(got), got.Resident, got.Parts)
		}
		var free uint64
		for _, p := range got.Pins {
			free += p.Free
		}
		if free > got.Resident || got.Partly > megablocks {
			t.Errorf("pins: %+v", got.Pins)
		}
	})
}

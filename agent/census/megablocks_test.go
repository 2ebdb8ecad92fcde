package census

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"ccagent/agent/process"
	"ccagent/heap"
	"ccagent/internal/ghc"
)

// made is memory of this process that is laid out as a run-time system's, in whole megablocks.
type made struct {
	text []byte
	at   uint64
}

func makeMemory(t *testing.T, megablocks int) *made {
	t.Helper()
	all, err := unix.Mmap(-1, 0, (megablocks+1)*ghc.MegablockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(all) })
	at := uint64(uintptr(unsafe.Pointer(&all[0])))
	skip := -at & (ghc.MegablockBytes - 1)
	return &made{all[skip:][:megablocks*ghc.MegablockBytes], at + skip}
}

// reader reads this process.
func (m *made) reader(found *Found) *Reader {
	return &Reader{PID: os.Getpid(), Memory: process.NewImage(uint32(os.Getpid()), 0).Memory, found: found}
}

func (m *made) put(at, word uint64) { binary.LittleEndian.PutUint64(m.text[at-m.at:], word) }

// A program whose generations are fewer than they were has its census dropped: what they say may change at any time.
func TestFewerGenerations(t *testing.T) {
	m := makeMemory(t, 1)
	const size = 512
	for i := range uint64(3) {
		m.put(m.at+i*size+ghc.GenerationNo, i)
		m.put(m.at+i*size+ghc.GenerationTo, m.at+min(i+1, 2)*size)
	}
	r := m.reader(&Found{Generations: m.at})
	before, err := r.generations()
	if err != nil || len(before) != 3 || r.collected(before, 0) != nil {
		t.Fatalf("%+v: %v", before, err)
	}
	m.put(m.at+size+ghc.GenerationCollections, 1)
	if err := r.collected(before, 0); !errors.Is(err, ErrCollected) {
		t.Errorf("of a collection of the second: %v", err)
	}
	if err := r.collected(before, 2); err != nil {
		t.Errorf("of no collection of the last: %v", err)
	}
	m.put(m.at+size+ghc.GenerationTo, m.at+size)
	if err := r.collected(before, 0); !errors.Is(err, ErrCollected) {
		t.Errorf("of two generations in place of three: %v", err)
	}
	if err := r.collected(before, 2); !errors.Is(err, ErrCollected) {
		t.Errorf("of two generations in place of three: %v", err)
	}
}

// Links of a nursery are followed in the heap alone, and through many megablocks not longer than the program may stand.
func TestFilledIsBounded(t *testing.T) {
	const blocks, first = leastDrawn + 8, 4
	m := makeMemory(t, blocks+1) // of which the last is behind the heap
	descriptor := func(i uint64) uint64 { return m.at + i*ghc.MegablockBytes + first*ghc.BlockDescriptorBytes }
	for i := range uint64(blocks + 1) {
		d := descriptor(i)
		start := heap.DescribedBy(d)
		m.put(d+ghc.BlockStart, start)
		m.put(d+ghc.BlockFree, start+8)
		m.put(d+ghc.BlockLink, descriptor(i+1))
		m.put(d+ghc.BlockCount, ghc.BlocksPerMegablock)
	}
	base := m.at + blocks*ghc.MegablockBytes // of the capability
	nursery := base + 8192
	m.put(base+ghc.BaseNursery, nursery)
	m.put(nursery+ghc.NurseryFirst, descriptor(0))
	r := m.reader(&Found{Capabilities: []uint64{base}})
	d := &Descriptors{Space: [2]uint64{m.at, base}, Megablocks: blocks}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		current uint64 // the megablock whose block is filled
		until   uint64
		ctx     context.Context
		want    error
	}{
		{blocks - 1, 0, t.Context(), nil}, {3, 1, t.Context(), nil}, {blocks - 1, 1, t.Context(), ErrPause}, {blocks, 0, t.Context(), ErrContradiction},
		{blocks - 1, 0, ended, context.Canceled}, {3, 0, ended, nil},
	} {
		m.put(base+ghc.BaseCurrentNursery, descriptor(c.current))
		lists, err := r.currents()
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.filled(c.ctx, d, lists, c.until)
		if !errors.Is(err, c.want) || c.want == nil && len(got) != int(c.current)+1 {
			t.Errorf("up to megablock %d until %d: %d blocks, %v", c.current, c.until, len(got), err)
		}
	}
	// A list that ends is not one to a block that comes later.
	m.put(descriptor(1)+ghc.BlockLink, 0)
	if got, err := r.filled(t.Context(), d, []current{{descriptor(0), descriptor(3)}}, 0); !errors.Is(err, ErrContradiction) {
		t.Errorf("of a list that ends before the block that is filled: %d blocks, %v", len(got), err)
	}
	if got, err := r.filled(t.Context(), d, []current{{descriptor(0), 0}}, 0); err != nil || len(got) != 2 {
		t.Errorf("of a list that was given up: %d blocks, %v", len(got), err)
	}
	if got, err := r.filled(t.Context(), d, []current{{0, descriptor(3)}}, 0); !errors.Is(err, ErrContradiction) {
		t.Errorf("of a list without a block: %d blocks, %v", len(got), err)
	}
}

// A census reads some megablocks after the program has been let go on. It leaves out the groups of blocks there that were promoted to the oldest
// generation meanwhile. If it cannot tell which these are, it counts none of the megablocks that it read then.
func TestNewGroupsAreLeftOut(t *testing.T) {
	const heapBlocks, first, size = 6, 4, 512
	m := makeMemory(t, heapBlocks+1) // of which the last has the generations
	generations := m.at + heapBlocks*ghc.MegablockBytes
	descriptor := func(i uint64) uint64 { return m.at + i*ghc.MegablockBytes + first*ghc.BlockDescriptorBytes }
	start := func(i uint64) uint64 { return heap.DescribedBy(descriptor(i)) }
	link := func(all ...uint64) uint64 { // the list of some megablocks' groups
		for k, i := range all[:len(all)-1] {
			m.put(descriptor(i)+ghc.BlockLink, descriptor(all[k+1]))
		}
		return descriptor(all[0])
	}
	oldest := generations + size
	collections := uint64(1)
	for _, c := range []struct {
		name string
		now  func()
		want []uint64
	}{
		{"nothing is new", func() {}, []uint64{0, 1, 2, 3, 4, 5}},
		{"a young collection brings nothing", func() { m.put(generations+ghc.GenerationCollections, 8) }, []uint64{0, 1, 2, 3, 4, 5}},
		{"small ones are new", func() { m.put(oldest+ghc.GenerationBlocks, link(5, 3, 0)) }, []uint64{0, 1, 2, 4}},
		{"a large one is new", func() { m.put(oldest+ghc.GenerationLargeObjects, link(4, 2)) }, []uint64{0, 1, 2, 3, 5}},
		{"a region is new", func() { m.put(oldest+ghc.GenerationRegions, descriptor(5)) }, []uint64{0, 1, 2, 3, 4}},
		{"a list leads to itself", func() { m.put(oldest+ghc.GenerationBlocks, link(5, 3, 5)) }, nil},
		{"a list leads out of the heap", func() {
			m.put(oldest+ghc.GenerationBlocks, link(5, 3))
			m.put(descriptor(3)+ghc.BlockLink, generations)
		}, nil},
		{"a list ends", func() { m.put(oldest+ghc.GenerationBlocks, descriptor(1)) }, nil},
		{"it was collected", func() { collections++; m.put(oldest+ghc.GenerationCollections, collections) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range uint64(2) {
				m.put(generations+i*size+ghc.GenerationNo, i)
				m.put(generations+i*size+ghc.GenerationTo, oldest)
			}
			m.put(generations+ghc.GenerationCollections, 7)
			m.put(oldest+ghc.GenerationWords, 1000)
			for i := range uint64(heapBlocks) {
				d := descriptor(i)
				m.put(d+ghc.BlockStart, start(i))
				m.put(d+ghc.BlockFree, start(i)+8)
				m.put(d+ghc.BlockLink, 0)
				m.put(d+ghc.BlockCount, ghc.BlocksPerMegablock)
			}
			m.put(oldest+ghc.GenerationBlocks, link(0, 1))
			m.put(oldest+ghc.GenerationLargeObjects, descriptor(2))
			m.put(oldest+ghc.GenerationRegions, 0)
			r := m.reader(&Found{Generations: generations})
			before, err := r.generations()
			if err != nil {
				t.Fatal(err)
			}
			w := &drawing{d: &Descriptors{Generations: before, Space: [2]uint64{m.at, generations}, Megablocks: heapBlocks}, all: heapBlocks, buf: make([]byte, heap.DescriptorBytes)}
			for i := range uint64(heapBlocks) {
				w.units = append(w.units, unit{at: m.at + i*ghc.MegablockBytes})
			}
			c.now()
			if err := r.extend(w); err != nil {
				t.Fatal(err)
			}
			var got []uint64
			for i := range w.units[:w.read] {
				for _, g := range w.units[i].groups {
					got = append(got, (g.Start-m.at)/ghc.MegablockBytes)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("groups of the megablocks %v are counted, want %v", got, c.want)
			}
		})
	}
}

// A large object that the program has allocated since the collection is in none of the megablocks that were read later.
func TestAllocatedSinceIsLeftOut(t *testing.T) {
	groups := func() []heap.Group {
		return []heap.Group{{Start: 1, Generation: 7, Flags: ghc.BlockLarge}, {Start: 2, Generation: 7, Flags: ghc.BlockLarge | ghc.BlockEvacuated}, {Start: 3, Generation: 7, Flags: ghc.BlockEvacuated}, {Start: 4, Generation: 8, Flags: ghc.BlockLarge}}
	}
	w := &drawing{d: &Descriptors{Generations: []Generation{{Address: 7}, {Address: 8}}}, units: []unit{{groups: groups()}, {groups: groups()}}, read: 2}
	w.dropAllocated(1)
	if later := w.units[1].groups; len(w.units[0].groups) != 4 || len(later) != 3 || later[0].Start != 2 {
		t.Errorf("%+v", w.units)
	}
}

// Younger generations are found whole by their lists, or not at all.
func TestYoungByLists(t *testing.T) {
	const first = 4
	m := makeMemory(t, 3)
	end := m.at + 3*ghc.MegablockBytes
	descriptor := func(i uint64) uint64 { return m.at + i*ghc.MegablockBytes + first*ghc.BlockDescriptorBytes }
	for i := range uint64(3) {
		d := descriptor(i)
		m.put(d+ghc.BlockStart, heap.DescribedBy(d))
		m.put(d+ghc.BlockFree, heap.DescribedBy(d)+8)
		m.put(d+ghc.BlockCount, 1)
		m.put(d+ghc.BlockGen, i/2) // their generations' addresses
	}
	r := m.reader(nil)
	for _, c := range []struct {
		name       string
		from, link uint64
		until      uint64
		want       int
		ok         bool
	}{
		{"a list", descriptor(1), 0, math.MaxUint64, 2, true},
		{"none", 0, 0, math.MaxUint64, 1, true},
		{"one of the oldest generation", descriptor(2), 0, math.MaxUint64, 1, true},
		{"no time", descriptor(1), 0, 1, 0, false},
		{"to itself", descriptor(1), descriptor(1), math.MaxUint64, 0, false},
		{"out of the heap", descriptor(1), end, math.MaxUint64, 0, false},
		{"to no descriptor", descriptor(1), descriptor(2) + 8, math.MaxUint64, 2, true},
	} {
		m.put(descriptor(1)+ghc.BlockLink, c.link)
		d := &Descriptors{Generations: []Generation{{Lists: [3]uint64{c.from, descriptor(0)}}, {Address: 1, Lists: [3]uint64{descriptor(2)}}}, Space: [2]uint64{m.at, end}}
		if all, ok := r.young(d, c.until); ok != c.ok || len(all) != c.want {
			t.Errorf("%s: %d groups, %v", c.name, len(all), ok)
		}
	}
}

// No more megablocks are read of a heap that claims to have more groups than are kept.
func TestGroupsAreBounded(t *testing.T) {
	m := makeMemory(t, 1)
	r := m.reader(nil)
	w := &drawing{d: &Descriptors{Generations: make([]Generation, 1)}, units: []unit{{at: m.at}}, all: 1, known: maxGroups - 1}
	w.d.Free = make([]heap.Group, 1)
	if err := r.extend(w); err != nil || w.read != 0 || !w.full() {
		t.Errorf("%d were read: %v", w.read, err)
	}
}

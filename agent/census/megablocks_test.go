package census

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
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
	if _, err := r.promoted(before); !errors.Is(err, ErrCollected) {
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

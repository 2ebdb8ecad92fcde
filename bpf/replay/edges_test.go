//go:build linux && cgo

package replay

import (
	"cmp"
	"encoding/binary"
	"slices"
	"testing"

	"ccagent/bpf/replay/snapshot"
)

// Registers of x86-64, numbered as in the kernel's pt_regs.
const (
	x86Base = 2  // r13
	x86Sp   = 4  // rbp, Haskell's
	x86CSp  = 19 // rsp
)

// word returns the bytes of a word of a target's memory, nil if it is not there.
func word(target *Target, address uint64) []byte {
	for _, m := range target.Memory {
		if address >= m.Address && address+8 <= m.Address+uint64(len(m.Bytes)) {
			return m.Bytes[address-m.Address:][:8]
		}
	}
	return nil
}

// wholeTarget makes a target from a snapshot, to be modified by a test.
func wholeTarget(t *testing.T, name string) (Target, Record) {
	t.Helper()
	target := FromSnapshot(readSnapshot(t, name), SnapshotFrames)
	r, err := Walk(target)
	if err != nil {
		t.Fatal(err)
	}
	target.Registers = slices.Clone(target.Registers)
	target.Memory = slices.Clone(target.Memory)
	for i := range target.Memory {
		target.Memory[i].Bytes = slices.Clone(target.Memory[i].Bytes)
	}
	return target, r
}

// A C stack is unwound although it begins at the beginning of a page and the page below is
// not mapped.
func TestCStackAtItsLastPage(t *testing.T) {
	target, want := wholeTarget(t, "9.0.2/O2/unsafe")
	const page = 0x7ffd_0000_1000
	var moved []byte
	for address := target.Registers[x86CSp]; word(&target, address) != nil; address += 8 {
		moved = append(moved, word(&target, address)...)
	}
	moved = append(moved, make([]byte, 64)...)
	for below := uint64(0); below < 64; below += 8 {
		address := page + below
		target.Registers[x86CSp] = address
		memory := append(slices.Clone(target.Memory), snapshot.Segment{Address: page, Bytes: append(make([]byte, below), moved...)})
		changed := target
		changed.Memory = memory
		r, err := Walk(changed)
		if err != nil {
			t.Fatal(err)
		}
		if r.Stop != want.Stop || r.Flags != want.Flags || !slices.Equal(r.Frames, want.Frames) {
			t.Errorf("%d bytes above the page's beginning: stop %s, flags %#x, %d frames; want %s, %#x, %d",
				below, Stop(r.Stop), r.Flags, len(r.Frames), Stop(want.Stop), want.Flags, len(want.Frames))
		}
	}
}

// A walk succeeds while the RTS changes stack chunks: the thread already has the next chunk,
// and Sp is still at the underflow frame of the previous one.
func TestBetweenChunks(t *testing.T) {
	target, want := wholeTarget(t, "9.0.2/O2/underflow")
	read := func(address uint64) uint64 {
		t.Helper()
		w := word(&target, address)
		if w == nil {
			t.Fatalf("the snapshot has no word at %#x", address)
		}
		return binary.LittleEndian.Uint64(w)
	}
	const currentTSO = 872
	stackobj := word(&target, read(target.Registers[x86Base]+currentTSO)+uint64(target.Layout.TsoStackobj))
	stack := binary.LittleEndian.Uint64(stackobj)
	words := read(stack+uint64(target.Layout.StackSize)) & 0xffffffff
	underflow := stack + uint64(target.Layout.StackFirst) + 8*words - 16
	target.Registers[x86Sp] = underflow
	next := read(underflow + 8)
	binary.LittleEndian.PutUint64(stackobj, next)
	// The walk ends there: the snapshot has no more of the chunk.
	stop := binary.LittleEndian.AppendUint64(nil, want.Frames[len(want.Frames)-1].Address)
	target.Memory = append(target.Memory, snapshot.Segment{
		Address: read(next + uint64(target.Layout.StackSp)), Bytes: append(stop, make([]byte, 2048)...)})
	slices.SortFunc(target.Memory, func(a, b snapshot.Segment) int { return cmp.Compare(a.Address, b.Address) })
	r, err := Walk(target)
	if err != nil {
		t.Fatal(err)
	}
	if Stop(r.Stop) != StopRoot || r.Tso != want.Tso || len(r.Frames) != 3 || r.Frames[1].Kind != KindUnderflow {
		t.Errorf("stop %s, thread %d, frames %v; want the underflow frame and the root of thread %d", Stop(r.Stop), r.Tso, r.Frames, want.Tso)
	}

	// An underflow frame that does not lead to the thread's chunk is rejected.
	binary.LittleEndian.PutUint64(stackobj, next+8)
	if r, err = Walk(target); err != nil {
		t.Fatal(err)
	}
	if Stop(r.Stop) == StopRoot {
		t.Errorf("stop %s with a chunk that is not the next", Stop(r.Stop))
	}
}

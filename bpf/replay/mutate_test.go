//go:build linux && cgo

package replay

import (
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"ccagent/bpf"
	"ccagent/bpf/replay/snapshot"
)

// mutator damages a target by a program of instructions of four bytes each: what, where (two
// bytes), how.
type mutator struct {
	t *Target
}

func mutate(t Target, program []byte) Target {
	t.Registers = slices.Clone(t.Registers)
	t.Memory = slices.Clone(t.Memory)
	m := mutator{t: &t}
	for i := range t.Memory {
		t.Memory[i].Bytes = slices.Clone(t.Memory[i].Bytes)
	}
	const most = 64
	for n := 0; len(program) >= 4 && n < most; n++ {
		m.step(program[0], int(binary.LittleEndian.Uint16(program[1:])), program[3])
		program = program[4:]
	}
	return t
}

func (m *mutator) step(what byte, where int, how byte) {
	t := m.t
	switch what % 8 {
	case 0: // a register
		r := &t.Registers[where%len(t.Registers)]
		*r = m.damage(*r, how)
	case 1, 2, 3, 4: // a word of memory
		if len(t.Memory) == 0 {
			return
		}
		bytes := t.Memory[where%len(t.Memory)].Bytes
		words := len(bytes) / 8
		if words == 0 {
			return
		}
		at := bytes[where/len(t.Memory)*8%(words*8):]
		if len(at) < 8 {
			return
		}
		binary.LittleEndian.PutUint64(at, m.damage(binary.LittleEndian.Uint64(at), how))
	case 5: // a field of the layout, but for the incarnation, which does not come from the target
		layout := unsafe.Slice((*byte)(unsafe.Pointer(&t.Layout)), unsafe.Sizeof(t.Layout))
		layout[where%len(layout)] ^= how
		t.Layout.Incarnation = max(1, t.Layout.Incarnation)
	case 6: // memory that cannot be read
		if len(t.Memory) > 0 {
			i := where % len(t.Memory)
			t.Memory = slices.Delete(t.Memory, i, i+1)
		}
	case 7: // memory that ends early
		if len(t.Memory) > 0 {
			s := &t.Memory[where%len(t.Memory)]
			s.Bytes = s.Bytes[:len(s.Bytes)*int(how)/256]
		}
	}
}

// damage returns a damaged word that looks like something plausible.
func (m *mutator) damage(word uint64, how byte) uint64 {
	switch how % 8 {
	case 0:
		return word ^ 1<<(how/8*2)
	case 1:
		return word + 8*uint64(how/8)
	case 2:
		return word - 8*uint64(how/8)
	case 3:
		return 0
	case 4:
		return ^uint64(0) >> (how / 8)
	case 5, 6: // an address within the snapshot's memory
		if len(m.t.Memory) > 0 {
			s := m.t.Memory[int(how/8)*len(m.t.Memory)/32]
			return s.Address + 8*uint64(how/8)
		}
		return word
	default:
		return m.t.Registers[int(how/8)%len(m.t.Registers)]
	}
}

// maxIterations is above the sum of the limits of a walk's loops: frames of C, leaf and root
// part (folded ones included), chunks followed, words searched, regions and rows searched
// for every C frame.
const maxIterations = 3*bpf.MaxFrames + 2*2048 + 64*(64+32)

// check checks what holds for every record, whatever was walked.
func check(t *testing.T, r *Record, budget int) {
	t.Helper()
	switch {
	case Stop(r.Stop) > StopLast:
		t.Errorf("stop reason %d is none", r.Stop)
	case r.Iterations > maxIterations:
		t.Errorf("%d iterations", r.Iterations)
	case r.Reads > r.Iterations*20+100:
		t.Errorf("%d reads in %d iterations", r.Reads, r.Iterations)
	case len(r.Frames) == 0 || r.Frames[0].Kind != KindPC:
		t.Errorf("the first frame is not where it was: %v", r.Frames)
	case len(r.Frames) > budget+1+1+64:
		t.Errorf("%d frames, with a budget of %d", len(r.Frames), budget)
	}
	for i, f := range r.Frames {
		if f.Kind > KindFolded || f.Kind == KindKernel {
			t.Errorf("frame %d is of kind %s", i, f.Kind)
		}
		if f.Kind == KindFolded && (f.Address < 1 || f.Address > uint64(i)) {
			t.Errorf("frame %d says that %d frames are folded", i, f.Address)
		}
	}
	last := r.Frames[len(r.Frames)-1].Kind
	if stop := Stop(r.Stop); (stop == StopRoot || stop == StopRecovered) && last != KindStop {
		t.Errorf("stop reason %s, but the last frame is %s", stop, last)
	}
}

// A walk of damaged memory always ends, within a limit of iterations and with a stop reason.
func FuzzWalk(f *testing.F) {
	var targets []Target
	for _, name := range snapshots(f) {
		targets = append(targets, FromSnapshot(readSnapshot(f, name), SnapshotFrames))
	}
	for i := range len(targets) {
		if i%37 == 0 {
			f.Add(uint16(i), uint16(SnapshotFrames), []byte{byte(i), 3, byte(i), 13, 1, byte(i), 0, byte(i * 5)})
		}
	}
	f.Fuzz(func(t *testing.T, which, budget uint16, program []byte) {
		target := mutate(targets[int(which)%len(targets)], program)
		target.MaxFrames = 1 + int(budget)%bpf.MaxLeafFrames
		r, err := Walk(target)
		if err != nil {
			t.Fatal(err)
		}
		check(t, &r, target.MaxFrames)
		// Walk the same memory with the other register map.
		target.Arch = snapshot.ARM64
		target.Registers = append(slices.Clone(target.Registers), target.Registers[:13]...)
		if r, err = Walk(target); err != nil {
			t.Fatal(err)
		}
		check(t, &r, target.MaxFrames)
	})
}

package bpf

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/cilium/ebpf"
)

// walkMemory is the memory of some walks, of which each CPU has as many as any other.
type walkMemory struct {
	*ebpf.Memory
	walks int64
}

// walkSize is the size of a struct walk.
const walkSize = int64(unsafe.Sizeof(samplerWalk{}))

// number gives every walk its index.
func (m *walkMemory) number() error {
	for i := range m.walks {
		if err := m.put(i, unsafe.Offsetof(samplerWalk{}.Slot), uint32(i)); err != nil {
			return fmt.Errorf("number the walks: %w", err)
		}
	}
	return nil
}

// set sets a field of every walk.
func (m *walkMemory) set(offset uintptr, value uint32) error {
	for i := range m.walks {
		if err := m.put(i, offset, value); err != nil {
			return err
		}
	}
	return nil
}

func (m *walkMemory) put(walk int64, offset uintptr, value uint32) error {
	_, err := m.WriteAt(binary.NativeEndian.AppendUint32(nil, value), walk*walkSize+int64(offset))
	return err
}

// setKeep makes the programs that use the walks sample only a random part of their runs, in 0..1.
func (m *walkMemory) setKeep(part float64) error {
	if err := m.set(unsafe.Offsetof(samplerWalk{}.Keep), threshold(part)); err != nil {
		return fmt.Errorf("set the density of samples: %w", err)
	}
	return nil
}

// threshold is the largest random number at which a part, in 0..1, of all runs samples.
func threshold(part float64) uint32 {
	if part >= 1 {
		return math.MaxUint32
	}
	return uint32(part * math.MaxUint32)
}

// addStats adds the counts of the walks to those of their CPUs.
func (m *walkMemory) addStats(stats []Stats) error {
	var count samplerWalkStats
	buf := make([]byte, unsafe.Sizeof(count))
	for i := range m.walks {
		if _, err := m.ReadAt(buf, i*walkSize+int64(unsafe.Offsetof(samplerWalk{}.Stats))); err != nil {
			return err
		}
		if _, err := binary.Decode(buf, binary.NativeEndian, &count); err != nil {
			return err
		}
		to := &stats[i%int64(len(stats))]
		to.Samples += count.Samples
		to.Nested += count.Nested
		to.Thinned += count.Thinned
		to.Waits += count.Waits
		to.WaitNs += count.WaitNs
	}
	return nil
}

// Absent visits what walks have found not to be in the page tables of processes since the last call, one place a walk at the most, with the process's
// id. Where it is read by other means the kernel brings it in, and later walks can read it.
func (s *Sampler) Absent(visit func(pid uint32, addr uint64)) error {
	for _, m := range s.walks {
		if err := m.absent(visit); err != nil {
			return fmt.Errorf("read what walks could not: %w", err)
		}
	}
	return nil
}

func (m *walkMemory) absent(visit func(pid uint32, addr uint64)) error {
	const offset = int64(unsafe.Offsetof(samplerWalk{}.Absent))
	const pid = int64(unsafe.Offsetof(samplerWalk{}.AbsentIn)) - offset
	var none [8]byte
	var found [pid + 4]byte
	for i := range m.walks {
		at := i*walkSize + offset
		if _, err := m.ReadAt(found[:], at); err != nil {
			return err
		}
		addr := binary.NativeEndian.Uint64(found[:])
		if addr == 0 {
			continue
		}
		if _, err := m.WriteAt(none[:], at); err != nil {
			return err
		}
		visit(binary.NativeEndian.Uint32(found[pid:]), addr)
	}
	return nil
}

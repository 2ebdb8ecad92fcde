package rts

import (
	"encoding/binary"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
)

// defaultMajor is the number of the oldest generation of programs that do not ask for another (+RTS -G2).
const defaultMajor = 1

// writeHeapInfo writes the heap's parameters, which the program sets before its first GC or
// thread.
func (i *image) writeHeapInfo(at uint64) error {
	s := i.sites
	var flags [ghc.FlagsAllocArea + 4]byte
	var oldest [8]byte
	var number [4]byte
	peek := func(addr uint64, into []byte) bool {
		_, err := i.im.Memory.ReadAt(into, int64(addr))
		return err == nil
	}
	if s.OldestGeneration == 0 || s.Flags == 0 || !peek(s.Flags+i.bias, flags[:]) || !peek(s.OldestGeneration+i.bias, oldest[:]) ||
		!peek(binary.NativeEndian.Uint64(oldest[:]), number[:]) {
		i.translator.MajorGeneration = defaultMajor // it has ended since
		return nil
	}
	generation := binary.NativeEndian.Uint32(number[:])
	if generation > 64 {
		return nil // not what it was taken for
	}
	i.translator.MajorGeneration = int(generation)
	return i.im.Log.EmitOn(at, eventlog.NoCap, &eventlog.HeapInfo{
		Generations: uint16(generation + 1),
		MaxHeap:     uint64(binary.NativeEndian.Uint32(flags[ghc.FlagsMaxHeap:])) * ghc.BlockBytes,
		AllocArea:   uint64(binary.NativeEndian.Uint32(flags[ghc.FlagsAllocArea:])) * ghc.BlockBytes,
		MBlock:      ghc.MegablockBytes,
		Block:       ghc.BlockBytes,
	})
}

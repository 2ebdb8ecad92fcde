//go:build linux && cgo

package replay

/*
#include "walker.h"
*/
import "C"

import (
	"encoding/binary"
	"unsafe"

	"ccagent/bpf/replay/snapshot"
)

// Flat encodes a target for sanitize/driver.c.
func (t *Target) Flat() []byte {
	tables := t.Tables
	if tables == nil {
		tables = &Tables{}
	}
	var arm64 uint64
	if t.Arch == snapshot.ARM64 {
		arm64 = 1
	}
	var ranges []C.struct_replay_range
	var blob []byte
	for _, m := range t.Memory {
		ranges = append(ranges, C.struct_replay_range{
			address: C.u64(m.Address), length: C.u64(len(m.Bytes)), offset: C.u64(len(blob)),
		})
		blob = append(blob, m.Bytes...)
	}
	var out []byte
	block := func(b []byte) {
		out = binary.NativeEndian.AppendUint64(out, uint64(len(b)))
		out = append(out, b...)
	}
	block(bytesOf([]uint64{arm64, uint64(t.MaxFrames), t.Task, t.ThreadPointer}))
	block(bytesOf(t.Registers))
	block(bytesOf([]C.struct_process_layout{*(*C.struct_process_layout)(unsafe.Pointer(&t.Layout))}))
	block(bytesOf([]C.struct_process_regions{tables.regions}))
	block(bytesOf(tables.rows))
	block(bytesOf(tables.rules))
	block(bytesOf(tables.buckets))
	block(bytesOf(ranges))
	block(blob)
	return out
}

// bytesOf returns the bytes of the elements in memory.
func bytesOf[T any](elements []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(elements))), len(elements)*int(unsafe.Sizeof(zero)))
}

// FlatRecord encodes a record as the driver does.
func FlatRecord(r *Record) []byte {
	out := append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(&r.SampleHeader)), unsafe.Sizeof(r.SampleHeader))...)
	for _, f := range r.Frames {
		out = binary.NativeEndian.AppendUint64(out, uint64(f.Kind)<<C.FRAME_KIND_SHIFT|f.Address)
	}
	return out
}

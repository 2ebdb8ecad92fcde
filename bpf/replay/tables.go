//go:build linux && cgo

package replay

/*
#include "walker.h"
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unsafe"

	"ccagent/bpf"
	"ccagent/bpf/replay/snapshot"
)

// Tables are the maps of call frame information, with the regions of one process.
type Tables struct {
	rows    []C.struct_unwind_row
	rules   []C.struct_unwind_rule
	buckets []C.struct_unwind_bucket
	regions C.struct_process_regions
}

// ErrRegions is returned if a process would have more than MaxRegions regions.
var ErrRegions = errors.New("add call frame information: too many regions")

// Add adds a mapping of a module with its compiled call frame information, encoded as for
// bpf.Sampler.AddTable.
func (t *Tables) Add(start, end, base uint64, rows, rules []byte) error {
	n := t.regions.count
	if n >= C.MAX_REGIONS {
		return ErrRegions
	}
	buckets := bpf.Buckets(rows)
	t.regions.regions[n] = C.struct_unwind_region{
		start: C.u64(start), end: C.u64(end), base: C.u64(base),
		first_row: C.u32(len(t.rows)), first_rule: C.u32(len(t.rules)), first_bucket: C.u32(len(t.buckets)),
		bucket_count: C.u32(len(buckets) / int(unsafe.Sizeof(C.struct_unwind_bucket{}))),
	}
	t.regions.count++
	t.regions.version = 1
	t.rows = appendBytes(t.rows, rows)
	t.rules = appendBytes(t.rules, rules)
	t.buckets = appendBytes(t.buckets, buckets)
	return nil
}

// appendBytes appends whole elements, given by their bytes in memory.
func appendBytes[T any](to []T, b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	for ; len(b) >= size; b = b[size:] {
		to = append(to, *(*T)(unsafe.Pointer(&slices.Clone(b[:size])[0])))
	}
	return to
}

// maxRowBytes limits the code that one row of a snapshot covers.
const maxRowBytes = 1 << 20

// TablesOf makes tables from a snapshot's rows, with a region for each row. Rows that the
// walker cannot express are left out.
func TablesOf(s *snapshot.Snapshot) *Tables {
	t := &Tables{}
	var saved []uint8
	switch s.Arch {
	case snapshot.X86:
		saved = []uint8{6, 3, 12, 13, 14, 15}
	case snapshot.ARM64:
		saved = []uint8{29, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28}
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		rule, ok := ruleOf(r, saved)
		if !ok || r.Hi <= r.Lo || r.Hi-r.Lo > maxRowBytes {
			continue
		}
		row := make([]byte, bpf.UnwindRowSize) // address 0 from the region's base, rule 0
		end := binary.NativeEndian.AppendUint32(nil, uint32(r.Hi-r.Lo))
		end = binary.NativeEndian.AppendUint32(end, 1)
		rules := unsafe.Slice((*byte)(unsafe.Pointer(&rule)), unsafe.Sizeof(rule))
		if t.Add(r.Lo, r.Hi, r.Lo, append(row, end...), append(slices.Clone(rules), make([]byte, len(rules))...)) != nil {
			break
		}
	}
	return t
}

// ruleOf converts a row to a rule of the walker.
func ruleOf(r *snapshot.Row, saved []uint8) (rule C.struct_unwind_rule, ok bool) {
	rule.reg = C.u8(r.CFARegister)
	rule.offset = C.s32(r.CFAOffset)
	if int64(rule.offset) != r.CFAOffset || r.CFARegister > 31 {
		return rule, false
	}
	switch {
	case r.Haskell && r.Deref:
		rule.kind = C.UNWIND_HASKELL_DEREF
		return rule, true
	case r.Haskell:
		rule.kind = C.UNWIND_HASKELL
		return rule, true
	case r.Return.Kind == snapshot.RuleUnknown:
		rule.kind = C.UNWIND_ROOT
		return rule, true
	case r.Deref:
		rule.kind = C.UNWIND_FRAME_DEREF
	default:
		rule.kind = C.UNWIND_FRAME
	}
	if r.Signal {
		rule.flags |= C.UNWIND_SIGNAL
	}
	if !place(&rule, 0, r.Return) {
		return rule, false
	}
	for _, s := range r.Saved {
		if i := slices.Index(saved, s.Register); i >= 0 && !place(&rule, i+1, s.Rule) {
			rule.saved[i+1] = C.UNWIND_LOST
		}
	}
	return rule, true
}

func place(rule *C.struct_unwind_rule, i int, from snapshot.Rule) bool {
	words := from.Offset / 8
	inRange := from.Offset%8 == 0 && words > math.MinInt16 && words <= math.MaxInt16
	switch from.Kind {
	case snapshot.RuleSame:
		return true
	case snapshot.RuleAt:
		rule.saved[i] = C.s16(words)
		return inRange && words != 0
	case snapshot.RuleFromCFARegister:
		rule.saved[i] = C.s16(words)
		rule.flags |= 1 << i
		return inRange
	}
	return false
}

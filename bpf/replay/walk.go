//go:build linux && cgo

package replay

/*
#cgo CFLAGS: -I${SRCDIR}/../c -O2 -Wall -Wno-unused-variable -Wno-unknown-pragmas
#include "walker.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"ccagent/bpf"
	"ccagent/bpf/replay/snapshot"
)

// Frame is one recorded frame.
type Frame struct {
	Kind    Kind
	Address uint64 // FRAME_FOLDED: number of frames before it that repeat
}

// Record is what the BPF program would send to user space for a sample.
type Record struct {
	bpf.SampleHeader
	Frames []Frame
	// Task is what the program would store for the OS thread.
	Task uint64
	// Reads and Iterations are the cost: reads of the target's memory and iterations of
	// loops.
	Reads, Iterations uint64
}

// Target is what is walked: recorded memory or a stopped process.
type Target struct {
	Arch      snapshot.Arch
	Registers []uint64
	Layout    bpf.ProcessLayout
	Task      uint64
	// ThreadPointer is where the thread's own variables are; 0 if that is not known.
	ThreadPointer uint64
	MaxFrames     int // bpf.Config.MaxFrames
	Memory        []snapshot.Segment
	PID           int     // walk this process's memory instead, if not 0
	Tables        *Tables // call frame information; may be nil
}

// ErrTarget is returned for a target that the kernel would never pass to the walker.
var ErrTarget = errors.New("walk: registers do not fit the architecture, or frame budget out of range")

// FromSnapshot makes a target from a snapshot, with the layout that the agent would use.
func FromSnapshot(s *snapshot.Snapshot, maxFrames int) Target {
	return Target{
		Arch:      s.Arch,
		Registers: s.Registers,
		Layout:    Layout(s.GHC, s.Profiled, s.Threaded, s.Text),
		Task:      s.Task,
		MaxFrames: maxFrames,
		Memory:    s.Memory,
		Tables:    TablesOf(s),
	}
}

// Layout is the process layout that the agent would use.
func Layout(ghc string, profiled, threaded bool, text [2]snapshot.Range) bpf.ProcessLayout {
	l, _ := bpf.HeapLayout(ghc, profiled, threaded)
	for i, r := range text {
		l.TextLo[i], l.TextHi[i] = r.Lo, r.Hi
	}
	l.Incarnation = 1
	return l
}

// Walk runs the walker.
func Walk(t Target) (Record, error) {
	r, _, err := walk(t, 0)
	return r, err
}

// WalkNoting also returns the ranges that the walker read, failed reads included.
func WalkNoting(t Target) (Record, []snapshot.Range, error) {
	return walk(t, 1<<16)
}

func walk(t Target, logRoom int) (Record, []snapshot.Range, error) {
	if n := t.Arch.Registers(); n == 0 || n != len(t.Registers) || t.MaxFrames < 1 || t.MaxFrames > bpf.MaxLeafFrames {
		return Record{}, nil, ErrTarget
	}
	if t.PID < 0 || t.PID > math.MaxInt32 {
		return Record{}, nil, fmt.Errorf("walk: no process has id %d", t.PID)
	}
	ranges := make([]C.struct_replay_range, len(t.Memory)+1)
	size := 0
	for _, m := range t.Memory {
		size += len(m.Bytes)
	}
	blob := make([]byte, 0, size+1)
	for i, m := range t.Memory {
		ranges[i] = C.struct_replay_range{
			address: C.u64(m.Address), length: C.u64(len(m.Bytes)), offset: C.u64(len(blob)),
		}
		blob = append(blob, m.Bytes...)
	}
	log := make([]C.struct_replay_read, logRoom+1)

	t0 := t.Tables
	if t0 == nil {
		t0 = &Tables{}
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	tables := C.struct_replay_tables{
		rows: unsafe.SliceData(t0.rows), row_count: C.u32(len(t0.rows)),
		rules: unsafe.SliceData(t0.rules), rule_count: C.u32(len(t0.rules)),
		buckets: unsafe.SliceData(t0.buckets), bucket_count: C.u32(len(t0.buckets)),
	}
	if len(t0.rows) > 0 {
		pin.Pin(tables.rows)
		pin.Pin(tables.rules)
		pin.Pin(tables.buckets)
	}
	pin.Pin(&ranges[0])
	pin.Pin(unsafe.SliceData(blob))
	pin.Pin(&log[0])
	memory := C.struct_replay_memory{
		ranges:      &ranges[0],
		range_count: C.u64(len(t.Memory)),
		blob:        (*C.u8)(unsafe.SliceData(blob)),
		blob_length: C.u64(len(blob)),
		pid:         C.s32(t.PID),
		log:         &log[0],
		log_room:    C.u64(logRoom),

		thread_pointer: C.u64(t.ThreadPointer),
	}
	if unsafe.Sizeof(t.Layout) != unsafe.Sizeof(C.struct_process_layout{}) {
		panic("struct process_layout differs between C and Go: run go generate ./bpf")
	}
	registers := (*C.u64)(&t.Registers[0])
	layout := (*C.struct_process_layout)(unsafe.Pointer(&t.Layout))
	var result C.struct_replay_result
	var status C.int
	switch t.Arch {
	case snapshot.X86:
		status = C.replay_walk_x86(&memory, &tables, registers, layout, &t0.regions, C.u64(t.Task), C.u32(t.MaxFrames), &result)
	case snapshot.ARM64:
		status = C.replay_walk_arm64(&memory, &tables, registers, layout, &t0.regions, C.u64(t.Task), C.u32(t.MaxFrames), &result)
	}
	if status != 0 {
		return Record{}, nil, errors.New("walk: out of memory")
	}
	r := Record{
		SampleHeader: *(*bpf.SampleHeader)(unsafe.Pointer(&result.header)),
		Task:         uint64(result.task),
		Reads:        uint64(memory.reads),
		Iterations:   uint64(memory.iterations),
	}
	if r.FrameCount > bpf.MaxFrames {
		return r, nil, fmt.Errorf("walk: %d frames in a record that holds %d", r.FrameCount, bpf.MaxFrames)
	}
	for _, f := range result.frames[:r.FrameCount] {
		r.Frames = append(r.Frames, Frame{Kind(f >> bpf.FrameKindShift), uint64(f) & bpf.FrameAddressMask})
	}
	var reads []snapshot.Range
	for _, l := range log[:min(uint64(logRoom), r.Reads)] {
		reads = append(reads, snapshot.Range{Lo: uint64(l.address), Hi: uint64(l.address + l.length)})
	}
	return r, reads, nil
}

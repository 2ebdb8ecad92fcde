//go:build linux && cgo

package replay

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"ccagent/bpf"
	"ccagent/bpf/replay/snapshot"
)

// The Haskell thread that waits for a safe call is found by the run-time system's variable as it is where the OS thread's Task was
// known, however the variable is reached; and none is found where it holds something else.
func TestTaskByVariable(t *testing.T) {
	const (
		pointer = 0x7f00_0000_1000 // where nothing else of a snapshot is
		table   = pointer + 0x1000
		locals  = pointer + 0x2000
		number  = pointer + 0x3000
		which   = 3
	)
	words := func(target *Target, at uint64, values ...uint64) {
		var b []byte
		for _, v := range values {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		target.Memory = append(target.Memory, snapshot.Segment{Address: at, Bytes: b})
		slices.SortFunc(target.Memory, func(a, b snapshot.Segment) int { return cmp.Compare(a.Address, b.Address) })
	}
	seen := 0
	for _, name := range snapshots(t) {
		if !strings.HasSuffix(name, "/safe") {
			continue
		}
		whole, want := wholeTarget(t, name)
		if whole.Task == 0 || Stop(want.Stop) != StopRoot {
			t.Errorf("%s: no whole stack by its Task", name)
			continue
		}
		seen++
		for _, way := range []struct {
			place           uint16
			at, module, dtv uint64
			task, pointer   uint64
			found           bool
		}{
			{place: bpf.TaskAt, at: locals, task: whole.Task, found: true},
			{place: bpf.TaskAt, at: locals + 8, task: whole.Task},
			{place: bpf.TaskOffset, at: locals - pointer, pointer: pointer, task: whole.Task, found: true},
			{place: bpf.TaskOffset, at: locals - pointer, task: whole.Task},
			{place: bpf.TaskModule, module: number, dtv: locals, pointer: pointer, task: whole.Task, found: true},
			{place: bpf.TaskModule, module: number, dtv: ^uint64(0), pointer: pointer, task: whole.Task},
			{place: bpf.TaskModule, module: number + 64, dtv: locals, pointer: pointer, task: whole.Task},
			{place: bpf.TaskOffset, at: locals - pointer, pointer: pointer, task: whole.Task + 8},
			{place: bpf.TaskOffset, at: locals - pointer, pointer: pointer, task: 1},
			{place: bpf.TaskOffset, at: locals - pointer, pointer: pointer, task: 0},
			{},
		} {
			target := whole
			target.Memory = slices.Clone(whole.Memory)
			target.Task, target.ThreadPointer = 0, way.pointer
			target.Layout.TaskPlace, target.Layout.TaskAt, target.Layout.TaskModule = way.place, way.at, way.module
			words(&target, locals, way.task)
			words(&target, pointer+8, table)
			words(&target, table+which*16, way.dtv)
			words(&target, number, which)
			r, err := Walk(target)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case way.found && (Stop(r.Stop) != StopRoot || !slices.Equal(r.Frames, want.Frames) || r.Task != whole.Task):
				t.Errorf("%s by %+v: stop %s, %d frames, Task %#x; want the root, %d, %#x", name, way, Stop(r.Stop), len(r.Frames), r.Task, len(want.Frames), whole.Task)
			case !way.found && (slices.ContainsFunc(r.Frames, func(f Frame) bool { return f.Kind == KindContext }) || r.Tso != 0):
				t.Errorf("%s by %+v: thread %d waits, though its Task is not known", name, way, r.Tso)
			}
		}
	}
	if seen < 6 {
		t.Errorf("%d snapshots of safe calls", seen)
	}
}

//go:build linux && cgo

package replay

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"ccagent/bpf"
)

// A walk can end with every stop reason: each occurs for whole or damaged snapshots, except
// for the one of a thread without user registers, which is set by the BPF program.
func TestEveryStopReason(t *testing.T) {
	missing := map[Stop]bool{}
	for s := range StopLast {
		missing[s] = true
	}
	take := func(target Target) {
		r, err := Walk(target)
		if err != nil {
			t.Fatal(err)
		}
		delete(missing, Stop(r.Stop))
	}
	for _, target := range endless(t) {
		take(target)
	}
	random := rand.New(rand.NewPCG(3, 4))
	names := snapshots(t)
	for n := 0; n < 40_000 && len(missing) > 0; n++ {
		whole := FromSnapshot(readSnapshot(t, names[random.IntN(len(names))]), SnapshotFrames)
		take(whole)
		for range 20 {
			program := make([]byte, 4*(1+random.IntN(4)))
			for i := range program {
				program[i] = byte(random.Uint32())
			}
			damaged := mutate(whole, program)
			damaged.MaxFrames = 1 + random.IntN(bpf.MaxLeafFrames)
			take(damaged)
		}
	}
	for s := range missing {
		t.Errorf("no walk ended with %q", s)
	}
}

// endless returns targets in which a thread's stack chunks form a cycle: one target for each
// chunk, except for the oldest, which has an end.
func endless(t *testing.T) (targets []Target) {
	s := readSnapshot(t, "9.0.2/O2/underflow")
	for chosen := 0; ; chosen++ {
		target := FromSnapshot(s, 1)
		target.Memory = slices.Clone(target.Memory)
		var next [][]byte // of the underflow frames
		for i := range target.Memory {
			m := &target.Memory[i]
			m.Bytes = slices.Clone(m.Bytes)
			for at := 0; at+16 <= len(m.Bytes); at += 8 {
				if s.Name(binary.LittleEndian.Uint64(m.Bytes[at:])) == "stg_stack_underflow_frame_info" {
					next = append(next, m.Bytes[at+8:at+16])
				}
			}
		}
		if chosen >= len(next) {
			return targets
		}
		to := slices.Clone(next[chosen])
		for _, n := range next {
			copy(n, to)
		}
		targets = append(targets, target)
	}
}

//go:build linux && cgo

package replay

import (
	"testing"

	"ccagent/bpf"
	"ccagent/bpf/replay/snapshot"
)

// A target without memory has a record: the interrupted address, and the reason why there is
// no more.
func TestNothingReadable(t *testing.T) {
	for _, arch := range []snapshot.Arch{snapshot.X86, snapshot.ARM64} {
		registers := make([]uint64, arch.Registers())
		for i := range registers {
			registers[i] = 0x1000 * uint64(i+1)
		}
		r, err := Walk(Target{Arch: arch, Registers: registers, Layout: Layout("9.6.6", false, true, [2]snapshot.Range{}), MaxFrames: 128})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Frames) != 1 || r.Frames[0].Kind != KindPC || Stop(r.Stop) != StopNoHaskell || r.Reads == 0 {
			t.Errorf("%s: record %+v", arch, r)
		}
	}
}

// Walk refuses targets whose registers, arch or budget do not fit.
func TestRefusesWrongTargets(t *testing.T) {
	for name, target := range map[string]Target{
		"architecture": {Arch: "mips", Registers: make([]uint64, 21), MaxFrames: 1},
		"registers":    {Arch: snapshot.X86, Registers: make([]uint64, 20), MaxFrames: 1},
		"no budget":    {Arch: snapshot.X86, Registers: make([]uint64, 21)},
		"budget":       {Arch: snapshot.X86, Registers: make([]uint64, 21), MaxFrames: bpf.MaxLeafFrames + 1},
		"process":      {Arch: snapshot.X86, Registers: make([]uint64, 21), MaxFrames: 1, PID: -1},
	} {
		if _, err := Walk(target); err == nil {
			t.Errorf("wrong %s: no error", name)
		}
	}
}

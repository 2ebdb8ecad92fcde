package overhead

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"ccagent/agent/procfs"
)

// measureTrap measures what a hit of a probe costs its thread beside the program
// that it runs, in ns, with a probe in this process. The kernel measures only the
// time in BPF.
func measureTrap() (float64, error) {
	if probeSite == 0 {
		return 0, errors.ErrUnsupported
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil {
		return 0, fmt.Errorf("measure probes: %w", err)
	}
	defer prog.Close()
	offset, err := ownOffset(uint64(probeSite))
	if err != nil {
		return 0, fmt.Errorf("measure probes: %w", err)
	}
	exe, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return 0, fmt.Errorf("measure probes: %w", err)
	}
	const calls, rounds = 500, 5
	without := timeProbe(calls, rounds)
	l, err := exe.Uprobe("", prog, &link.UprobeOptions{Address: offset, PID: os.Getpid()})
	if err != nil {
		return 0, fmt.Errorf("measure probes: %w", err)
	}
	with := timeProbe(calls, rounds)
	if err := l.Close(); err != nil {
		return 0, fmt.Errorf("measure probes: %w", err)
	}
	return max(float64(with-without), 0) / calls, nil
}

// timeProbe times the calls, the best of the rounds: whatever else the machine does
// only adds.
func timeProbe(calls, rounds int) time.Duration {
	best := time.Duration(1<<63 - 1)
	for range rounds {
		begin := time.Now()
		for range calls {
			callProbeSite()
		}
		best = min(best, time.Since(begin))
	}
	return best
}

// ownOffset returns the place in this program's file of an address.
func ownOffset(addr uint64) (uint64, error) {
	maps, err := procfs.Maps(os.Getpid())
	if err != nil {
		return 0, err
	}
	for _, m := range maps {
		if addr >= m.Start && addr < m.End {
			return addr - m.Start + m.Offset, nil
		}
	}
	return 0, fmt.Errorf("no mapping holds %#x", addr)
}

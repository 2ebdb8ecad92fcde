package overhead

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"ccagent/agent/procfs"
	"ccagent/agent/uprobe"
)

// trapKind is how the kernel executes the instruction at a probe.
type trapKind int

const (
	emulatedTrap trapKind = iota // by itself, as jumps, calls and pushes
	steppedTrap                  // the program does, apart, and the kernel is entered once more after it: all other instructions
	trapKinds
)

// measureTrap measures what a hit of a probe costs its thread beside the program
// that it runs, in ns, with a probe in this process, attached as they are to run-time systems. The
// kernel measures only the time in BPF. It takes about 10 ms, and the removal of the probe a
// tenth of a second.
func measureTrap(kind trapKind) (ns float64, err error) {
	site := trapSites[kind]
	spec := &ebpf.ProgramSpec{Type: ebpf.Kprobe, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}}
	multi := uprobe.Multi()
	if multi {
		spec.AttachType = ebpf.AttachTraceUprobeMulti
	}
	prog, err := ebpf.NewProgram(spec)
	if err != nil {
		return 0, fmt.Errorf("measure probes: %w", err)
	}
	defer prog.Close()
	offset, err := ownOffset(uint64(site.address))
	if err != nil {
		return 0, fmt.Errorf("measure probes: %w", err)
	}
	exe, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return 0, fmt.Errorf("measure probes: %w", err)
	}
	probe, err := uprobe.Put(exe, uint32(os.Getpid()), prog, multi, uprobe.Site{Offset: offset})
	if err != nil {
		return 0, fmt.Errorf("measure probes: %w", err)
	}
	defer func() { err = errors.Join(err, probe.Close()) }()
	return site.time(), nil
}

// time times calls of the probed site and of its twin without a probe in turns, so that what the machine
// does meanwhile adds to both, and returns how much longer the former take, ns: by the lowest of some medians of each, since
// what else a busy machine does only adds. Between calls it
// uses as much memory as a program does that is hit every few µs. (With 4 KiB between calls a hit takes a
// quarter less, with twice as much an eighth more.)
func (s *trapSite) time() float64 {
	const (
		calls   = 16
		rounds  = 25
		turns   = 4
		between = 128 << 10 // bytes
	)
	memory := newWorkingSet()
	times := func(call func()) time.Duration {
		begin := time.Now()
		for range calls {
			memory.use(between)
			call()
		}
		return time.Since(begin)
	}
	lowestProbed, lowestPlain := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for range turns {
		var probed, plain [rounds]time.Duration
		for i := range rounds {
			probed[i], plain[i] = times(s.probed), times(s.plain)
		}
		slices.Sort(probed[:])
		slices.Sort(plain[:])
		lowestProbed, lowestPlain = min(lowestProbed, probed[rounds/2]), min(lowestPlain, plain[rounds/2])
	}
	return max(float64(lowestProbed-lowestPlain), 0) / calls
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

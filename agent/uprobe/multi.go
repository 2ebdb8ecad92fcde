package uprobe

import (
	"errors"
	"math"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Multi reports whether the kernel puts many probes into all threads of one
// process with one link. The kernels before "bpf: fix multi-uprobe PID filtering
// logic" (6.10, and stable ones) did so for one thread only; since then a process id
// that is negative for the kernel is an invalid argument, not an unknown process.
var Multi = sync.OnceValue(func() bool {
	if features.HaveBPFLinkUprobeMulti() != nil {
		return false // it would be an invalid argument as well
	}
	exe, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return false
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return false
	}
	defer program.Close()
	l, err := exe.UprobeMulti(nil, program, &link.UprobeMultiOptions{Addresses: []uint64{1}, PID: math.MaxUint32})
	if err == nil {
		l.Close()
	}
	return errors.Is(err, unix.EINVAL)
})

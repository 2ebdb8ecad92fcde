package hold

import (
	"golang.org/x/sys/unix"

	"ccagent/bpf"
)

// registers reads those of a stopped thread.
func registers(tid int) (Registers, error) {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return Registers{}, err
	}
	return Registers{
		PC: r.Rip, Base: r.R13, Sp: r.Rbp, Hp: r.R12, CSp: r.Rsp, Thread: r.Fs_base,
		General: []uint64{r.Rax, r.Rbx, r.Rcx, r.Rdx, r.Rsi, r.Rdi, r.Rbp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15},
		Waits:   waits(int64(r.Orig_rax), r.Rax),
	}, nil
}

// keptRegisters are those that the kernel has put away of a frozen thread.
func keptRegisters(_ int, t *bpf.ThreadRegisters) Registers {
	r := &t.Regs
	return Registers{
		PC: r.Rip, Base: r.R13, Sp: r.Rbp, Hp: r.R12, CSp: r.Rsp, Thread: t.Pointer,
		General: []uint64{r.Rax, r.Rbx, r.Rcx, r.Rdx, r.Rsi, r.Rdi, r.Rbp, r.R8, r.R9, r.R10, r.R11, r.R12, r.R13, r.R14, r.R15},
		Waits:   waits(t.Call, r.Rax) || isIn(t.Call, r.Rax),
	}
}

// isIn reports whether a frozen thread is in the middle of a system call: the kernel begins each with this result. It freezes a
// thread there only where it waits.
func isIn(number int64, result uint64) bool {
	return number >= 0 && unix.Errno(-result) == unix.ENOSYS
}

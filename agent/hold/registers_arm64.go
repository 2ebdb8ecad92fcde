package hold

import (
	"encoding/binary"
	"slices"

	"golang.org/x/sys/unix"

	"ccagent/bpf"
)

// registers reads those of a stopped thread.
func registers(tid int) (Registers, error) {
	var r unix.PtraceRegsArm64
	if err := unix.PtraceGetRegSetArm64(tid, ntPRStatus, &r); err != nil {
		return Registers{}, err
	}
	code := func(at uint64, code []byte) bool {
		n, err := unix.PtracePeekText(tid, uintptr(at), code)
		return err == nil && n == len(code)
	}
	return Registers{PC: r.Pc, Base: r.Regs[19], Sp: r.Regs[20], Hp: r.Regs[21], CSp: r.Sp, General: r.Regs[:], Waits: waitsAt(r.Pc, r.Regs[8], r.Regs[0], code)}, nil
}

// keptRegisters are those that the kernel has put away of a frozen thread. It freezes a thread in the middle of a system call only
// where it waits.
func keptRegisters(pid int, t *bpf.ThreadRegisters) Registers {
	r := &t.Regs
	code := func(at uint64, code []byte) bool {
		local, remote := []unix.Iovec{{Base: &code[0], Len: uint64(len(code))}}, []unix.RemoteIovec{{Base: uintptr(at), Len: len(code)}}
		n, err := unix.ProcessVMReadv(pid, local, remote, 0)
		return err == nil && n == len(code)
	}
	return Registers{
		PC: r.Pc, Base: r.X[19], Sp: r.X[20], Hp: r.X[21], CSp: r.Sp, General: slices.Clone(r.X[:]),
		Waits: t.Call >= 0 && t.Call != unix.SYS_WRITE && t.Call != unix.SYS_WRITEV || t.Call < 0 && waitsAt(r.Pc, r.X[8], r.X[0], code),
	}
}

// ntPRStatus is NT_PRSTATUS (elf.h), the set of general registers.
const ntPRStatus = 1

// supervisorCall is the instruction that calls the kernel, svc #0.
const supervisorCall = 0xd4000001

// waitsAt is waits for the registers of a stopped thread: where a system call is to be begun again, the kernel has set them back to
// it. read reads code of the process.
func waitsAt(pc, x8, x0 uint64, read func(at uint64, code []byte) bool) bool {
	var code [8]byte // the instruction before, and that at the program counter
	if !read(pc-4, code[:]) {
		return false
	}
	switch number := int64(int32(x8)); {
	case binary.LittleEndian.Uint32(code[4:]) == supervisorCall:
		return waits(number, ^uint64(errRestart)+1)
	case binary.LittleEndian.Uint32(code[:]) == supervisorCall:
		return waits(number, x0)
	}
	return false
}

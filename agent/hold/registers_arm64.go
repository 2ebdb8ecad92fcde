package hold

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// registers reads those of a stopped thread.
func registers(tid int) (Registers, error) {
	var r unix.PtraceRegsArm64
	if err := unix.PtraceGetRegSetArm64(tid, ntPRStatus, &r); err != nil {
		return Registers{}, err
	}
	return Registers{PC: r.Pc, Base: r.Regs[19], Sp: r.Regs[20], Hp: r.Regs[21], CSp: r.Sp, General: r.Regs[:], Waits: waitsAt(tid, &r)}, nil
}

// ntPRStatus is NT_PRSTATUS (elf.h), the set of general registers.
const ntPRStatus = 1

// supervisorCall is the instruction that calls the kernel, svc #0.
const supervisorCall = 0xd4000001

// waitsAt is waits for the registers of a stopped thread: where a system call is to be begun again, the kernel has set them back to it.
func waitsAt(tid int, r *unix.PtraceRegsArm64) bool {
	var code [8]byte // the instruction before, and that at the program counter
	if n, err := unix.PtracePeekText(tid, uintptr(r.Pc-4), code[:]); err != nil || n != len(code) {
		return false
	}
	switch number := int64(int32(r.Regs[8])); {
	case binary.LittleEndian.Uint32(code[4:]) == supervisorCall:
		return waits(number, ^uint64(errRestart)+1)
	case binary.LittleEndian.Uint32(code[:]) == supervisorCall:
		return waits(number, r.Regs[0])
	}
	return false
}

package hold

import "golang.org/x/sys/unix"

// registers reads those of a stopped thread.
func registers(tid int) (Registers, error) {
	var r unix.PtraceRegsArm64
	if err := unix.PtraceGetRegSetArm64(tid, ntPRStatus, &r); err != nil {
		return Registers{}, err
	}
	return Registers{PC: r.Pc, Base: r.Regs[19], Sp: r.Regs[20], Hp: r.Regs[21], CSp: r.Sp, General: r.Regs[:]}, nil
}

// ntPRStatus is NT_PRSTATUS (elf.h), the set of general registers.
const ntPRStatus = 1

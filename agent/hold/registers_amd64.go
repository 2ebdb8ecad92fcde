package hold

import "golang.org/x/sys/unix"

// registers reads those of a stopped thread.
func registers(tid int) (Registers, error) {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return Registers{}, err
	}
	return Registers{PC: r.Rip, Base: r.R13, Sp: r.Rbp}, nil
}

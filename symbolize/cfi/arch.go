package cfi

import "debug/elf"

// MaxSaved is the number of registers that a Rule can tell the whereabouts of.
const MaxSaved = 12

// DWARF register numbers: System V ABI, AMD64 supplement, figure 3.36; DWARF
// for the Arm 64-bit architecture, 4.1.
const (
	amd64RBX = 3
	amd64RBP = 6
	amd64RSP = 7
	amd64R10 = 10
	amd64R12 = 12
	amd64R13 = 13
	amd64R14 = 14
	amd64R15 = 15
	amd64RIP = 16

	arm64X19 = 19
	arm64X20 = 20
	arm64FP  = 29
	arm64LR  = 30
	arm64SP  = 31

	riscv64RA = 1
	riscv64SP = 2
	riscv64S0 = 8
	riscv64S1 = 9
)

// arch is what rows need to know of a machine.
type arch struct {
	// Registers that Rule.Saved is about: the return address, then those
	// that a callee must preserve.
	saved []uint8
	sp    uint8 // the C stack pointer
	stgSp uint8 // the STG machine's, 0 where GHC emits no CFI
	// The return address is in a register when a function is entered.
	linkRegister bool
	// index of a register in saved, plus one
	index [64]uint8
}

func newArch(a arch) *arch {
	for i, r := range a.saved {
		a.index[r] = uint8(i) + 1
	}
	return &a
}

var (
	amd64 = newArch(arch{
		saved: []uint8{amd64RIP, amd64RBP, amd64RBX, amd64R12, amd64R13, amd64R14, amd64R15},
		sp:    amd64RSP,
		stgSp: amd64RBP,
	})
	arm64 = newArch(arch{
		saved: []uint8{arm64LR, arm64FP, arm64X19, arm64X20, 21, 22, 23, 24, 25, 26, 27, 28},
		sp:    arm64SP,

		linkRegister: true,
	})
	riscv64 = newArch(arch{
		// s0, s1, s2 to s10
		saved: []uint8{riscv64RA, riscv64S0, riscv64S1, 18, 19, 20, 21, 22, 23, 24, 25, 26},
		sp:    riscv64SP,

		linkRegister: true,
	})
)

func archOf(m elf.Machine) *arch {
	switch m {
	case elf.EM_X86_64:
		return amd64
	case elf.EM_AARCH64:
		return arm64
	case elf.EM_RISCV:
		return riscv64
	}
	return nil
}

// slot is a register's place in saved, or -1.
func (a *arch) slot(reg uint64) int {
	if reg >= uint64(len(a.index)) {
		return -1
	}
	return int(a.index[reg]) - 1
}

// isHaskell recognises the state that GHC's common information begins with:
// the CFA is Sp, and the return address is the word at it. C's return address
// is below its CFA.
func (a *arch) isHaskell(s *state) bool {
	return a.stgSp != 0 && s.cfa.kind == cfaRegister && s.cfa.reg == uint64(a.stgSp) &&
		s.saved[0].kind == ruleOffset && s.saved[0].n == 0
}

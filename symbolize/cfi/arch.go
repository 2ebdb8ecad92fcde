package cfi

import (
	"debug/elf"

	"github.com/go-delve/delve/pkg/dwarf/regnum"
)

// MaxSaved is the number of registers that a Rule can locate.
const MaxSaved = 12

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
		saved: []uint8{regnum.AMD64_Rip, regnum.AMD64_Rbp, regnum.AMD64_Rbx, regnum.AMD64_R12, regnum.AMD64_R13, regnum.AMD64_R14, regnum.AMD64_R15},
		sp:    regnum.AMD64_Rsp,
		stgSp: regnum.AMD64_Rbp,
	})
	arm64 = newArch(arch{
		// x29, x19 to x28
		saved: []uint8{regnum.ARM64_LR, regnum.ARM64_BP, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28},
		sp:    regnum.ARM64_SP,

		linkRegister: true,
	})
)

func archOf(m elf.Machine) *arch {
	switch m {
	case elf.EM_X86_64:
		return amd64
	case elf.EM_AARCH64:
		return arm64
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

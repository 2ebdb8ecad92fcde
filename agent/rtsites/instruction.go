package rtsites

import (
	"debug/elf"

	"ccagent/bpf"
)

// instruction is one of either machine.
type instruction struct {
	addr   uint64
	length int
	kind   kind
	target uint64 // of a direct call, jump or branch; 0 for others
	// emulated is set if the kernel's uprobes emulate it, so that it need not be single-stepped.
	emulated bool
	// mayChangeArgument is set if it may change a C function's argument that is in a register, or is
	// no plain instruction.
	mayChangeArgument bool
	// of is the machine's own form, an x86asm.Inst or an armWord.
	of any
}

func (i *instruction) next() uint64 { return i.addr + uint64(i.length) }

// kind is where an instruction goes.
type kind uint8

const (
	other  kind = iota
	call        // of a procedure
	jump        // always elsewhere
	branch      // elsewhere on a condition
	leave       // returns from a procedure
)

// machine is what differs between instruction sets.
type machine interface {
	// decode decodes the first instruction of code that lies at addr; false if it is none.
	decode(code []byte, addr uint64) (instruction, bool)
	// straight reports whether the instruction, one of kind other, is always followed by the next.
	straight(*instruction) bool
	// stats gives the address of the variable stats by the code of getAllocations, which returns one of its
	// fields; 0 if it is not found.
	stats(code []instruction) uint64
	// intoProgram gives the address of the code by which stg_gc_noregs jumps back into the program.
	intoProgram(code []instruction) uint64
	// large gives the address of an instruction of allocateMightFail(capability, words) that is executed
	// for large objects alone, with both arguments still in their registers.
	large(code []instruction) uint64
	// stored gives the offset from a structure's address at which code stores a function's result, 0 if it does not.
	// The code begins behind the call.
	stored(code []instruction) int64
	// countedDown gives the offset from its first argument of the 32-bit word that a function reads and
	// writes.
	countedDown(code []instruction) uint64
	// tested gives the first branch, in code behind a call, on whether its result is zero.
	tested(code []instruction) Outcome
}

// leastCounter is less than the offset in a Capability of any that counts: what is before are the registers
// of Haskell code.
const leastCounter = 64

// Outcome is a branch on whether a function's result is zero.
type Outcome struct {
	Addr uint64 // 0 if there is none
	// By is where the branch finds it.
	By bpf.TransactionResult
}

// machineOf returns the machine of a file, nil if it is not known.
func machineOf(m elf.Machine) machine {
	switch m {
	case elf.EM_X86_64:
		return x86{}
	case elf.EM_AARCH64:
		return arm64{}
	}
	return nil
}

// decodeAll decodes up to the first bytes that are no instruction.
func decodeAll(m machine, code []byte, addr uint64) []instruction {
	var out []instruction
	for len(code) > 0 {
		in, ok := m.decode(code, addr)
		if !ok {
			break
		}
		out = append(out, in)
		code, addr = code[in.length:], in.next()
	}
	return out
}

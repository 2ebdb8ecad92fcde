package rtsites

import (
	"golang.org/x/arch/x86/x86asm"

	"ccagent/bpf"
	"ccagent/internal/ghc"
)

// x86 is x86-64.
type x86 struct{}

func (x86) decode(code []byte, addr uint64) (instruction, bool) {
	inst, err := x86asm.Decode(code, 64)
	if err != nil {
		return instruction{}, false
	}
	in := instruction{addr: addr, length: inst.Len, mayChangeArgument: mayChangeX86Argument(inst), of: inst}
	rel, direct := inst.Args[0].(x86asm.Rel)
	if direct {
		in.target = in.next() + uint64(int64(rel))
	}
	switch {
	case inst.Op == x86asm.CALL:
		in.kind = call
	case inst.Op == x86asm.JMP:
		in.kind = jump
	case inst.Op == x86asm.RET:
		in.kind = leave
	case direct:
		in.kind = branch
	}
	// branch_setup_xol_ops and push_setup_xol_ops in arch/x86/kernel/uprobes.c.
	_, register := inst.Args[0].(x86asm.Reg)
	in.emulated = direct && inst.Op != x86asm.LOOP || inst.Op == x86asm.PUSH && register
	return in, true
}

func inst(in *instruction) x86asm.Inst { return in.of.(x86asm.Inst) }

func (x86) straight(in *instruction) bool {
	op := inst(in).Op
	return op == x86asm.MOV || op == x86asm.CMP || op == x86asm.TEST
}

// stats looks for the last word of the library's own that is loaded: none is behind that field.
func (x86) stats(code []instruction) (stats uint64) {
	for i := range code {
		in := inst(&code[i])
		if in.Op == x86asm.RET {
			break
		}
		to, isReg := in.Args[0].(x86asm.Reg)
		from, isMem := in.Args[1].(x86asm.Mem)
		if in.Op == x86asm.MOV && isReg && isMem && to >= x86asm.RAX && to <= x86asm.R15 && from.Base == x86asm.RIP {
			stats = code[i].next() + uint64(from.Disp) - ghc.StatsAllocated
		}
	}
	return stats
}

func (x86) intoProgram(code []instruction) uint64 {
	for i := range code {
		in := inst(&code[i])
		if m, ok := in.Args[0].(x86asm.Mem); ok && in.Op == x86asm.JMP && m.Base == x86asm.RBP && m.Disp == 0 {
			return code[i].addr
		}
	}
	return 0
}

// large finds a branch or call, which is emulated, behind the comparison of the words.
func (x86) large(allocate []instruction) uint64 {
	at := func(addr uint64) int {
		for i := range allocate {
			if allocate[i].addr == addr {
				return i
			}
		}
		return len(allocate)
	}
	branched, branch := false, 0
	for i := 0; i < len(allocate); i++ {
		in := inst(&allocate[i])
		if clobbersArguments(&in) {
			return 0
		}
		to := allocate[i].target
		compared := false
		if i > 0 {
			before := inst(&allocate[i-1])
			compared = comparesWords(&before)
		}
		switch {
		case to == 0:
			if in.Op == x86asm.JMP || in.Op == x86asm.RET {
				return 0
			}
		case branched && i <= branch:
			return 0 // before the branch, where small objects come along too
		case branched:
			return allocate[i].addr
		case compared && (in.Op == x86asm.JA || in.Op == x86asm.JAE):
			branched, branch = true, i
			i = at(to) - 1
		case compared && (in.Op == x86asm.JBE || in.Op == x86asm.JB):
			branched, branch = true, i
		default:
			return 0 // a branch or call before it is known how large the object is
		}
	}
	return 0
}

// comparesWords recognises the comparison of the second argument with the size of a
// large object.
func comparesWords(in *x86asm.Inst) bool {
	limit, ok := in.Args[1].(x86asm.Imm)
	return in.Op == x86asm.CMP && in.Args[0] == x86asm.RSI && ok && isLargeLimit(int64(limit))
}

// isLargeLimit recognises the number of words from which on an object is large.
func isLargeLimit(words int64) bool {
	return words >= ghc.LargeObjectWords-2 && words <= ghc.LargeObjectWords+1
}

// clobbersArguments reports whether an instruction writes to the registers of the
// first two arguments.
func clobbersArguments(in *x86asm.Inst) bool {
	switch in.Op {
	case x86asm.CMP, x86asm.TEST, x86asm.PUSH:
		return false
	case x86asm.XCHG, x86asm.CMPXCHG, x86asm.XADD:
		return true
	}
	switch in.Args[0] {
	case x86asm.RSI, x86asm.ESI, x86asm.SI, x86asm.SIB, x86asm.RDI, x86asm.EDI, x86asm.DI, x86asm.DIB:
		return true
	}
	return false
}

func (x86) stored(code []instruction) int64 {
	for i := range code {
		in := inst(&code[i])
		switch {
		case in.Op == x86asm.MOV && in.Args[1] == x86asm.RAX:
			if to, ok := in.Args[0].(x86asm.Mem); ok && to.Index == 0 && to.Base != 0 && to.Base != x86asm.RIP {
				return to.Disp
			}
			return 0
		case in.Op == x86asm.CALL || in.Op == x86asm.RET:
			return 0
		}
	}
	return 0
}

func (x86) countedDown(code []instruction) uint64 {
	of := func(a x86asm.Arg) int64 {
		if m, is := a.(x86asm.Mem); is && m.Base == x86asm.RDI && m.Index == 0 && m.Disp > leastCounter {
			return m.Disp
		}
		return 0
	}
	read := int64(0)
	for i := range code {
		in := inst(&code[i])
		if in.Op != x86asm.MOV || in.DataSize != 32 {
			continue
		}
		if at := of(in.Args[1]); read == 0 {
			read = at
		} else if at := of(in.Args[0]); at == read {
			return uint64(at)
		}
	}
	return 0
}

// tested finds a jump by the zero flag, whatever register was tested.
func (x86) tested(code []instruction) Outcome {
	tested := false
	for i := range code {
		in := inst(&code[i])
		switch {
		case in.Op == x86asm.TEST && in.Args[0] == in.Args[1]:
			tested = true
			continue
		case in.Op == x86asm.JE || in.Op == x86asm.JNE:
			if tested {
				return Outcome{code[i].addr, bpf.ResultInFlag}
			}
			return Outcome{}
		case in.Op == x86asm.JMP || in.Op == x86asm.RET:
			return Outcome{}
		}
		tested = false
	}
	return Outcome{}
}

func mayChangeX86Argument(inst x86asm.Inst) bool {
	switch inst.Op {
	case x86asm.CMP, x86asm.TEST, x86asm.NOP:
		return false
	case x86asm.SUB:
		return inst.Args[0] != x86asm.RSP
	case x86asm.MOV, x86asm.LEA, x86asm.MOVZX, x86asm.XOR:
	default:
		return true
	}
	to, ok := inst.Args[0].(x86asm.Reg)
	if !ok {
		return inst.Op == x86asm.XOR
	}
	switch to {
	case x86asm.RAX, x86asm.EAX, x86asm.RBX, x86asm.EBX, x86asm.RBP, x86asm.EBP, x86asm.R10, x86asm.R10L, x86asm.R11, x86asm.R11L,
		x86asm.R12, x86asm.R12L, x86asm.R13, x86asm.R13L, x86asm.R14, x86asm.R14L, x86asm.R15, x86asm.R15L:
		return false
	}
	return true
}

package rtsites

import (
	"cmp"
	"debug/elf"
	"errors"

	"golang.org/x/arch/x86/x86asm"

	"ccagent/bpf"
	"ccagent/internal/ghc"
)

// Allocation holds the sites of one run-time system at which allocation is sampled, as module
// addresses; 0 for one that was not found.
//
// Probes are put on jumps and calls: the kernel emulates those, where it would
// single-step most other instructions, at ten times the cost.
type Allocation struct {
	Capabilities
	Probes                [bpf.AllocSites]uint64
	Enter                 uint64 // stg_enter_info
	CannedLow, CannedHigh uint64 // stg_ret_*_info
	Stats, Generations    uint64 // the variables of these names
	// CmmLow and CmmHigh bound the run-time system's code in Cmm: heap checks and primops.
	// PrimLow and PrimHigh bound the frames stg_gc_prim* in it.
	CmmLow, CmmHigh, PrimLow, PrimHigh uint64
	PrimNLow, PrimNHigh                uint64 // stg_gc_prim_n
	Fork, ForkOn                       uint64 // stg_forkzh, stg_forkOnzh
	// StackOverflow is the code of threadStackOverflow, which makes a stack's next chunk.
	StackOverflow, StackOverflowEnd uint64
	CreateThread                    uint64
	// Lacks names the kinds of allocation whose sites were not found, since symbols are missing.
	Lacks []string
}

// Reasons for which allocation cannot be sampled.
var (
	ErrNoHeapCheck = errors.New("the run-time system has no symbol table to find the place of heap checks by; install the program unstripped (cabal: --disable-executable-stripping)")
	ErrNoJump      = errors.New("stg_gc_noregs has no jump to stg_returnToSched: the heap checks of this GHC are not known; sample it by other events")
)

// FindAllocation finds the sites at which allocation is sampled.
func FindAllocation(symbols *Symbols) (*Allocation, error) {
	if symbols.File.Machine != elf.EM_X86_64 {
		return nil, ErrMachine
	}
	x := finder{symbols}
	s := &Allocation{Capabilities: x.capabilities(), Enter: x.Addr(ghc.SymEnter)}
	// Before 9.0 stat_exit made the report; since then it comes too late. A library without
	// its symbol table exports only what comes before both and the last Haskell code, which
	// flushes handles.
	s.Probes[bpf.SiteEnd] = cmp.Or(x.Addr(ghc.SymExitReport), x.Addr(ghc.SymExitReportUntil), x.Addr(ghc.SymShutdown))
	for _, name := range ghc.SymReturnValues {
		if addr := x.Addr(name); addr != 0 {
			if s.CannedLow == 0 || addr < s.CannedLow {
				s.CannedLow = addr
			}
			s.CannedHigh = max(s.CannedHigh, addr)
		}
	}
	scheduler := x.Addr(ghc.SymReturnToSched)
	if x.Addr(ghc.SymHeapCheck) == 0 || scheduler == 0 {
		return nil, ErrNoHeapCheck
	}
	s.findCounters(&x)
	checks := x.decodeProcedure(ghc.SymHeapCheck)
	if s.Probes[bpf.SiteNursery] = jumpTo(checks, scheduler, false); s.Probes[bpf.SiteNursery] == 0 {
		return nil, ErrNoJump
	}
	s.Probes[bpf.SiteBlock] = findBlockSite(checks)
	if x.Addr(ghc.SymAllocateMightFail) != 0 {
		s.Probes[bpf.SiteLarge] = findLargeSite(x.decodeProcedure(ghc.SymAllocateMightFail))
	} else {
		s.Lacks = append(s.Lacks, "who allocates large objects")
	}
	if !s.Capabilities.Known() {
		s.Lacks = append(s.Lacks, "how much the run-time system itself counts")
	}
	return s, nil
}

// Collection is where collections begin in a run-time system, when all capabilities have stopped
// and nothing was moved yet.
type Collection struct {
	Capabilities
	Addr      uint64 // module address
	Nurseries uint64 // of the variable that has their number; 0 if it was not found
}

// FindCollection finds where collections begin.
func FindCollection(symbols *Symbols) (*Collection, error) {
	if symbols.File.Machine != elf.EM_X86_64 {
		return nil, ErrMachine
	}
	x := finder{symbols}
	if x.Addr(ghc.SymGarbageCollect) == 0 {
		return nil, ErrNoSymbols
	}
	s := &Collection{Capabilities: x.capabilities(), Nurseries: x.Addr(ghc.SymNNurseries)}
	begins := x.called(bpf.RTSGCStart, ghc.SymStartGC, ghc.SymGarbageCollect)
	if len(begins) == 0 {
		return nil, &MissingError{"call of stat_startGC"}
	}
	if s.Addr = begins[0].Addr; !s.Known() {
		return nil, &MissingError{"list of capabilities"}
	}
	return s, nil
}

// findCounters finds what the run-time system counts, and the code of those who allocate by
// its C functions.
func (s *Allocation) findCounters(x *finder) {
	if s.Stats = x.Addr(ghc.SymStats); s.Stats == 0 && x.Addr(ghc.SymGetAllocations) != 0 {
		s.Stats = findStats(x.decodeProcedure(ghc.SymGetAllocations))
	}
	if s.Generations = x.Addr(ghc.SymGenerations); s.Stats == 0 || s.Generations == 0 {
		s.Lacks = append(s.Lacks, "how much the run-time system counts of large objects")
	}
	for _, name := range [...]string{ghc.SymHeapCheck, ghc.SymReturnToSched, ghc.SymFork, ghc.SymPrimFirst} {
		if addr := x.Addr(name); addr != 0 {
			if s.CmmLow == 0 || addr < s.CmmLow {
				s.CmmLow = addr
			}
			s.CmmHigh = max(s.CmmHigh, addr)
		}
	}
	s.PrimLow, s.PrimHigh = x.Addr(ghc.SymPrimFirst), x.Addr(ghc.SymPrimUntil)
	s.PrimNLow, s.PrimNHigh = x.Addr(ghc.SymPrimN), x.Addr(ghc.SymPrimNUntil)
	s.Fork, s.ForkOn, s.CreateThread = x.Addr(ghc.SymFork), x.Addr(ghc.SymForkOn), x.Addr(ghc.SymCreateThread)
	overflow := x.Named(ghc.SymStackOverflow)
	s.StackOverflow, s.StackOverflowEnd = overflow.Addr, overflow.Addr+overflow.Size
}

// findStats finds the variable stats, which is a local symbol, by getAllocations: that returns
// one of its fields, and loads no other word of the library's own behind that.
func findStats(code []instruction) (stats uint64) {
	for i := range code {
		in := &code[i]
		if in.Op == x86asm.RET {
			break
		}
		to, isReg := in.Args[0].(x86asm.Reg)
		from, isMem := in.Args[1].(x86asm.Mem)
		if in.Op == x86asm.MOV && isReg && isMem && to >= x86asm.RAX && to <= x86asm.R15 && from.Base == x86asm.RIP {
			stats = in.addr + uint64(in.Len) + uint64(from.Disp) - ghc.StatsAllocated
		}
	}
	return stats
}

// instruction is a decoded instruction and its address.
type instruction struct {
	x86asm.Inst
	addr uint64
}

// target returns the target of a direct jump or call.
func (i *instruction) target() (uint64, bool) {
	rel, ok := i.Args[0].(x86asm.Rel)
	return i.addr + uint64(i.Len) + uint64(int64(rel)), ok
}

// decodeProcedure decodes a procedure, and some of what follows a short one, up to the first
// bytes that are no instruction.
func (x *finder) decodeProcedure(name string) []instruction {
	const least, most = 512, 4096
	proc := x.Named(name)
	return decode(x.File.ReadAddr(proc.Addr, min(max(proc.Size, least), most)), proc.Addr)
}

func decode(code []byte, addr uint64) []instruction {
	var out []instruction
	for len(code) > 0 {
		inst, err := x86asm.Decode(code, 64)
		if err != nil {
			break
		}
		out = append(out, instruction{inst, addr})
		code, addr = code[inst.Len:], addr+uint64(inst.Len)
	}
	return out
}

// jumpTo returns the address of the jump to a target, 0 if there is none.
func jumpTo(code []instruction, target uint64, conditional bool) uint64 {
	for i := range code {
		in := &code[i]
		if to, ok := in.target(); ok && to == target && in.Op != x86asm.CALL && (in.Op != x86asm.JMP) == conditional {
			return in.addr
		}
	}
	return 0
}

// findBlockSite looks in stg_gc_noregs for where the next block of the nursery has
// been taken: the conditional jump, on the thread's allocation limit, to the jump
// back into the program.
func findBlockSite(check []instruction) uint64 {
	for i := range check {
		in := &check[i]
		if m, ok := in.Args[0].(x86asm.Mem); ok && in.Op == x86asm.JMP && m.Base == x86asm.RBP && m.Disp == 0 {
			return jumpTo(check, in.addr, true)
		}
	}
	return 0
}

// findLargeSite looks in allocateMightFail(capability, words) for an instruction
// that is executed for large objects alone, with both arguments still in their
// registers.
func findLargeSite(allocate []instruction) uint64 {
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
		in := &allocate[i]
		if clobbersArguments(&in.Inst) {
			return 0
		}
		to, direct := in.target()
		switch {
		case !direct:
			if in.Op == x86asm.JMP || in.Op == x86asm.RET {
				return 0
			}
		case branched && i <= branch:
			return 0 // before the branch, where small objects come along too
		case branched:
			return in.addr
		case i > 0 && comparesWords(&allocate[i-1].Inst) && (in.Op == x86asm.JA || in.Op == x86asm.JAE):
			branched, branch = true, i
			i = at(to) - 1
		case i > 0 && comparesWords(&allocate[i-1].Inst) && (in.Op == x86asm.JBE || in.Op == x86asm.JB):
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
	return in.Op == x86asm.CMP && in.Args[0] == x86asm.RSI && ok && limit >= ghc.LargeObjectWords-2 && limit <= ghc.LargeObjectWords+1
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

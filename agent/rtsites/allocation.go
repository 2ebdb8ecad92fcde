package rtsites

import (
	"cmp"
	"errors"

	"ccagent/bpf"
	"ccagent/internal/ghc"
)

// Allocation holds the sites of one run-time system at which allocation is sampled, as module
// addresses; 0 for one that was not found.
//
// Probes are put on jumps and calls: the kernel emulates those, where it would
// single-step most other instructions, at ten times the cost. On arm64 that of large objects is not.
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
	x, err := newFinder(symbols)
	if err != nil {
		return nil, err
	}
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
	s.findCounters(x)
	checks := x.code(ghc.SymHeapCheck)
	if s.Probes[bpf.SiteNursery] = jumpTo(checks, scheduler, jump); s.Probes[bpf.SiteNursery] == 0 {
		return nil, ErrNoJump
	}
	s.Probes[bpf.SiteBlock] = blockSite(x.machine, checks)
	if x.Addr(ghc.SymAllocateMightFail) != 0 {
		s.Probes[bpf.SiteLarge] = x.machine.large(x.code(ghc.SymAllocateMightFail))
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
	x, err := newFinder(symbols)
	if err != nil {
		return nil, err
	}
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
	s.Stats = x.stats()
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

// code decodes a procedure, and some of what follows a short one, up to the first
// bytes that are no instruction.
func (x *finder) code(name string) []instruction {
	const least, most = 512, 4096
	proc := x.Named(name)
	return decodeAll(x.machine, x.File.ReadAddr(proc.Addr, min(max(proc.Size, least), most)), proc.Addr)
}

// jumpTo returns the address of the first instruction of a kind that goes to a target, 0 if there is none.
func jumpTo(code []instruction, target uint64, k kind) uint64 {
	for i := range code {
		if target != 0 && code[i].kind == k && code[i].target == target {
			return code[i].addr
		}
	}
	return 0
}

// blockSite looks in stg_gc_noregs for where the next block of the nursery has
// been taken: the conditional jump, on the thread's allocation limit, to the jump
// back into the program.
func blockSite(m machine, check []instruction) uint64 {
	return jumpTo(check, m.intoProgram(check), branch)
}

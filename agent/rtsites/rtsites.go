package rtsites

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"

	"ccagent/bpf"
	"ccagent/internal/ghc"

	"golang.org/x/arch/x86/x86asm"
)

// Site is a place to probe.
type Site struct {
	Probe bpf.RTSProbe
	Addr  uint64 // module address
	// AtCall is set where Addr is a call: its return address is not on the stack.
	AtCall bool
	// Emulated is set where the kernel need not single-step the instruction.
	Emulated bool
}

// Group holds the sites of one event.
type Group struct {
	Sites []Site
	// Err is why there are none.
	Err error
	// Lacks names what the group cannot report, since symbols are missing.
	Lacks []string
}

// Sites holds the sites of one run-time system.
type Sites struct {
	GC, Threads Group
	Capabilities
	// Addresses of variables; 0 where one was not found.
	MBlocks, Blocks, Stats, OldestGeneration, Flags uint64
	// GCTimes is the offset of gc_sync_start_elapsed in a gc_thread, which gc_start_elapsed
	// follows; 0 if not known.
	GCTimes uint16
	// Threaded is set in the threaded way, which stops other capabilities for a GC.
	Threaded bool
}

// MissingError reports that a run-time system lacks something.
type MissingError struct{ What string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("this GHC's run-time system has no %s where it is looked for", e.What)
}

// Reasons for which nothing can be found.
var (
	ErrNoSymbols = errors.New("the run-time system has no symbol table to find its code by; install the program unstripped (cabal: --disable-executable-stripping)")
	ErrMachine   = errors.New("the run-time system's code is known for x86-64 alone")
)

// maxProcedure bounds what is decoded of one procedure.
const maxProcedure = 64 << 10

// Find finds all sites of a run-time system. A group whose sites are not found does not affect
// the other.
func Find(symbols *Symbols) (*Sites, error) {
	f := symbols.File
	if f.Machine != elf.EM_X86_64 {
		return nil, ErrMachine
	}
	if !symbols.complete {
		return nil, ErrNoSymbols
	}
	x := finder{symbols}
	s := &Sites{
		MBlocks:          x.Addr(ghc.SymMBlocks),
		Blocks:           x.Addr(ghc.SymBlocks),
		Capabilities:     x.capabilities(),
		Stats:            x.Addr(ghc.SymStats),
		OldestGeneration: x.Addr(ghc.SymOldestGeneration),
		Flags:            x.Addr(ghc.SymFlags),
	}
	if x.Addr(ghc.SymGarbageCollect) == 0 && x.Addr(ghc.SymStgReturn) == 0 {
		return nil, ErrNoSymbols
	}
	// The non-threaded RTS has neither workers nor schedulers for them.
	s.Threaded = slices.ContainsFunc(x.Names(), func(name string) bool { return stem(name) == ghc.SymScheduleWorker })
	s.GCTimes = x.gcTimes(s.Threaded)
	s.GC, s.Threads = x.gc(s), x.threads()
	for what, found := range map[string]bool{
		"the size of the heap":    s.MBlocks != 0 && s.Blocks != 0,
		"the heap's parameters":   s.OldestGeneration != 0 && s.Flags != 0,
		"the GC's own figures":    s.Stats != 0,
		"what has been allocated": s.Array != 0 && s.Count != 0 || s.Main != 0,
	} {
		s.GC.lack(what, found)
	}
	slices.Sort(s.GC.Lacks)
	for _, g := range []*Group{&s.GC, &s.Threads} {
		if slices.ContainsFunc(g.Sites, func(s Site) bool { return !f.Executable(s.Addr) }) {
			*g = missing("code where its symbols are")
		}
	}
	return s, nil
}

// lack notes what a group cannot report, unless it was found.
func (g *Group) lack(what string, found bool) {
	if !found && g.Err == nil {
		g.Lacks = append(g.Lacks, what)
	}
}

// add adds sites; if there are none it notes what the group cannot report.
func (g *Group) add(what string, sites ...Site) {
	g.lack(what, len(sites) > 0)
	g.Sites = append(g.Sites, sites...)
}

func missing(what string) Group { return Group{Err: &MissingError{what}} }

// finder looks for sites by the names of procedures.
type finder struct{ *Symbols }

func (x *finder) gc(s *Sites) Group {
	start := x.called(bpf.RTSGCStart, ghc.SymStartGC, ghc.SymGarbageCollect)
	end := x.called(bpf.RTSGCEnd, ghc.SymEndGC, ghc.SymGarbageCollect)
	if len(start) == 0 || len(end) == 0 {
		return missing("call of stat_startGC and stat_endGC")
	}
	if s.GCTimes != 0 {
		start = nil // the end says when it was
	}
	g := Group{Sites: append(start, end...)}
	if !s.Threaded {
		return g
	}
	g.lack("how long a GC waits for capabilities to stop", s.GCTimes != 0)
	start = x.called(bpf.RTSWorkerStart, ghc.SymStartGCWorker, ghc.SymGCWorkerThread)
	done := x.called(bpf.RTSWorkerDone, ghc.SymEndGCWorker, ghc.SymGCWorkerThread)
	end = x.after(bpf.RTSWorkerEnd, ghc.SymGCWorkerThread, ghc.SymYieldCapability)
	if len(start) == 0 || len(done) == 0 || len(end) == 0 {
		start, done, end = nil, nil, nil
	}
	g.add("the work of parallel GC", slices.Concat(start, done, end)...)
	start = x.called(bpf.RTSFlushStart, ghc.SymStartFlush, ghc.SymBeginFlush)
	end = x.called(bpf.RTSFlushEnd, ghc.SymEndFlush, ghc.SymFinishFlush)
	if len(start) > 0 && len(end) > 0 { // GHC 8.10 and later
		g.Sites = slices.Concat(g.Sites, start, end)
	}
	return g
}

// gcTimes finds where a gc_thread has the times at which a GC was requested and began, by what
// is stored after the clock was read. Where no other capability is stopped there is no request,
// but the place is the same.
func (x *finder) gcTimes(threaded bool) (offset uint16) {
	procedure, before := ghc.SymStartGCSync, int64(0)
	if !threaded {
		procedure, before = ghc.SymStartGC, 8
	}
	clock := x.Addr(ghc.SymElapsedTime)
	read := false
	x.each(procedure, func(at uint64, inst x86asm.Inst) bool {
		switch {
		case inst.Op == x86asm.CALL:
			read = goesTo(at, inst) == clock && clock != 0
		case read && inst.Op == x86asm.MOV && inst.Args[1] == x86asm.RAX:
			if to, ok := inst.Args[0].(x86asm.Mem); ok && to.Index == 0 && to.Base != 0 && to.Base != x86asm.RIP && to.Disp > before && to.Disp < 1<<12 {
				offset = uint16(to.Disp - before)
			}
			return false
		case inst.Op == x86asm.RET:
			return false
		}
		return true
	})
	return offset
}

// after returns the site that is reached when the call of a procedure in another has returned:
// the next instruction that the kernel emulates, if it is always reached.
func (x *finder) after(p bpf.RTSProbe, callee, caller string) (sites []Site) {
	target := x.Addr(callee)
	returned := uint64(0)
	x.each(caller, func(at uint64, inst x86asm.Inst) bool {
		switch {
		case target == 0:
			return false
		case returned == 0:
			if inst.Op == x86asm.CALL && goesTo(at, inst) == target {
				returned = at + uint64(inst.Len)
			}
			return true
		case emulated(inst):
			sites = []Site{{Probe: p, Addr: at, Emulated: true}}
		case inst.Op == x86asm.MOV || inst.Op == x86asm.CMP || inst.Op == x86asm.TEST:
			return true
		default:
			sites = []Site{{Probe: p, Addr: returned}}
		}
		return false
	})
	return sites
}

func (x *finder) threads() Group {
	var run []Site
	for name := range x.by {
		if slices.Contains(schedulers, stem(name)) {
			run = append(run, x.called(bpf.RTSRun, ghc.SymStgRun, name)...)
		}
	}
	var stop []Site
	for _, name := range []string{ghc.SymReturnToSched, ghc.SymReturnNotPaused, ghc.SymThreadFinished, ghc.SymStopThread} {
		at := x.branch(name, x86asm.JMP, ghc.SymStgReturn)
		if at == 0 {
			return missing("jump to StgReturn in " + name)
		}
		stop = append(stop, Site{Probe: bpf.RTSStop, Addr: at, Emulated: true})
	}
	if len(run) == 0 {
		return missing("call of StgRun")
	}
	g := Group{Sites: append(run, stop...)}
	first := x.branch(ghc.SymReturnButFirst, x86asm.CALL, ghc.SymThreadPaused)
	g.lack("threads that stop for the scheduler to do something first", first != 0)
	if first != 0 {
		g.Sites = append(g.Sites, Site{Probe: bpf.RTSStop, Addr: first, Emulated: true})
	}
	suspend := x.entered(bpf.RTSSuspend, ghc.SymSuspendThread)
	resume := x.called(bpf.RTSResume, ghc.SymDirtyTSO, ghc.SymResumeThread)
	if len(suspend) == 0 || len(resume) == 0 {
		suspend, resume = nil, nil
	}
	g.add("safe foreign calls", append(suspend, resume...)...)
	g.add("threads that are woken", x.entered(bpf.RTSWakeup, ghc.SymTryWakeupThread)...)
	g.add("threads that are created", x.entered(bpf.RTSCreate, ghc.SymScheduleThread)...)
	var label []Site
	// From 9.6 on labels are arrays in the heap, which the primitive hands on.
	if x.Addr(ghc.SymSetThreadLabel) != 0 {
		label = x.called(bpf.RTSLabelArray, ghc.SymLabelThread, ghc.SymLabelThreadPrimop)
	} else if at := x.Addr(ghc.SymLabelThreadPrimop); at != 0 {
		label = []Site{{Probe: bpf.RTSLabelCString, Addr: at}}
	}
	g.add("labels of threads", label...)
	return g
}

// called returns the sites of the calls of a procedure in another.
func (x *finder) called(p bpf.RTSProbe, callee, caller string) []Site {
	target := x.Addr(callee)
	var sites []Site
	if target == 0 {
		return nil
	}
	x.each(caller, func(at uint64, inst x86asm.Inst) bool {
		if inst.Op == x86asm.CALL && goesTo(at, inst) == target {
			sites = append(sites, Site{Probe: p, Addr: at, AtCall: true, Emulated: true})
		}
		return true
	})
	return sites
}

// branch returns the address of the first branch to a procedure in another, 0 if there
// is none.
func (x *finder) branch(in string, op x86asm.Op, to string) (found uint64) {
	target := x.Addr(to)
	if target == 0 {
		return 0
	}
	x.each(in, func(at uint64, inst x86asm.Inst) bool {
		if inst.Op == op && goesTo(at, inst) == target {
			found = at
		}
		return found == 0
	})
	return found
}

// entered returns the site in a procedure's prologue.
func (x *finder) entered(p bpf.RTSProbe, name string) []Site {
	entry := x.Addr(name)
	if entry == 0 {
		return nil
	}
	site := Site{Probe: p, Addr: entry}
	x.each(name, func(at uint64, inst x86asm.Inst) bool {
		switch {
		case emulated(inst):
			site.Addr, site.Emulated = at, true
			return false
		case touchesArguments(inst):
			return false // too late: the entry itself then
		}
		return true
	})
	return []Site{site}
}

// each decodes a procedure's instructions until f returns false.
func (x *finder) each(name string, f func(at uint64, inst x86asm.Inst) bool) {
	sym := x.by[name]
	if sym.Addr == 0 {
		return
	}
	size := sym.Size
	if size == 0 {
		size = 512 // assembly without a size
	}
	code := x.File.ReadAddr(sym.Addr, min(size, maxProcedure))
	for at := 0; at < len(code); {
		inst, err := x86asm.Decode(code[at:], 64)
		if err != nil || !f(sym.Addr+uint64(at), inst) {
			return
		}
		at += inst.Len
	}
}

// goesTo returns the target of a direct branch at an address; 0 for other instructions.
func goesTo(at uint64, inst x86asm.Inst) uint64 {
	rel, ok := inst.Args[0].(x86asm.Rel)
	if !ok {
		return 0
	}
	return at + uint64(inst.Len) + uint64(int64(rel))
}

// emulated reports whether the kernel's uprobes emulate the instruction:
// branch_setup_xol_ops and push_setup_xol_ops in arch/x86/kernel/uprobes.c.
func emulated(inst x86asm.Inst) bool {
	_, direct := inst.Args[0].(x86asm.Rel)
	_, register := inst.Args[0].(x86asm.Reg)
	return direct && inst.Op != x86asm.LOOP || inst.Op == x86asm.PUSH && register
}

// touchesArguments reports whether an instruction may change an argument that is in
// a register, or is no plain one.
func touchesArguments(inst x86asm.Inst) bool {
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

package rtsites

import (
	"errors"
	"fmt"
	"slices"

	"ccagent/bpf"
	"ccagent/internal/ghc"
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
	ErrMachine   = errors.New("the run-time system's code is known for x86-64 and arm64 alone")
)

// maxProcedure bounds what is decoded of one procedure.
const maxProcedure = 64 << 10

// Find finds all sites of a run-time system. A group whose sites are not found does not affect
// the other.
func Find(symbols *Symbols) (*Sites, error) {
	f := symbols.File
	x, err := newFinder(symbols)
	if err != nil {
		return nil, err
	}
	if !symbols.complete {
		return nil, ErrNoSymbols
	}
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
type finder struct {
	*Symbols
	machine machine
}

func newFinder(symbols *Symbols) (*finder, error) {
	m := machineOf(symbols.File.Machine)
	if m == nil {
		return nil, ErrMachine
	}
	return &finder{symbols, m}, nil
}

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
	code := x.all(procedure)
	for i := range code {
		if x.calls(&code[i], ghc.SymElapsedTime) {
			if at := x.machine.stored(code[i+1:]); at > before && at < 1<<12 {
				return uint16(at - before)
			}
			return 0
		}
	}
	return 0
}

// after returns the site that is reached when the call of a procedure in another has returned:
// the next instruction that the kernel emulates, if it is always reached.
func (x *finder) after(p bpf.RTSProbe, callee, caller string) []Site {
	code := x.all(caller)
	returned := uint64(0)
	for i := range code {
		in := &code[i]
		switch {
		case returned == 0:
			if x.calls(in, callee) {
				returned = in.next()
			}
		case in.emulated:
			return []Site{{Probe: p, Addr: in.addr, Emulated: true}}
		case !x.machine.straight(in):
			return []Site{{Probe: p, Addr: returned}}
		}
	}
	return nil
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
		at := x.goes(name, jump, ghc.SymStgReturn)
		if at == 0 {
			return missing("jump to StgReturn in " + name)
		}
		stop = append(stop, Site{Probe: bpf.RTSStop, Addr: at, Emulated: true})
	}
	if len(run) == 0 {
		return missing("call of StgRun")
	}
	g := Group{Sites: append(run, stop...)}
	first := x.goes(ghc.SymReturnButFirst, call, ghc.SymThreadPaused)
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

// calls reports whether an instruction is the direct call of a procedure.
func (x *finder) calls(in *instruction, callee string) bool {
	target := x.Addr(callee)
	return target != 0 && in.kind == call && in.target == target
}

// called returns the sites of the calls of a procedure in another.
func (x *finder) called(p bpf.RTSProbe, callee, caller string) (sites []Site) {
	if x.Addr(callee) == 0 {
		return nil
	}
	code := x.all(caller)
	for i := range code {
		if x.calls(&code[i], callee) {
			sites = append(sites, Site{Probe: p, Addr: code[i].addr, AtCall: true, Emulated: true})
		}
	}
	return sites
}

// goes returns the address of the first instruction of a kind that goes from a procedure to another, 0 if there
// is none.
func (x *finder) goes(from string, k kind, to string) uint64 {
	return jumpTo(x.all(from), x.Addr(to), k)
}

// entered returns the site in a procedure's prologue.
func (x *finder) entered(p bpf.RTSProbe, name string) []Site {
	entry := x.Addr(name)
	if entry == 0 {
		return nil
	}
	for _, in := range x.all(name) {
		if in.emulated {
			return []Site{{Probe: p, Addr: in.addr, Emulated: true}}
		}
		if in.mayChangeArgument {
			break // too late: the entry itself then
		}
	}
	return []Site{{Probe: p, Addr: entry}}
}

// all decodes a procedure's instructions.
func (x *finder) all(name string) []instruction {
	sym := x.by[name]
	if sym.Addr == 0 {
		return nil
	}
	size := sym.Size
	if size == 0 {
		size = 512 // assembly without a size
	}
	return decodeAll(x.machine, x.File.ReadAddr(sym.Addr, min(size, maxProcedure)), sym.Addr)
}

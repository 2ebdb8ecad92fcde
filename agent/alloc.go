package agent

import (
	"errors"
	"fmt"
	"runtime"

	"ccagent/eventlog"
	"ccagent/symbolize/elffile"

	"github.com/cilium/ebpf/link"
	"golang.org/x/arch/x86/x86asm"
)

// AllocEvent is the sampling of allocation, in bytes: whenever a heap check has
// found the nursery full, the stack of the code that wanted to allocate is
// taken, with all bytes that its capability has allocated since the last time.
const AllocEvent = "alloc"

// allocSymbols are the places in the run-time system that allocation sampling
// needs, as module addresses.
type allocSymbols struct {
	// probe is the jump by which a heap check returns to the scheduler. The
	// kernel emulates a jump, where it would single-step most others.
	probe                uint64
	enter                uint64 // stg_enter_info
	cannedLo, cannedHigh uint64 // stg_ret_*_info
}

var (
	errNoSymbols = errors.New("the run-time system has no symbol table to find the place of heap checks by; install the program unstripped")
	errNoJump    = errors.New("stg_gc_noregs has no jump to stg_returnToSched; this GHC's heap checks are not known")
)

// maxSymbolBytes bounds the symbol tables that are read during a capture.
const maxSymbolBytes = 512 << 20

// findAllocSymbols looks into the module that holds the run-time system.
func findAllocSymbols(mod *module) (*allocSymbols, error) {
	if runtime.GOARCH != "amd64" {
		return nil, fmt.Errorf("allocation sampling is not made for %s", runtime.GOARCH)
	}
	info, err := mod.file.Stat()
	if err != nil {
		return nil, fmt.Errorf("examine module %s: %w", mod.path, err)
	}
	f, err := elffile.Open(mod.file, info.Size())
	if err != nil {
		return nil, fmt.Errorf("examine module %s: %w", mod.path, err)
	}
	symbols, err := f.Symbols(maxSymbolBytes)
	if err != nil {
		return nil, fmt.Errorf("read symbols of %s: %w", mod.path, err)
	}
	var check, scheduler elffile.Symbol
	s := &allocSymbols{}
	for _, sym := range symbols {
		switch sym.Name {
		case "stg_gc_noregs":
			check = sym
		case "stg_returnToSched":
			scheduler = sym
		case "stg_enter_info":
			s.enter = sym.Addr
		case "stg_ret_v_info", "stg_ret_p_info", "stg_ret_n_info", "stg_ret_f_info", "stg_ret_d_info", "stg_ret_l_info":
			if s.cannedLo == 0 || sym.Addr < s.cannedLo {
				s.cannedLo = sym.Addr
			}
			s.cannedHigh = max(s.cannedHigh, sym.Addr)
		}
	}
	if check.Addr == 0 || scheduler.Addr == 0 {
		return nil, errNoSymbols
	}
	if s.probe = findJump(f, check, scheduler.Addr); s.probe == 0 {
		return nil, errNoJump
	}
	return s, nil
}

// findJump gives the address of the jump to target within a procedure, 0 if
// there is none.
func findJump(f *elffile.File, proc elffile.Symbol, target uint64) uint64 {
	const maxProcedure = 4096
	code := f.ReadAddr(proc.Addr, min(max(proc.Size, 512), maxProcedure))
	for at := 0; at < len(code); {
		inst, err := x86asm.Decode(code[at:], 64)
		if err != nil {
			return 0
		}
		if rel, ok := inst.Args[0].(x86asm.Rel); ok && inst.Op == x86asm.JMP &&
			proc.Addr+uint64(at+inst.Len)+uint64(int64(rel)) == target {
			return proc.Addr + uint64(at)
		}
		at += inst.Len
	}
	return 0
}

// fileOffset gives the place in the file of a module address.
func (mod *module) fileOffset(addr uint64) (uint64, bool) {
	for _, s := range mod.segments {
		if addr >= s.Addr && addr < s.Addr+s.Filesz {
			return addr - s.Addr + s.Offset, true
		}
	}
	return 0, false
}

// allocProbes samples the allocation of every profiled Haskell process. A nil
// one does nothing.
type allocProbes struct {
	event   *grantedEvent
	warn    func(string)
	links   map[uint32]link.Link // by the image's generation
	symbols map[*module]*allocSymbols
	// failed is why the event is not sampled; it is told once.
	failed error
}

func newAllocProbes(event *grantedEvent, warn func(string)) *allocProbes {
	return &allocProbes{event: event, warn: warn, links: map[uint32]link.Link{}, symbols: map[*module]*allocSymbols{}}
}

// find looks for the places in the image's run-time system, which its layout
// has to tell the walker. Nil if they cannot be found.
func (a *allocProbes) find(im *image) *allocSymbols {
	if a == nil || im.rts == nil || a.failed != nil {
		return nil
	}
	if s, known := a.symbols[im.rts]; known {
		return s
	}
	s, err := findAllocSymbols(im.rts)
	a.symbols[im.rts] = s
	if err != nil {
		a.fail(err)
	}
	return s
}

func (a *allocProbes) fail(err error) {
	a.failed = err
	a.warn(fmt.Sprintf("event %s is not available: %v; the other events go on", AllocEvent, err))
}

// attach puts the probe into an image's process, once.
func (a *allocProbes) attach(im *image) {
	s := a.find(im)
	if s == nil || a.links[im.generation] != nil {
		return
	}
	offset, ok := im.rts.fileOffset(s.probe)
	if !ok {
		a.fail(errNoJump)
		return
	}
	// By the file that is held open: whatever the path names by now.
	exe, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", im.rts.file.Fd()))
	if err == nil {
		a.links[im.generation], err = exe.Uprobe("", a.event.program, &link.UprobeOptions{Address: offset, PID: int(im.pid)})
	}
	if err != nil {
		delete(a.links, im.generation)
		a.fail(fmt.Errorf("put a probe into the program: %w", err))
	}
}

// drop removes the probe of an image that has ended.
func (a *allocProbes) drop(im *image) {
	if a == nil || a.links[im.generation] == nil {
		return
	}
	a.links[im.generation].Close() // the kernel removed it with the process
	delete(a.links, im.generation)
}

func (a *allocProbes) Close() error {
	if a == nil {
		return nil
	}
	var err error
	for _, l := range a.links {
		err = errors.Join(err, l.Close())
	}
	a.links = nil
	return err
}

// grantAlloc grants allocation sampling for now; whether the program allows it
// is seen when its run-time system is.
func grantAlloc() grantedEvent {
	return grantedEvent{def: eventlog.EventDef{
		Requested: AllocEvent, Granted: AllocEvent, Unit: "bytes", RateMode: eventlog.RatePeriod,
	}}
}

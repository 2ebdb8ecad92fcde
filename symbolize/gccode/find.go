package gccode

import (
	"bytes"
	"context"
	"debug/elf"
	"slices"

	"ccagent/symbolize/cfi"
	"ccagent/symbolize/coderefs"
	"ccagent/symbolize/elffile"
)

// complaint is in all messages that follow.
const complaint = "strange"

// evacuates are how messages of evacuate begin. Only the collector refers to it.
var evacuates = []string{"evacuate: strange closure type", "evacuate(static): strange closure type"}

// others are how further messages of the collector begin.
var others = []string{
	"eval_thunk_selector: strange selectee", // Evac.c
	"scavenge: unimplemented/strange closure type", "scavenge_one: strange object",
	"scavenge_static: strange closure", "scavenge_mark_stack: unimplemented/strange", // Scav.c
	"update_fwd: unknown/strange object", "update_fwd_large: unknown/strange object", "thread_static: strange closure", // Compact.c
	"mark_closure: unimplemented/strange", "mark_closure(static): strange closure", "Strange closure in nonmoving mark",
	"nonmoving_eval_thunk_selector: strange", "nonmoving scavenge: unimplemented/strange", // NonMoving*.c
}

const (
	// between is how many functions between two of the collector's are taken for its own.
	between = 4
	// A run of C functions is one of the run-time system's files and what is linked beside them.
	// Code of Haskell libraries, which parts such runs, need not be read.
	apart     = 64 << 10
	maxRodata = 256 << 20
)

// Limits for crafted files, far above what real ones have.
const (
	maxFunctions = 1 << 17
	maxRounds    = 32
)

// Collector is the collector's code, a range for each function.
type Collector struct {
	Code cfi.Ranges
	// Locks are those of them in which its threads wait for each other, and do nothing else.
	Locks cfi.Ranges
}

// Find returns the collector's code among a file's C functions. It finds nothing in a file
// without a collector.
func Find(ctx context.Context, f *elffile.File, functions cfi.Ranges) (Collector, error) {
	if f.Machine != elf.EM_X86_64 || len(functions) == 0 || len(functions) > maxFunctions {
		return Collector{}, nil
	}
	targets := make([]uint64, 0, len(functions))
	for _, r := range functions {
		targets = append(targets, r.Lo)
	}
	evac, other := messages(f)
	if len(evac) == 0 {
		return Collector{}, nil
	}
	targets = append(append(targets, evac...), other...)
	ofOthers := len(functions) + len(evac)

	g := graph{functions: functions, calls: make([][]int, len(functions)), callers: make([][]int, len(functions)), is: make([]bool, len(functions))}
	var evacuate []int
	for first := 0; first < len(functions); {
		last := first
		for last+1 < len(functions) && functions[last+1].Lo-functions[last].Hi < apart {
			last++
		}
		refs, err := coderefs.Within(ctx, f, functions[first].Lo, functions[last].Hi, targets)
		if err != nil {
			return Collector{}, err
		}
		for _, r := range refs {
			from := functions.Index(r.From)
			switch {
			case r.Target < len(functions):
				g.refers(from, r.Target)
			case from >= 0:
				g.is[from] = true
				if r.Target < ofOthers {
					evacuate = append(evacuate, from)
				}
			}
		}
		first = last + 1
	}
	g.sort()

	for _, e := range evacuate {
		g.addCallers(e)
	}
	g.addOwned(func(int) bool { return true })
	for i, is := range slices.Clone(g.is) {
		if is {
			g.addCallers(i)
		}
	}
	g.addBetween()
	g.addOwned(g.callsBack)
	waits := func(i int) bool { return pauses(f, functions[i]) && !g.callsBack(i) }
	g.addLocks(waits)
	var out Collector
	for i, r := range functions {
		if !g.is[i] {
			continue
		}
		out.Code = append(out.Code, r)
		if waits(i) {
			out.Locks = append(out.Locks, r)
		}
	}
	return out, nil
}

// graph has the references between a file's C functions.
type graph struct {
	functions      cfi.Ranges
	calls, callers [][]int // of each; the caller -1 is code that is in none
	is             []bool  // the collector's
}

func (g *graph) refers(from, to int) {
	if from == to {
		return
	}
	g.callers[to] = append(g.callers[to], from)
	if from >= 0 {
		g.calls[from] = append(g.calls[from], to)
	}
}

func (g *graph) sort() {
	for _, lists := range [][][]int{g.calls, g.callers} {
		for i, l := range lists {
			slices.Sort(l)
			lists[i] = slices.Compact(l)
		}
	}
}

// collects reports whether a caller is the collector's.
func (g *graph) collects(caller int) bool { return caller >= 0 && g.is[caller] }

func (g *graph) addCallers(of int) {
	for _, c := range g.callers[of] {
		if c >= 0 {
			g.is[c] = true
		}
	}
}

// addOwned adds functions to which only functions that are the collector's refer.
func (g *graph) addOwned(which func(i int) bool) {
	other := func(c int) bool { return !g.collects(c) }
	more := true
	for round := 0; more && round < maxRounds; round++ {
		more = false
		for i, callers := range g.callers {
			if !g.is[i] && len(callers) > 0 && !slices.ContainsFunc(callers, other) && which(i) {
				g.is[i], more = true, true
			}
		}
	}
}

// callsBack reports whether a function refers to one of the collector's.
func (g *graph) callsBack(i int) bool { return slices.ContainsFunc(g.calls[i], g.collects) }

// addBetween adds the few functions between two of the collector's.
func (g *graph) addBetween() {
	last := -1
	for i, is := range slices.Clone(g.is) {
		if !is {
			continue
		}
		if last >= 0 && i-last-1 <= between && g.functions[i].Lo-g.functions[last].Hi < apart {
			for j := last + 1; j < i; j++ {
				g.is[j] = true
			}
		}
		last = i
	}
}

// addLocks adds what waits in a loop and is referred to mostly by the collector.
func (g *graph) addLocks(waits func(i int) bool) {
	for i, callers := range g.callers {
		of := 0
		for _, c := range callers {
			if g.collects(c) {
				of++
			}
		}
		if !g.is[i] && 2*of > len(callers) && waits(i) {
			g.is[i] = true
		}
	}
}

// pauses reports whether a function is short and has the instruction of loops that wait for another CPU.
func pauses(f *elffile.File, r cfi.Range) bool {
	const longest = 256
	return r.Hi-r.Lo <= longest && bytes.Contains(f.ReadAddr(r.Lo, r.Hi-r.Lo), []byte{0xf3, 0x90})
}

// messages gives the addresses of strings in read-only data that begin as one of evacuates, and
// as one of others.
func messages(f *elffile.File) (evacuate, other []uint64) {
	begins := func(message []byte, with []string) bool {
		return slices.ContainsFunc(with, func(s string) bool { return bytes.HasPrefix(message, []byte(s)) })
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_PROGBITS || s.Flags&(elf.SHF_ALLOC|elf.SHF_WRITE|elf.SHF_EXECINSTR) != elf.SHF_ALLOC {
			continue
		}
		const overlap, most = 128, 1 << 10
		at := s.Addr
		_ = f.Scan(s.Offset, s.Size, maxRodata, overlap, func(chunk []byte) bool {
			for i := 0; len(evacuate)+len(other) < most; {
				j := bytes.Index(chunk[i:], []byte(complaint))
				if j < 0 {
					break
				}
				j += i
				i = j + len(complaint)
				k := bytes.LastIndexByte(chunk[max(0, j-overlap/2):j], 0)
				if k < 0 {
					continue // at the beginning of a chunk: it was whole in the one before
				}
				k += max(0, j-overlap/2) + 1
				switch addr := at + uint64(k); {
				case begins(chunk[k:], evacuates):
					evacuate = append(evacuate, addr)
				case begins(chunk[k:], others):
					other = append(other, addr)
				}
			}
			at += uint64(max(0, len(chunk)-overlap))
			return true
		})
	}
	return evacuate, other
}

package rtsites

import (
	"debug/elf"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
)

// Symbols holds the symbols of a run-time system that probes and readers need, collected in one
// pass over its file.
type Symbols struct {
	File *elffile.File
	// complete is set if there is a table of all symbols, not of the dynamic linker's alone.
	complete bool
	by       map[string]elffile.Symbol
}

// maxSymbolBytes bounds the symbol table with its names, which the agent reads as root. Those of
// the largest Haskell programs are smaller.
const maxSymbolBytes = 128 << 20

// ReadSymbols reads the symbols from a file, which need not have any. Those that it lacks are taken
// from its separate debug file, if there is one: the addresses are the same.
func ReadSymbols(f, debug *elffile.File) (*Symbols, error) {
	s := &Symbols{f, f.HasSymtab(), map[string]elffile.Symbol{}}
	if !s.complete && debug != nil && debug.HasSymtab() && debug.Machine == f.Machine {
		s.complete = true
		if err := s.scan(debug); err != nil {
			return nil, fmt.Errorf("read symbols of the debug file: %w", err)
		}
		return s, nil
	}
	if hash, err := f.NameHash(); err == nil && hash != nil && s.find(hash) == nil {
		return s, nil
	}
	if err := s.scan(f); err != nil {
		return nil, fmt.Errorf("read symbols: %w", err)
	}
	return s, nil
}

// find looks each symbol up: a file without a table of all symbols has none that a C compiler has
// made variants of.
func (s *Symbols) find(hash *elffile.NameHash) error {
	for _, name := range slices.Concat(slices.Collect(maps.Keys(names)), schedulers) {
		sym, found, err := hash.Find(name)
		if err != nil {
			return err
		}
		if found {
			s.by[name] = sym
		}
	}
	return nil
}

func (s *Symbols) scan(f *elffile.File) error {
	for i := range f.Sections {
		// No linker compresses them, and decompressing is not for a process with rights.
		if x := &f.Sections[i]; x.Compressed() && (x.Type == elf.SHT_SYMTAB || x.Type == elf.SHT_STRTAB) {
			return fmt.Errorf("%s is compressed", x.Name)
		}
	}
	return f.EachSymbol(maxSymbolBytes, func(sym *elffile.Symbol) {
		if !wanted(sym.Name) {
			return
		}
		if old, twice := s.by[sym.Name]; !twice || old.Size == 0 {
			one := *sym
			// The strings are part of the file's string table, which would be held as long as they are.
			one.Name, one.File = strings.Clone(sym.Name), strings.Clone(sym.File)
			s.by[one.Name] = one
		}
	})
}

// Names returns the names of the symbols that were found, sorted.
func (s *Symbols) Names() []string { return slices.Sorted(maps.Keys(s.by)) }

// Named returns the symbol of a name, the zero value if there is none.
func (s *Symbols) Named(name string) elffile.Symbol { return s.by[name] }

// Addr returns the module address of the symbol of a name, 0 if there is none.
func (s *Symbols) Addr(name string) uint64 { return s.by[name].Addr }

// schedulers are the procedures that may contain the call of StgRun, depending on what the C
// compiler inlined.
var schedulers = []string{ghc.SymSchedule, ghc.SymScheduleWait, ghc.SymScheduleWorker}

// names are all others.
var names = set(append([]string{
	// The timeline's.
	ghc.SymGarbageCollect, ghc.SymGCWorkerThread, ghc.SymStartGC, ghc.SymEndGC, ghc.SymStartGCWorker, ghc.SymEndGCWorker,
	ghc.SymYieldCapability, ghc.SymStartGCSync, ghc.SymElapsedTime, ghc.SymBeginFlush, ghc.SymStartFlush, ghc.SymFinishFlush, ghc.SymEndFlush,
	ghc.SymStgRun, ghc.SymStgReturn, ghc.SymReturnToSched, ghc.SymReturnNotPaused, ghc.SymReturnButFirst, ghc.SymThreadFinished, ghc.SymStopThread,
	ghc.SymThreadPaused, ghc.SymSuspendThread, ghc.SymResumeThread, ghc.SymDirtyTSO, ghc.SymTryWakeupThread, ghc.SymScheduleThread,
	ghc.SymLabelThreadPrimop, ghc.SymLabelThread, ghc.SymSetThreadLabel,
	ghc.SymMBlocks, ghc.SymBlocks, ghc.SymNCapabilities, ghc.SymCapabilities, ghc.SymMainCapability, ghc.SymStats, ghc.SymOldestGeneration, ghc.SymFlags, ghc.SymMyTask,
	// Of allocation.
	ghc.SymGenerations, ghc.SymGetAllocations, ghc.SymPrimFirst, ghc.SymPrimN, ghc.SymPrimNUntil, ghc.SymPrimUntil, ghc.SymFork, ghc.SymForkOn, ghc.SymStackOverflow, ghc.SymCreateThread,
	ghc.SymHeapCheck, ghc.SymNNurseries, ghc.SymAllocateMightFail, ghc.SymExitReport, ghc.SymExitReportUntil, ghc.SymEnter,
	// Of a census of the heap.
	ghc.SymResurrect, ghc.SymMBlockSpace, ghc.SymStableTable, ghc.SymStableSize, ghc.SymFreeSpace, ghc.SymNurseries, ghc.SymNextNursery, ghc.SymDenseCells,
	// Of transactions.
	ghc.SymAtomicallyFrame, ghc.SymCommit, ghc.SymStartTransaction, ghc.SymMaxCommits, ghc.SymRetry, ghc.SymSTMWait, ghc.SymRaise, ghc.SymValidate, ghc.SymNoTRec,
	// Of ticky counters.
	ghc.SymTickyCounters, ghc.SymShutdown,
}, ghc.SymReturnValues[:]...)...)

func set(names ...string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, name := range names {
		s[name] = true
	}
	return s
}

// longest is the length of the longest of names. Most of a large program's symbols are longer.
var longest = len(slices.MaxFunc(slices.Collect(maps.Keys(names)), func(a, b string) int { return len(a) - len(b) }))

func wanted(name string) bool {
	return len(name) <= longest && names[name] || strings.HasPrefix(name, ghc.SymSchedule) && slices.Contains(schedulers, stem(name))
}

// stem returns a C function's name without the suffix that compilers add to variants.
func stem(name string) string {
	s, _, _ := strings.Cut(name, ".")
	return s
}

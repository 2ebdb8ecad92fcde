package rtsites

import "ccagent/internal/ghc"

// Heap holds the variables that lead to a run-time system's heap, as module addresses; 0 for one
// that was not found.
type Heap struct {
	Capabilities
	Generations      uint64 // generations: the address of their array
	OldestGeneration uint64 // oldest_gen: the address of the last of them
	// Space is mblock_address_space: begin and end of the heap's addresses. Shared libraries before
	// 9.10 do not export it.
	Space uint64
	// Stable is stable_ptr_table, StableSize SPT_size, how many entries it has.
	Stable, StableSize uint64
	// FreeSpace is free_list_head, the list of ranges of the heap that were given back to the kernel.
	FreeSpace uint64
	// Nurseries is nurseries, the address of an array, NurseryCount n_nurseries, NextNursery next_nursery.
	Nurseries, NurseryCount, NextNursery uint64
	// DenseCells is nonmoving_alloca_dense_cnt, a byte: how many sizes of cells of the non-moving collector are a word apart.
	DenseCells uint64
	// Collect and CollectEnd bound the code of GarbageCollect.
	Collect, CollectEnd uint64
}

// Census is where the heap of a run-time system can be looked at, after a major collection: at the
// beginning of resurrectThreads, which a collection calls when all that it has kept is in
// its place and no thread runs yet. GarbageCollect's first argument is the oldest generation to be
// collected.
type Census struct {
	Heap
	Resurrect uint64
}

// FindHeap finds the variables that lead to the heap.
func FindHeap(symbols *Symbols) (*Heap, error) {
	x, err := newFinder(symbols)
	if err != nil {
		return nil, err
	}
	h := &Heap{
		Capabilities: x.capabilities(), Generations: x.Addr(ghc.SymGenerations), OldestGeneration: x.Addr(ghc.SymOldestGeneration),
		Space: x.Addr(ghc.SymMBlockSpace), Collect: x.Addr(ghc.SymGarbageCollect),
		Stable: x.Addr(ghc.SymStableTable), StableSize: x.Addr(ghc.SymStableSize),
		FreeSpace: x.Addr(ghc.SymFreeSpace), Nurseries: x.Addr(ghc.SymNurseries), NurseryCount: x.Addr(ghc.SymNNurseries),
		NextNursery: x.Addr(ghc.SymNextNursery), DenseCells: x.Addr(ghc.SymDenseCells),
	}
	h.CollectEnd = h.Collect + x.Named(ghc.SymGarbageCollect).Size
	switch {
	case h.Generations == 0 && h.OldestGeneration == 0:
		return nil, ErrNoSymbols
	case h.Generations == 0 || h.OldestGeneration == 0:
		return nil, &MissingError{"variable generations or oldest_gen"}
	}
	return h, nil
}

// FindCensus finds where the heap can be looked at.
func FindCensus(symbols *Symbols) (*Census, error) {
	h, err := FindHeap(symbols)
	if err != nil {
		return nil, err
	}
	x, err := newFinder(symbols)
	if err != nil {
		return nil, err
	}
	c := &Census{Heap: *h, Resurrect: x.beginning(ghc.SymResurrect)}
	if c.Collect == 0 || c.Resurrect == 0 {
		return nil, &MissingError{"function GarbageCollect or resurrectThreads"}
	}
	return c, nil
}

// beginning is where to probe the beginning of a procedure: at its first instruction, or at one of the next two that the kernel emulates, if those before
// compare at most. A collection of a younger generation passes there too, thousands of times a second in some programs, and a
// hit that has to be single-stepped takes eight times as long. 0 if there is no such procedure.
func (x *finder) beginning(name string) uint64 {
	at := x.Addr(name)
	if at == 0 {
		return 0
	}
	const most = 2
	for i, in := range x.code(name) {
		switch {
		case in.emulated:
			return in.addr
		case i == most || in.kind != other || in.mayChangeArgument:
			return at
		}
	}
	return at
}

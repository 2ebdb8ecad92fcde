package rtsites

import "ccagent/internal/ghc"

// FindStats returns the module address of what a run-time system counts of its collections, an RTSStats.
func FindStats(symbols *Symbols) (uint64, error) {
	x, err := newFinder(symbols)
	if err != nil {
		return 0, err
	}
	if at := x.stats(); at != 0 {
		return at, nil
	}
	return 0, ErrNoSymbols
}

// stats returns the address of the variable stats: by its name, or from the code of a function that reads it. 0 if it
// was not found.
func (x *finder) stats() uint64 {
	if at := x.Addr(ghc.SymStats); at != 0 || x.Addr(ghc.SymGetAllocations) == 0 {
		return at
	}
	return x.machine.stats(x.code(ghc.SymGetAllocations))
}

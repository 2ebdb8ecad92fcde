package rtsites

import (
	"testing"

	"ccagent/internal/ghc"
	"ccagent/internal/testprog"
)

// A census's sites, which collections of all generations pass, are at the beginnings of their functions and need not be single-stepped.
func TestFindCensus(t *testing.T) {
	for _, release := range testprog.Releases {
		for _, threaded := range []bool{false, true} {
			symbols := open(t, testprog.Build(t, "threads100", testprog.Options{Release: release, Threaded: threaded}))
			c, err := FindCensus(symbols)
			if err != nil {
				t.Fatal(err)
			}
			x, err := newFinder(symbols)
			if err != nil {
				t.Fatal(err)
			}
			for name, at := range map[string]uint64{ghc.SymGarbageCollect: c.Collect, ghc.SymResurrect: c.Resurrect} {
				emulated, behind := false, 0
				for i, in := range x.code(name) {
					if in.addr == at {
						emulated, behind = in.emulated, i
					}
				}
				if !emulated || behind > 2 {
					t.Errorf("GHC %s, threaded %v: %s is probed at %#x, its instruction %d, emulated: %v", release, threaded, name, at, behind, emulated)
				}
			}
		}
	}
}

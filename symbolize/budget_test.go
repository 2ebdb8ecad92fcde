package symbolize

import (
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// Over its budget the symboliser keeps what it has read: blocks of the modules
// whose debug information it held, symbols for the rest, and a word about it.
func TestMemoryBudgetLeavesSymbols(t *testing.T) {
	// Haskell libraries apart, so that what counts is the program's own.
	exe := testprog.Build(t, "example", testprog.Options{Dynamic: true})
	addrs := codeAddresses(t, exe, 8)
	at := func(memory uint64) (map[uint64]eventlog.Location, Summary, string) {
		tab, sum := resolve(t, Job{Modules: []Module{module(t, exe, addrs...)}, Memory: memory})
		return tab.locations[1], sum, tab.modules[1].Problem
	}
	whole, full, problem := at(0)
	if full.InBlocks == 0 || problem != "" {
		t.Fatalf("without a budget: %+v", full)
	}
	none, partial := 0, 0
	for memory := uint64(4 << 20); memory > 64<<10; memory -= memory / 8 {
		some, sum, problem := at(memory)
		if sum.InBlocks == full.InBlocks {
			continue
		}
		if strings.Contains(problem, "symbols:") { // none left to fall back to
			break
		}
		t.Logf("%d KB: %d of %d in blocks, %d of %d named; %s", memory>>10, sum.InBlocks, full.InBlocks, sum.Resolved, full.Resolved, problem)
		if !strings.Contains(problem, "--symbolize-memory") || len(sum.Problems) == 0 {
			t.Errorf("%d KB: only %d of %d addresses are in blocks, and all that is said is %q", memory>>10, sum.InBlocks, full.InBlocks, problem)
		}
		for a, l := range whole {
			if got, ok := some[a]; !ok || l.Binding != 0 && got.Block == 0 && got.Binding == 0 {
				t.Fatalf("%d KB: %#x was %+v, and is %+v", memory>>10, a, l, got)
			}
		}
		if sum.InBlocks == 0 {
			none++
		} else {
			partial++
		}
	}
	if partial == 0 {
		t.Errorf("no budget held a part of the debug information; %d held none", none)
	}
}

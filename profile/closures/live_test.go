package closures

import (
	"bytes"
	"maps"
	"testing"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

// bandsOf are the bytes and closures of a census, by title.
func bandsOf(h *columns.HeapProfile, census int) map[string][2]uint64 {
	all := map[string][2]uint64{}
	h.Each(census, func(b int, bytes uint64) { all[h.Bands[b].Title()] = [2]uint64{bytes, 0} })
	h.EachNumber(census, func(b int, n uint64) {
		x := all[h.Bands[b].Title()]
		all[h.Bands[b].Title()] = [2]uint64{x[0], n}
	})
	return all
}

// What was live is divided by each level into the same bytes, also after it was written anew.
func TestLive(t *testing.T) {
	p, err := profile.Load(bytes.NewReader(logtest.Divided().End()))
	if err != nil {
		t.Fatal(err)
	}
	h := &p.HeapProfiles[0]
	if !h.HasKinds() {
		t.Fatal("the log was not counted by info table")
	}
	pinned, rest := [2]uint64{4096, 1}, [2]uint64{72, 9}
	node, stack, own, written := [2]uint64{960, 40}, [2]uint64{2048, 2}, [2]uint64{200, 5}, [2]uint64{4800, 120}
	for by, want := range map[Grouping]map[string][2]uint64{
		ByType:    {"ARR_WORDS": pinned, Rare: rest, "main:Main.Node": node, "STACK": stack, "THUNK_0_2": own, "THUNK_1_0": written},
		ByKind:    {"pinned byte arrays": pinned, Rare: rest, "values of data types": node, "stacks": stack, "thunks": {5000, 125}},
		BySpan:    {PinnedArrays: pinned, Rare: rest, "Main.Node": node, "(stacks)": stack, "thunk (unresolved)": own, "thunk Main.main  Main.hs:3:8": written},
		ByBinding: {PinnedArrays: pinned, Rare: rest, "Main.Node": node, "(stacks)": stack, "thunk (unresolved)": own, "thunk Main.main": written},
		ByModule:  {PinnedArrays: pinned, Rare: rest, "Main": {5760, 160}, "(stacks)": stack, "(unresolved)": own},
		ByFile:    {PinnedArrays: pinned, Rare: rest, "module Main": node, "(stacks)": stack, "(unresolved)": own, "src/Main.hs": written},
		ByPackage: {PinnedArrays: pinned, Rare: rest, "main": {5760, 160}, "(stacks)": stack, "(unresolved)": own},
	} {
		live := Live(p, h, by, nil)
		if got := bandsOf(live, 2); !maps.Equal(got, want) || live.Censuses[2].Total != h.Censuses[2].Total || len(live.Censuses) != 3 {
			t.Errorf("by %s: %v of %d bytes, want %v of %d", by, got, live.Censuses[2].Total, want, h.Censuses[2].Total)
		}
		if g, err := ParseGrouping(by.String()); g != by || err != nil {
			t.Errorf("%s is parsed as %s, %v", by, g, err)
		}
	}
	if got := bandsOf(Live(p, h, BySpan, Named(p, "thunks")), 0); !maps.Equal(got, map[string][2]uint64{"thunk (unresolved)": own, "thunk Main.main  Main.hs:3:8": {1600, 40}}) {
		t.Errorf("thunks alone: %v", got)
	}
	if got := bandsOf(Live(p, h, BySpan, Within(p, ByType, "STACK")), 0); !maps.Equal(got, map[string][2]uint64{"(stacks)": stack}) {
		t.Errorf("stacks alone: %v", got)
	}
}

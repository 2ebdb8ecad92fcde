package heap

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// graphOf is a log of a census with threads as branches: each has a label, its parent among them (0 is above all), and what it
// retains.
func graphOf(t *testing.T, branches ...eventlog.HeapBranch) *profile.Profile {
	t.Helper()
	l := logtest.New()
	l.Write(1, &eventlog.HeapGraph{PID: 100, Bytes: 1000})
	for id := range uint32(10) {
		l.Write(1, &eventlog.HeapRoot{ID: 1 + id, Kind: eventlog.HeapRootThread, TSO: 1 + uint64(id), Label: fmt.Sprint("t", 1+id)})
	}
	l.Write(1, &eventlog.HeapBranch{})
	for i := range branches {
		l.Write(1, &branches[i])
	}
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// What grew stands below what is above it, though that did not grow itself; and only so many branches are listed as are asked
// for, of several that grew alike.
func TestGrowthOfBranches(t *testing.T) {
	branch := func(parent, root uint32, retained uint64) eventlog.HeapBranch {
		return eventlog.HeapBranch{Parent: parent, Root: root, Count: 1, Bytes: 1, Retained: retained}
	}
	before := graphOf(t, branch(0, 1, 300), branch(1, 2, 100), branch(1, 3, 200), branch(0, 4, 50), branch(0, 5, 7))
	after := graphOf(t, branch(0, 1, 300), branch(1, 2, 200), branch(1, 3, 100), branch(0, 4, 51), branch(0, 5, 8), branch(0, 6, 1))
	for most, want := range map[int][]string{
		1: {"0 t1 +0", "1 t2 +100"},
		2: {"0 t1 +0", "1 t2 +100", "0 t4 +1"},
		9: {"0 t1 +0", "1 t2 +100", "0 t4 +1", "0 t5 +1", "0 t6 +1"},
	} {
		r := RetainedGrowth{Before: before, After: after}
		a, b, why := r.graphs()
		if why != "" {
			t.Fatal(why)
		}
		branches, _ := r.of(a, b, most)
		var got []string
		for _, d := range branches {
			label := d.name[len(d.name)-len("t0"):]
			for _, l := range []string{"t1", "t2", "t3", "t4", "t5", "t6"} {
				if bytes.Contains([]byte(d.name), []byte(l)) {
					label = l
				}
			}
			got = append(got, fmt.Sprintf("%d %s %+d", d.depth, label, d.more))
			if len(d.path) != d.depth+1 || d.path[d.depth] != d.name {
				t.Errorf("the path of %s is %q", d.name, d.path)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("of %d branches %q, want %q", most, got, want)
		}
	}
}

// A tree that is one long chain is told down to a depth, in time and memory that do not grow with its square.
func TestGrowthOfChain(t *testing.T) {
	var before, after []eventlog.HeapBranch
	for i := range uint32(100_000) {
		before = append(before, eventlog.HeapBranch{Parent: i, Root: 1 + i%10, Retained: 1})
		after = append(after, eventlog.HeapBranch{Parent: i, Root: 1 + i%10, Retained: 2})
	}
	r := RetainedGrowth{Before: graphOf(t, before...), After: graphOf(t, after...)}
	a, b, _ := r.graphs()
	if branches, _ := r.of(a, b, mostGrown); len(branches) != deepest {
		t.Errorf("%d branches", len(branches))
	}
}

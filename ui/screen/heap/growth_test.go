package heap

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
	"ccagent/ui/printer"
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
		2: {"0 t4 +1", "0 t1 +0", "1 t2 +100"},
		9: {"0 t4 +1", "0 t5 +1", "0 t6 +1", "0 t1 +0", "1 t2 +100"},
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

// Where most of what has come was reached from no root, that is said before all branches, in the text and in the viewer's sentence,
// and the tables do not call it alive; where branches explain it, it is not.
func TestGrowthUnexplained(t *testing.T) {
	at := func(bytes, unreached uint64, complete bool) *profile.Profile {
		l := logtest.New()
		l.Write(1, &eventlog.HeapGraph{PID: 100, Bytes: bytes, Unreached: unreached, UnreachedBytes: unreached, AtRest: true, Complete: complete, Notes: []string{"a note"}})
		l.Write(1, &eventlog.HeapRoot{ID: 1, Kind: eventlog.HeapRootThread, TSO: 1})
		l.Write(1, &eventlog.HeapBranch{})
		l.Write(1, &eventlog.HeapBranch{Parent: 0, Root: 1, Count: 1, Bytes: bytes - unreached, Retained: bytes - unreached})
		return loaded(t, l)
	}
	text := func(r printer.Report) string {
		var b bytes.Buffer
		if err := r.Text(&b, printer.Options{File: "f"}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	before := at(100<<20, 1<<20, true)
	after := at(150<<20, 50<<20, false)
	r := RetainedGrowth{Before: before, After: after}
	first := "These branches explain 1.00 MiB of the 50.0 MiB by which the heap grew: 49.0 MiB more were reached from no root"
	got := text(r)
	has(t, got, []string{"150 MiB counted", first, "50.0 MiB (33.3%) in 52 428 800 closures were reached from none of these: garbage, or held by a thread that ran when the process was stopped", "--wait 60s", "a note"}, "alive by none")
	if w := growthListing(r).words; !strings.HasPrefix(w, first) {
		t.Errorf("the sentence of growth is %q", w)
	}
	has(t, text(Retained{Profile: after}), []string{"150 MiB counted", "registers did not tell"}, " alive in ")
	if w := retainedListing(after).words; !strings.HasPrefix(w, "33.3% was reached from no root; ") {
		t.Errorf("the sentence is %q", w)
	}
	has(t, text(Retained{Profile: before}), []string{"garbage, for the process was stopped between collections"}, "registers did not tell")
	if w := retainedListing(before).words; strings.Contains(w, "no root") {
		t.Errorf("the sentence of a census that was reached is %q", w)
	}
	has(t, text(RetainedGrowth{Before: before, After: at(150<<20, 2<<20, true)}), []string{"+50.0 MiB since"}, "explain")
	// Nothing is said of what retains most where no root leads to any closure of a kind.
	n := newGraphNames(after, &columns.HeapGraph{Bands: []columns.HeapGraphBand{{}}})
	name := n.title(0)
	if why := (Paths{Closure: name}).none(n); !strings.Contains(why, "no root leads to any") {
		t.Errorf("of a closure that was not reached: %s", why)
	}
	n.g.Bands[0].Retained = 1
	if why := (Paths{Closure: name}).none(n); !strings.Contains(why, "retain most") {
		t.Errorf("of one that was: %s", why)
	}
}

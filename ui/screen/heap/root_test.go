package heap

import (
	"bytes"
	"encoding/json"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/printer"
)

// rooted is a log with threads, one of whose numbers begins with another's, and pointers.
func rooted(t *testing.T) *profile.Profile {
	t.Helper()
	l := logtest.New()
	for id, name := range []string{"main:Main.Node", "main:Main.Leaf"} {
		l.Write(1, &eventlog.Closure{ID: uint32(1 + id), Module: logtest.Module, Addr: 0x77 + uint64(id), Type: uint32(ghc.Constr20), Name: name})
	}
	for _, e := range []eventlog.Event{
		&eventlog.HeapGraph{PID: 1, Closures: 12, Bytes: 1000, Threads: 3},
		&eventlog.HeapRoot{ID: 1, Kind: eventlog.HeapRootThread, TSO: 7, Label: "reader", Retained: 300},
		&eventlog.HeapRoot{ID: 2, Kind: eventlog.HeapRootThread, TSO: 70, Label: "writer of reader", Retained: 400},
		&eventlog.HeapRoot{ID: 3, Kind: eventlog.HeapRootStable, Number: 5, Retained: 8},
		&eventlog.HeapRoot{ID: 4, Kind: eventlog.HeapRootWeak, Retained: 100},
		&eventlog.HeapBranch{Count: 12, Retained: 1000},
		&eventlog.HeapBranch{Parent: 0, Root: 1, Count: 1, Bytes: 60, Retained: 300},
		&eventlog.HeapBranch{Parent: 0, Root: 2, Count: 1, Bytes: 100, Retained: 400},
		&eventlog.HeapBranch{Parent: 1, Closure: 1, Count: 3, Bytes: 90, Retained: 240},
		&eventlog.HeapBranch{Parent: 3, Closure: 2, Count: 5, Bytes: 150, Retained: 150},
		&eventlog.HeapBranch{Parent: 2, Closure: 2, Count: 1, Bytes: 300, Retained: 300},
		&eventlog.HeapBranch{Parent: 0, Root: 4, Count: 1, Retained: 100},
		&eventlog.HeapPath{Closure: 2, Root: 1, Count: 6, Bytes: 170, Steps: []eventlog.HeapStep{{Closure: 2, Times: 1}}},
		&eventlog.HeapPath{Closure: 2, Root: 2, Count: 1, Bytes: 300, Steps: []eventlog.HeapStep{{Closure: 2, Times: 1}}},
	} {
		l.Write(2, e)
	}
	return loaded(t, l)
}

// A root is found by its whole name before those that only have it in theirs, and what it keeps alive is its branch alone.
func TestRootsByName(t *testing.T) {
	p := rooted(t)
	for name, want := range map[string][]string{
		"7": {"thread 7 “reader”"}, "thread 7": {"thread 7 “reader”"}, "reader": {"thread 7 “reader”"}, "writer": {"thread 70 “writer of reader”"},
		"thread": {"thread 70 “writer of reader”", "thread 7 “reader”"}, "stable pointer 5": {"stable pointer 5"}, "weak": {"weak pointer"}, "Main.none": nil,
	} {
		var b bytes.Buffer
		if err := (Roots{p, name}).JSON(&b, printer.Options{}); err != nil {
			t.Fatal(err)
		}
		var doc rootsJSON
		if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
			t.Fatal(err)
		}
		if (doc.Problem != "") != (want == nil) || len(doc.Roots) != len(want) {
			t.Errorf("%q: %+v", name, doc)
			continue
		}
		for i := range want {
			if doc.Roots[i].Root != want[i] {
				t.Errorf("%q: %q, want %q", name, doc.Roots[i].Root, want[i])
			}
		}
		if name != "7" {
			continue
		}
		r := doc.Roots[0]
		if r.Retained != 300 || len(r.Tree) != 2 || r.Tree[0].Parent != -1 || r.Tree[0].Retained != 240 || r.Tree[1].Parent != 0 || r.Tree[1].Own != 150 || *r.Tree[1].Closure != "Main.Leaf" {
			t.Errorf("it retains %+v", r)
		}
		if len(r.Nearest) != 1 || r.Nearest[0].Bytes != 170 || r.Nearest[0].Count != 6 {
			t.Errorf("nearest are %+v", r.Nearest)
		}
	}
	text := func(r printer.Report, top ...int) string {
		var b bytes.Buffer
		if err := r.Text(&b, printer.Options{File: "f", Top: append(top, 0)[0]}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	has(t, text(Roots{p, "reader"}), []string{"thread 7 “reader”", "retains 300 B (30.0%)", "Main.Node", "  Main.Leaf", "170 B"}, "300 B   30.0%      300 B", "writer")
	has(t, text(Roots{p, "reader"}, 1), []string{"Main.Node"}, "     150 B") // of its own branches
	has(t, text(Roots{p, "stable pointer 5"}), []string{"too little to be in the log"}, "Main.Node")
	has(t, text(Roots{p, "nobody"}), []string{`No root is called "nobody"`})
	has(t, text(Paths{p, "reader"}), []string{"--root says what it keeps alive"})
}

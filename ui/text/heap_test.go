package text_test

import (
	"bytes"
	"testing"

	"ccagent/ui/printer"
	heapscreen "ccagent/ui/screen/heap"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/fixture"
	"ccagent/ui/internal/golden"
	"ccagent/ui/safe"
)

func TestGoldenHeap(t *testing.T) {
	for _, name := range []string{"bands-hT", "bands-hc"} {
		p := fixture.Recorded(t, name)
		var heap, gc bytes.Buffer
		if err := (heapscreen.Report{Profile: p}).Text(&heap, printer.Options{File: name + ".eventlog"}); err != nil {
			t.Fatal(err)
		}
		if err := (heapscreen.GCReport{Profile: p}).Text(&gc, printer.Options{File: name + ".eventlog"}); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "heap-"+name+".txt", heap.String())
		golden.Check(t, "gc-"+name+".txt", gc.String())
	}
	// A range, narrow, and few rows.
	p := fixture.Recorded(t, "bands-hT")
	r := profile.Range{From: 100e6, To: 200e6}
	var heap, gc bytes.Buffer
	if err := (heapscreen.Report{Profile: p, Range: r}).Text(&heap, printer.Options{File: "bands-hT.eventlog", Width: 60, Top: 3}); err != nil {
		t.Fatal(err)
	}
	if err := (heapscreen.GCReport{Profile: p, Range: r}).Text(&gc, printer.Options{File: "bands-hT.eventlog", Width: 80, Top: 2}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "heap-range.txt", heap.String())
	golden.Check(t, "gc-range.txt", gc.String())
	for line := range bytes.Lines(gc.Bytes()) {
		if w := safe.Width(string(bytes.TrimRight(line, "\n"))); w > 80 {
			t.Errorf("%d columns in a terminal of 80: %q", w, line)
		}
	}
	for line := range bytes.Lines(heap.Bytes()) {
		if w := safe.Width(string(bytes.TrimRight(line, "\n"))); w > 60 {
			t.Errorf("%d columns in a terminal of 60: %q", w, line)
		}
	}
}

// A log without any of it says so, and how to get it.
func TestNoHeap(t *testing.T) {
	p := load(t, logtest.NBody().End())
	var b bytes.Buffer
	if err := (heapscreen.Report{Profile: p}).Text(&b, printer.Options{File: "nbody.eventlog"}); err != nil {
		t.Fatal(err)
	}
	if err := (heapscreen.GCReport{Profile: p}).Text(&b, printer.Options{File: "nbody.eventlog"}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "no-heap.txt", b.String())
}

package nursery

import (
	"fmt"
	"slices"
	"testing"

	"ccagent/agent/source"
	"ccagent/agent/sourcetest"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

// Blocks that the ring buffer has no room for are counted, and the user is warned at the end of how many.
func TestLossIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "alloc31", testprog.Options{})
	kind := source.Kind{New: func(h *source.Host, events []*source.Event, _ source.Need) source.Source {
		return open(h, events, source.Closures)
	}}
	r := sourcetest.Open(t, kind, perf.Rate{})
	n := r.Source.(*nursery)
	r.Run(t, exe, "1000000000")
	if len(n.images) != 1 {
		t.Fatalf("the probe is not in place: %q", r.Warned)
	}
	dropped := func() uint64 {
		counts, err := n.program.Counts()
		if err != nil {
			t.Fatal(err)
		}
		return counts.Dropped
	}
	sourcetest.Until(t, "a block is lost", func() bool { return dropped() > 0 })
	before := dropped() // the program goes on to lose some
	if err := r.Source.Finish(0); err != nil {
		t.Fatal(err)
	}
	after := dropped()
	var lost, of uint64
	told := slices.ContainsFunc(r.Warned, func(line string) bool {
		scanned, _ := fmt.Sscanf(line, "%d of %d blocks of the nursery were lost: the ring buffer was full", &lost, &of)
		return scanned == 2
	})
	if !told || lost < before || lost > after || of < lost {
		t.Errorf("from %d to %d blocks were lost, and the warnings are %q", before, after, r.Warned)
	}
}

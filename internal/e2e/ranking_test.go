package e2e

import (
	"cmp"
	"context"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/symbolize"
	"ccagent/symbolize/sources"
)

// Sampled shares of source bindings agree with callgrind's instruction counts. Time is not
// instructions: for each program, factor limits how much the cycles per instruction of two
// parts of its code may differ, on any processor. None of these programs misses caches. (For
// the example program, which chases pointers, shares of time and instructions differ by
// more, rightly.)
func TestRankingAgreesWithInstructionCounts(t *testing.T) {
	for _, p := range []struct {
		name          string
		counted, long []string // the same work, a few times and many times
		factor        float64
	}{
		{"spin31", []string{"100"}, []string{"20000"}, 1.25},               // two chains of the same multiplications
		{"alloc31", []string{"100"}, []string{"30000"}, 2},                 // loops that allocate more and less
		{"fac", []string{"1000", "300"}, []string{"1000", "300000"}, 4},    // a multiplication an addition
		{"fusion", []string{"1000", "300"}, []string{"1000", "300000"}, 4}, // the same
	} {
		t.Run(p.name, func(t *testing.T) {
			exe := testprog.Build(t, p.name, testprog.Options{Flags: []string{"-optl-no-pie"}})
			want := sharesByInstructions(t, exe, testprog.CountInstructions(t, exe, p.counted...))

			log, _ := record(t, []string{"--max-overhead", "0"}, exe, p.long...)
			h := hotOf(t, log)
			got := map[string]float64{}
			haskell, n := haskellShare(t, h)
			for _, r := range h.Rows {
				if r.Kind != "category" {
					got[r.Element] = r.Share / haskell
				}
			}
			compareRanking(t, want, got, p.factor, n)
		})
	}
}

// timeBounds returns the bounds of the time share of code with a part p of the instructions,
// if its cycles per instruction differ from the rest's by up to factor; for n samples and an
// error probability of 1e-6.
func timeBounds(p, factor float64, n int) (least, most float64) {
	least, most = p/(p+(1-p)*factor), p*factor/(p*factor+1-p)
	// Bernstein's inequality: a part of a millionth, too, may have a sample.
	noise := func(p float64) float64 {
		l := math.Log(1e6) / float64(n)
		return l/3 + math.Sqrt(l*l/9+2*l*p*(1-p))
	}
	return least - noise(least), most + noise(most)
}

// compareRanking compares the shares of the ten bindings with the most instructions, and the
// order of those that factor cannot reverse.
func compareRanking(t *testing.T, want, got map[string]float64, factor float64, n int) {
	t.Helper()
	top := slices.SortedFunc(maps.Keys(want), func(a, b string) int { return cmp.Compare(want[b], want[a]) })
	top = top[:min(10, len(top))]
	for i, a := range top {
		least, most := timeBounds(want[a], factor, n)
		t.Logf("%5.1f %% of instructions, %5.1f %% of samples (%.1f to %.1f): %s", 100*want[a], 100*got[a], 100*max(0, least), 100*min(1, most), a)
		if got[a] < least || got[a] > most {
			t.Errorf("%s: %.3f of the instructions, %.3f of the samples, which is not within %.3f and %.3f", a, want[a], got[a], least, most)
		}
		for _, b := range top[i+1:] {
			if _, ofB := timeBounds(want[b], factor, n); ofB < least && got[a] <= got[b] {
				t.Errorf("%s executes more than %s (%.3f, %.3f) and is sampled less (%.3f, %.3f)", a, b, want[a], want[b], got[a], got[b])
			}
		}
	}
}

// haskellShare is the part of the samples that are no category's, such as the
// collector's or the kernel's, and their number.
func haskellShare(t *testing.T, h *hotJSON) (float64, int) {
	t.Helper()
	share, n := 1.0, h.Samples
	for _, r := range h.Rows {
		if r.Kind == "category" {
			share -= r.Share
			n -= r.Samples
		}
	}
	if n <= 0 {
		t.Fatal("no samples in Haskell code")
	}
	return share, n
}

// sharesByInstructions attributes instructions as hot attributes samples: to
// every source binding in an address's cause set, as parts of all Haskell code.
func sharesByInstructions(t *testing.T, exe string, counts map[uint64]float64) map[string]float64 {
	t.Helper()
	f, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	m := symbolize.Module{ID: 1, Path: exe, File: f, Size: st.Size()}
	for a := range counts {
		m.Addresses = append(m.Addresses, symbolize.Address{Addr: a})
	}
	bindings := map[uint32]eventlog.Binding{}
	spans := map[uint32]eventlog.Span{}
	blocks := map[uint32]eventlog.Block{}
	root := func(id uint32) string {
		for bindings[id].Parent != 0 {
			id = bindings[id].Parent
		}
		return bindings[id].Module + "." + bindings[id].Name
	}
	total := 0.0
	shares := map[string]float64{}
	_, err = symbolize.Run(context.Background(), symbolize.Job{Modules: []symbolize.Module{m}, ReadSource: sources.ReadOwn}, func(e eventlog.Event) error {
		switch e := e.(type) {
		case *eventlog.Binding:
			bindings[e.ID] = *e
		case *eventlog.Span:
			spans[e.ID] = *e
		case *eventlog.Block:
			b := *e
			b.Causes = slices.Clone(e.Causes)
			blocks[e.ID] = b
		case *eventlog.Locations:
			for _, l := range e.Locations {
				if l.Category != eventlog.CategoryHaskell {
					continue
				}
				total += counts[l.Addr]
				names := map[string]bool{}
				for _, c := range blocks[l.Block].Causes {
					if b := spans[c.Span].Binding; b != 0 {
						names[root(b)] = true
					}
				}
				if len(names) == 0 && l.Quality == eventlog.QualityExact {
					names[root(l.Binding)] = true
				}
				for n := range names {
					shares[n] += counts[l.Addr]
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for n := range shares {
		shares[n] /= total
	}
	return shares
}

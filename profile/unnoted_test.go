package profile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// Packages with sampled code but no source notes are listed with their weights, and code
// that has no source is not.
func TestUnnoted(t *testing.T) {
	l := logtest.New()
	file := l.File("Main.hs", "")
	own, derived := l.Binding("main", "Main", "go", 0), l.Binding("main", "Main", "lvl1", 0)
	insert, at := l.Binding("containers-0.6.4.1", "Data.Map", "insert", 0), l.Binding("containers-0.6.4.1", "Data.IntMap", "at", 0)
	fold, noted := l.Binding("base", "Data.Foldable", "foldr", 0), l.Binding("base", "Data.List", "sort", 0)
	collector := l.Function("evacuate", eventlog.CategoryGC)
	at1 := uint64(0)
	hit := func(n int, f logtest.Frame) {
		node := l.Stack(f)
		for range n {
			at1++
			l.Sample(at1, 1, node)
		}
	}
	haskell := func(b uint32, q eventlog.Quality) logtest.Frame { return l.Code(b, q, eventlog.CategoryHaskell) }
	hit(40, l.Block(own, l.Span(file, 1, 1, 2, 1, own)))
	hit(7, haskell(derived, eventlog.QualityExact)) // Main has notes: it was compiled with them
	hit(12, haskell(insert, eventlog.QualityExact))
	hit(13, haskell(at, eventlog.QualityNear))
	hit(5, haskell(fold, eventlog.QualityExact))
	hit(3, l.Block(noted))
	hit(20, l.Code(collector, eventlog.QualityExact, eventlog.CategoryGC))

	got := load(t, l.End()).Select(profile.Filter{}).Unnoted()
	want := []profile.Unnoted{
		{Package: "containers-0.6.4.1", Modules: []string{"Data.IntMap", "Data.Map"}, Weight: 25, Share: 0.25},
		{Package: "base", Modules: []string{"Data.Foldable", "Data.List"}, Weight: 8, Share: 0.08},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

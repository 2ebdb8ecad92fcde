package profile_test

import (
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

// Samples in windows, which stand for the time between them too, are clusters; samples as far apart as their weights say are not. What
// the log has of one sample in several pieces, the later of them out of order, is one sample.
func TestClusters(t *testing.T) {
	l := logtest.New()
	code := func(name string) uint32 {
		return l.Stack(l.Code(l.Binding("main", "Main", name, 0), eventlog.QualityExact, eventlog.CategoryHaskell))
	}
	f, g := code("f"), code("g")
	for i := range uint64(10) { // in place: a sample each 10
		l.Sample(100+10*i, 10, []uint32{f, g}[i%2])
	}
	for w := range uint64(3) { // three windows, each for 100
		for i := range uint64(5) {
			l.Sample(300+100*w+i, 15, f)
		}
	}
	l.Sample(304, 25, f)
	p := load(t, l.End())
	s := p.Select(profile.Filter{})
	sites := make([][]columns.SiteID, 2)
	for i := range p.Sites {
		if s.Count[i] > 0 {
			k := 1
			if slices.Max(s.Weight) == s.Weight[i] {
				k = 0
			}
			sites[k] = append(sites[k], columns.SiteID(i))
		}
	}
	weight, of := s.Clusters(sites)
	want := []float64{10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 100, 75, 75}
	if !slices.Equal(weight, want) {
		t.Fatalf("%v, want %v", weight, want)
	}
	for i, w := range want {
		inF := w
		if i < 10 && i%2 == 1 {
			inF = 0
		}
		if of[0][i] != inF || of[1][i] != w-inF {
			t.Errorf("cluster %d: %v and %v of %v", i, of[0][i], of[1][i], w)
		}
	}
	if weight, _ := p.Select(profile.Filter{Range: profile.Range{From: 1, To: 2}}).Clusters(sites); weight != nil {
		t.Errorf("no samples: %v", weight)
	}
}

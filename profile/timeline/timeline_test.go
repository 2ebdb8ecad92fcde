package timeline_test

import (
	"bytes"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/timeline"
)

// The buckets of a timeline add up to the selection's weight, and GC, capabilities and
// losses are in their buckets.
func TestTimeline(t *testing.T) {
	p := nbody(t)
	s := p.Select(profile.Filter{})
	h := s.Hot(profile.LevelBinding)
	tl := timeline.Of(s, timeline.Options{Buckets: 10, Mark: &h.Rows[0].Element.ID, Level: profile.LevelBinding})
	var sum, marked uint64
	for i := range tl.Weight {
		sum += tl.Weight[i]
		marked += tl.Marked[i]
	}
	if sum != s.Total || marked != h.Rows[0].ShareWeight {
		t.Errorf("buckets hold %d of %d, marked %d of %d", sum, s.Total, marked, h.Rows[0].ShareWeight)
	}
	var caps uint64
	for _, r := range tl.Caps {
		caps += r.Weight
		for c, by := range r.ByCategory {
			for i, w := range by {
				if w > 0 && eventlog.Category(c) == eventlog.CategoryGC && i < 7 {
					t.Errorf("GC in bucket %d", i)
				}
			}
		}
	}
	if caps != s.Total || len(tl.Caps) != 2 {
		t.Errorf("%d capabilities hold %d of %d", len(tl.Caps), caps, s.Total)
	}
	if tl.Lost[9] != 9 {
		t.Errorf("lost: %v", tl.Lost)
	}
}

func load(t testing.TB, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func nbody(t testing.TB) *profile.Profile { return load(t, logtest.NBody().End()) }

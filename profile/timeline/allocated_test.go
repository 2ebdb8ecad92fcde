package timeline_test

import (
	"slices"
	"testing"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/timeline"
)

// What collections report is spread over the time since the last of the same capability, and
// kept out of a part of the code.
func TestAllocatedByCollections(t *testing.T) {
	p := nbody(t)
	step := p.Duration / 4
	p.Heap = []columns.HeapPoint{
		{Time: step, Kind: columns.HeapAllocated, Cap: 0, Size: 100},
		{Time: 2 * step, Kind: columns.HeapAllocated, Cap: 1, Size: 1000},
		{Time: 3 * step, Kind: columns.HeapAllocated, Cap: 0, Size: 700},
	}
	got := timeline.Of(p.Select(profile.Filter{}), timeline.Options{Buckets: 4}).Allocated
	want := []uint64{600, 800, 300, 0}
	if !slices.EqualFunc(got, want, func(a, b uint64) bool { return max(a, b)-min(a, b) <= 2 }) {
		t.Errorf("allocated %v, want about %v", got, want)
	}
	part := timeline.Of(p.Select(profile.Filter{Threads: []uint64{1}}), timeline.Options{Buckets: 4}).Allocated
	if slices.Equal(part, got) {
		t.Errorf("a thread has what all have: %v", part)
	}
}

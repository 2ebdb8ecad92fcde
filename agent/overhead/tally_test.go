package overhead

import "testing"

// Hits are charged what one cost when they were counted, and what is counted twice is charged once.
func TestTally(t *testing.T) {
	var tally Tally
	for _, c := range []struct {
		hits uint64
		each float64
		want uint64
	}{{0, 5, 0}, {10, 5, 50}, {10, 9, 50}, {12, 9, 68}, {11, 8, 60}, {0, 100, 0}} {
		if got := tally.Count(c.hits, c.each); got != c.want {
			t.Errorf("%d hits, the last of %v ns: %d ns, want %d", c.hits, c.each, got, c.want)
		}
	}
}

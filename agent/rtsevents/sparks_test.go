package rtsevents

import (
	"slices"
	"testing"

	"ccagent/bpf"
	"ccagent/eventlog"
)

// Sparks count from where the capture began, and words that cannot be counters of them are left out.
func TestSparks(t *testing.T) {
	for _, c := range []struct {
		first uint64 // collections before the first that was seen
		want  []eventlog.Sparks
	}{
		{0, []eventlog.Sparks{{Created: 10, Dud: 1, Converted: 4}, {Created: 30, Dud: 1, Converted: 9, Fizzled: 2}}},
		{7, []eventlog.Sparks{{Created: 20, Converted: 5, Fizzled: 2}}},
	} {
		var got []eventlog.Sparks
		tr := New(func(_ uint64, _ int, e eventlog.Event) error {
			if s, is := e.(*eventlog.Sparks); is {
				got = append(got, *s)
			}
			return nil
		})
		tr.gc.First = c.first
		for i, words := range [][]uint64{
			{10, 1, 0, 4, 0, 0}, {10, 1, 0, 4, 0, 0}, // nothing new
			{9, 1, 0, 4, 0, 0},              // it goes back
			{20, 1, 0, 40, 0, 0},            // more end than there are
			{1 << 63, 1, 0, 4, 0, 1 << 62},  // no counter
			{30, 1, 0, 9, 0, 2}, {30, 1, 0}, // cut short
		} {
			if err := tr.Take(Record{Time: uint64(i), Probe: bpf.RTSSparks, Words: words}); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("after %d collections: %+v, want %+v", c.first, got, c.want)
		}
	}
}

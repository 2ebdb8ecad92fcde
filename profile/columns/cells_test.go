package columns

import (
	"math"
	"math/rand/v2"
	"testing"

	"ccagent/eventlog"

	"github.com/google/go-cmp/cmp"
)

// Cells, however many there may be, and what does not fit them are the sums of the samples.
func TestCells(t *testing.T) {
	type sum struct{ Weight, Count uint64 }
	for _, room := range []int{0, 50, maxCells} {
		rng := rand.New(rand.NewPCG(uint64(room), 31))
		got, want := newTotals(), make(map[totalKey]sum)
		got.room = room
		for range 200 {
			var samples [500]eventlog.BriefSample
			for i := range samples {
				// Few nodes have most samples, and cells are full time and again.
				s := eventlog.BriefSample{Weight: 1<<eventlog.BriefWeightBits - 1 - rng.Uint32N(3), Node: rng.Uint32N(3)}
				if rng.IntN(20) == 0 {
					s.Node, s.Event = rng.Uint32()>>rng.IntN(32)>>8, uint8(rng.IntN(20))
					s.Stop, s.Flags = eventlog.StopReason(rng.IntN(40)), uint8(rng.IntN(256))
				}
				samples[i] = s
				k := totalKey{node: s.Node, event: s.Event, stop: s.Stop, flags: eventlog.SampleFlags(s.Flags) & totalFlags}
				want[k] = sum{want[k].Weight + uint64(s.Weight), want[k].Count + 1}
			}
			got.briefs(samples[:])
		}
		for _, s := range []eventlog.Sample{{Node: 1, Weight: 7}, {Node: 1, Weight: math.MaxUint64}, {Node: 2, Centres: 5, Weight: 1}} {
			k := totalKey{node: s.Node, centres: s.Centres}
			want[k] = sum{SatAdd(want[k].Weight, s.Weight), want[k].Count + 1}
			got.sample(s.Node, 0, &s)
		}
		all := make(map[totalKey]sum)
		for x := range got.all {
			all[x.totalKey] = sum{SatAdd(all[x.totalKey].Weight, x.weight), all[x.totalKey].Count + x.count}
		}
		if diff := cmp.Diff(want, all, cmp.AllowUnexported(totalKey{})); diff != "" {
			t.Errorf("%d cells:\n%s", room, diff)
		}
		cells := 0
		for _, c := range got.cells {
			cells += len(c)
		}
		if cells > room {
			t.Errorf("%d cells, %d allowed", cells, room)
		}
	}
}

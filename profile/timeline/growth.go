package timeline

import (
	"cmp"
	"math"
	"slices"

	"ccagent/profile/columns"
)

// Growth is how the heap differs between the first and the last census of a range.
type Growth struct {
	From, To      uint64 // times of the two, ns
	Before, After uint64 // bytes of all bands
	Steps         int    // from one census to the next
	// Bands are those that differ, the one that gained most first.
	Bands []BandGrowth
}

// BandGrowth is how a band differs.
type BandGrowth struct {
	Band          int // in HeapProfile.Bands
	Before, After uint64
	// Gained is how many closures more the band has, if Counted: only censuses of ccagent count them.
	Gained  int64
	Counted bool
	Rose    int // steps in which the band grew
	// Margin is the distance of the growth to the ends of its 95 % confidence interval, in bytes: 0 if the whole heap
	// was counted.
	Margin uint64
}

// Bytes is by how much the band grew.
func (b *BandGrowth) Bytes() int64 { return int64(b.After) - int64(b.Before) }

// HeapGrowth compares the first and the last census in a time range (to = 0 means the end); nil if there
// are not two.
func HeapGrowth(h *columns.HeapProfile, from, to uint64) *Growth {
	var in []int
	for i := range h.Censuses {
		if t := h.Censuses[i].Time; t >= from && (to == 0 || t < to) {
			in = append(in, i)
		}
	}
	if len(in) < 2 {
		return nil
	}
	slices.SortStableFunc(in, func(a, b int) int { return cmp.Compare(h.Censuses[a].Time, h.Censuses[b].Time) })
	first, last := in[0], in[len(in)-1]
	g := &Growth{From: h.Censuses[first].Time, To: h.Censuses[last].Time, Before: h.Censuses[first].Total, After: h.Censuses[last].Total, Steps: len(in) - 1}
	bands := make([]BandGrowth, len(h.Bands))
	now, before := make([]uint64, len(h.Bands)), make([]uint64, len(h.Bands))
	for k, i := range in {
		clear(now)
		h.Each(i, func(band int, bytes uint64) { now[band] = columns.SatAdd(now[band], bytes) })
		for b := range bands {
			if k > 0 && now[b] > before[b] {
				bands[b].Rose++
			}
			if k == 0 {
				bands[b].Before = now[b]
			}
			bands[b].After = now[b]
		}
		now, before = before, now
	}
	counted := h.Censuses[first].How != nil && h.Censuses[last].How != nil
	for i, sign := range map[int]int64{first: -1, last: 1} {
		h.EachNumber(i, func(band int, number uint64) { bands[band].Gained += sign * int64(number) })
	}
	for _, i := range []int{first, last} {
		for b, margin := range h.Margins(i) {
			bands[b].Margin = uint64(math.Hypot(float64(bands[b].Margin), float64(margin)))
		}
	}
	for b := range bands {
		if bands[b].Band, bands[b].Counted = b, counted; bands[b].Before != bands[b].After {
			g.Bands = append(g.Bands, bands[b])
		}
	}
	slices.SortFunc(g.Bands, func(a, b BandGrowth) int {
		return cmp.Or(cmp.Compare(b.Bytes(), a.Bytes()), cmp.Compare(h.Bands[a.Band].Name, h.Bands[b.Band].Name), cmp.Compare(a.Band, b.Band))
	})
	return g
}

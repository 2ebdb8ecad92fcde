package page

import (
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/timeline"
)

// sizes makes bands of the heap's sizes: what was live after the latest major collection, and what
// the heap took besides.
func sizes(p *profile.Profile, out *heap) {
	size, peak := timeline.HeapLine(p, columns.HeapSize, 0, p.Duration, buckets)
	if peak == 0 {
		return
	}
	out.What, out.Most, out.Peak = "size", peak, format.Bytes(peak)
	step := max(1, (p.Duration+buckets)/buckets)
	out.NotWatched = timeline.Unwatched(p, "gc", 0, p.Duration+1, step, buckets)
	live, most := timeline.HeapLine(p, columns.HeapLive, 0, p.Duration, buckets)
	if most > 0 {
		rest := make([]uint64, len(size))
		for i := range size {
			live[i] = min(live[i], size[i])
			rest[i] = size[i] - live[i]
		}
		out.Bands = []band{{"live after the latest major collection", format.Bytes(most), live}, {"the rest of the heap", "", rest}}
		return
	}
	out.Bands = []band{{"heap", format.Bytes(peak), size}}
}

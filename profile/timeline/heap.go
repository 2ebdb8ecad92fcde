package timeline

import (
	"cmp"
	"slices"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// HeapSeries is a heap profile over time, in buckets of equal length. A bucket has the
// bytes of each band at its largest census; a bucket without a census has the values of
// the bucket before it.
type HeapSeries struct {
	From, To, Step uint64 // ns
	Rows           []HeapRow
	Other          []uint64 // bytes by bucket, of the bands that are not in Rows
	Others         int      // their number
	Total          []uint64 // bytes by bucket
	Peak           uint64   // largest total of a census in the range
	PeakTime       uint64
	Censuses       int    // in the range
	Taken          []bool // by bucket, whether a census lies in it
	// Drawn is how many of them have counted a random part of the heap.
	Drawn int
}

// HeapRow is a band over time.
type HeapRow struct {
	Band  int      // in HeapProfile.Bands
	Bytes []uint64 // by bucket
	// Margins are the distances to the ends of 95 % confidence intervals, by bucket; nil if all censuses have counted the
	// whole heap.
	Margins  []uint64
	Peak     uint64  // largest of all censuses in the range
	Integral float64 // byte-seconds
}

// Heap returns a heap profile in a time range (to = 0 means the last census), largest
// bands by byte-seconds first; top bounds the number of rows, 0 returns all.
func Heap(h *columns.HeapProfile, from, to uint64, buckets, top int) *HeapSeries {
	return heapSeries(h, from, to, buckets, top, false)
}

// HeapHeld is as Heap, but begins with the values of the last census before the range, which may be the peak, and of which
// PeakTime is then before From.
func HeapHeld(h *columns.HeapProfile, from, to uint64, buckets, top int) *HeapSeries {
	return heapSeries(h, from, to, buckets, top, true)
}

func heapSeries(h *columns.HeapProfile, from, to uint64, buckets, top int, holds bool) *HeapSeries {
	if to == 0 {
		for _, c := range h.Censuses {
			to = max(to, c.Time+1)
		}
	}
	from = min(from, to)
	n := max(1, min(buckets, 1<<16))
	s := &HeapSeries{From: from, To: to, Step: max(1, (to-from+uint64(n)-1)/uint64(n)), Taken: make([]bool, n)}
	order := make([]int, 0, len(h.Censuses))
	before := -1
	for i := range h.Censuses {
		switch t := h.Censuses[i].Time; {
		case t >= from && t < to:
			order = append(order, i)
		case t < from && (before < 0 || t >= h.Censuses[before].Time):
			before = i
		}
	}
	s.Censuses = len(order)
	if holds && before >= 0 {
		order = append(order, before)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(h.Censuses[a].Time, h.Censuses[b].Time) })

	rows := make([]HeapRow, len(h.Bands))
	at := make([]int, n) // by bucket: 1 + census
	held := make([]uint64, len(h.Bands))
	for k, i := range order {
		c := &h.Censuses[i]
		if c.Draw != nil {
			s.Drawn++
		}
		until := to
		if k+1 < len(order) {
			until = h.Censuses[order[k+1]].Time
		}
		h.Each(i, func(band int, bytes uint64) { held[band] = columns.SatAdd(held[band], bytes) })
		h.Each(i, func(band int, _ uint64) {
			r := &rows[band]
			r.Peak = max(r.Peak, held[band])
			r.Integral += float64(held[band]) * float64(until-max(c.Time, from)) / 1e9
			held[band] = 0
		})
		if c.Total > s.Peak || s.PeakTime == 0 {
			s.Peak, s.PeakTime = c.Total, c.Time
		}
		b := min(int((max(c.Time, from)-from)/s.Step), n-1)
		if !s.Taken[b] || h.Censuses[at[b]-1].Total <= c.Total {
			at[b] = i + 1
		}
		s.Taken[b] = s.Taken[b] || c.Time >= from
	}
	ids := make([]int, 0, len(rows))
	for i := range rows {
		rows[i].Band = i
		if rows[i].Peak > 0 {
			ids = append(ids, i)
		}
	}
	slices.SortFunc(ids, func(a, b int) int {
		return cmp.Or(cmp.Compare(rows[b].Integral, rows[a].Integral), cmp.Compare(h.Bands[a].Name, h.Bands[b].Name), cmp.Compare(a, b))
	})
	if top > 0 && len(ids) > top {
		s.Others = len(ids) - top
		ids = ids[:top]
	}
	place := make([]int, len(rows)) // 1 + position in Rows
	for k, i := range ids {
		rows[i].Bytes = make([]uint64, n)
		if s.Drawn > 0 {
			rows[i].Margins = make([]uint64, n)
		}
		s.Rows = append(s.Rows, rows[i])
		place[i] = k + 1
	}
	s.Other, s.Total = make([]uint64, n), make([]uint64, n)
	last := 0
	for b := range n {
		if at[b] != 0 {
			last = at[b]
		}
		if last == 0 {
			continue
		}
		s.Total[b] = h.Censuses[last-1].Total
		for band, margin := range h.Margins(last - 1) {
			if k := place[band]; k > 0 {
				s.Rows[k-1].Margins[b] = margin
			}
		}
		h.Each(last-1, func(band int, bytes uint64) {
			if k := place[band]; k > 0 {
				s.Rows[k-1].Bytes[b] = columns.SatAdd(s.Rows[k-1].Bytes[b], bytes)
			} else {
				s.Other[b] = columns.SatAdd(s.Other[b], bytes)
			}
		})
	}
	return s
}

// HeapLine returns one of the heap's sizes over time: the largest value in each bucket. A
// bucket without a value has the last value before it.
func HeapLine(p *profile.Profile, kind columns.HeapKind, from, to uint64, buckets int) (line []uint64, peak uint64) {
	if to == 0 || to > p.Duration {
		to = p.Duration + 1
	}
	from = min(from, to)
	n := max(1, min(buckets, 1<<16))
	step := max(1, (to-from+uint64(n)-1)/uint64(n))
	line = make([]uint64, n)
	known := make([]bool, n)
	last := make([]uint64, n)
	before := uint64(0)
	points := make([]columns.HeapPoint, 0, len(p.Heap))
	for _, h := range p.Heap {
		if h.Kind == kind && h.Time < to {
			points = append(points, h)
		}
	}
	slices.SortStableFunc(points, func(a, b columns.HeapPoint) int { return cmp.Compare(a.Time, b.Time) })
	for _, h := range points {
		if h.Time < from {
			before = h.Size
			continue
		}
		b := min(int((h.Time-from)/step), n-1)
		line[b], last[b], known[b] = max(line[b], h.Size), h.Size, true
		peak = max(peak, h.Size)
	}
	for b := range line {
		if known[b] {
			before = last[b]
		} else {
			line[b] = before
		}
	}
	return line, peak
}

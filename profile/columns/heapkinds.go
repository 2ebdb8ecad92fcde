package columns

import "ccagent/eventlog"

// LiveKind is what closures of one info table have at a census.
type LiveKind struct {
	Closure uint32 // index in Nurseries.Closures, or PinnedKind or RestKind
	Count   uint64
	Bytes   uint64
	Margin  uint64 // as HeapProfile.Margins has it
}

// Values of LiveKind.Closure for what is of no info table that the log has.
const (
	PinnedKind = ^uint32(0) - iota // blocks with byte arrays that are not moved
	RestKind                       // kinds of closures that are not listed one by one
)

// maxKinds bounds what is kept of all censuses.
const maxKinds = 1 << 26

// kindsOf notes what the census has by info table that follows.
func (s *heapState) kindsOf(ev *eventlog.HeapKinds, closures *ids) {
	if s.keptKinds += len(ev.Kinds) + 2; s.keptKinds > maxKinds {
		s.p.Accounting.Dropped++
		return
	}
	s.known = true
	add := func(closure uint32, count, bytes, margin uint64) {
		if count > 0 || bytes > 0 {
			s.kinds = append(s.kinds, LiveKind{closure, count, bytes, margin})
		}
	}
	add(PinnedKind, ev.Pinned, ev.PinnedBytes, 0)
	add(RestKind, ev.Rest, ev.RestBytes, 0)
	for _, k := range ev.Kinds {
		i, ok := closures.find(k.Closure)
		if !ok {
			s.p.Accounting.Undefined.Closures++
			i = RestKind
		}
		add(i, k.Count, k.Bytes, k.Margin)
	}
}

// HasKinds reports whether a census of the profile was counted by info table, too.
func (h *HeapProfile) HasKinds() bool {
	for i := range h.Censuses {
		if h.Censuses[i].known {
			return true
		}
	}
	return false
}

// Kinds returns what a census has by info table; nil if it was not counted by these.
func (h *HeapProfile) Kinds(census int) []LiveKind {
	c := &h.Censuses[census]
	return h.kinds[c.kinds[0]:c.kinds[1]]
}

// Regroup divides the censuses that were counted by info table into other bands. what is what these are: "module". bandOf
// gives the band of a closure by its index, or of PinnedKind or RestKind; false leaves it out. Bands of one title are one. A band's
// margin is the sum of its kinds', which is that of kinds that err together, and so the widest.
func (h *HeapProfile) Regroup(what string, bandOf func(closure uint32) (HeapBand, bool)) *HeapProfile {
	to := &HeapProfile{ID: h.ID, Breakdown: h.Breakdown, PeriodNs: h.PeriodNs, Restriction: h.Restriction, what: what}
	const out = -1
	bands := map[string]int{}
	known := map[uint32]int{}
	place := func(closure uint32) int {
		at, ok := known[closure]
		if ok {
			return at
		}
		at = out
		if b, in := bandOf(closure); in {
			title := b.Title()
			if at, ok = bands[title]; !ok {
				at = len(to.Bands)
				bands[title] = at
				to.Bands = append(to.Bands, b)
			}
		}
		known[closure] = at
		return at
	}
	for i := range h.Censuses {
		c := h.Censuses[i]
		if !c.known {
			continue
		}
		first := len(to.cells)
		at := map[int]int{}
		c.Total = 0
		for _, k := range h.Kinds(i) {
			band := place(k.Closure)
			if band == out {
				continue
			}
			cell, ok := at[band]
			if !ok {
				cell = len(to.cells)
				at[band] = cell
				to.cells = append(to.cells, heapCell{band: uint32(band)})
			}
			x := &to.cells[cell]
			x.bytes, x.number, x.margin = SatAdd(x.bytes, k.Bytes), SatAdd(x.number, k.Count), SatAdd(x.margin, k.Margin)
			c.Total = SatAdd(c.Total, k.Bytes)
		}
		c.cells, c.kinds = [2]uint32{uint32(first), uint32(len(to.cells))}, [2]uint32{}
		to.Censuses = append(to.Censuses, c)
	}
	return to
}

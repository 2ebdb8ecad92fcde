package closures

import (
	"cmp"
	"slices"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// Fate is what became of closures of one kind that are written at one place: how much was allocated between two censuses,
// and by how much they are more. What was allocated and is not more has died, or was there before in place of what died.
type Fate struct {
	Row
	// Allocated is an estimate in bytes by sampled blocks, with its 95 % interval. Large objects are not in it.
	Allocated, AllocatedLow, AllocatedHigh float64
	Live                                   uint64 // bytes at the later census
	Grown                                  int64  // since the earlier
}

// Survives is the part of what was allocated by which they are more; false if none was found to be allocated.
func (f *Fate) Survives() (part float64, known bool) {
	if f.Allocated <= 0 {
		return 0, false
	}
	return min(1, max(0, float64(f.Grown)/f.Allocated)), true
}

// Fates are those of all closures between the first and the last census of a range.
type Fates struct {
	From, To  uint64  // times of the two, ns
	Largest   bool    // the later one is not the last, but that at which most was alive
	Blocks    int     // sampled between these
	Allocated float64 // bytes of small objects
	Before    uint64  // bytes live
	After     uint64
	Rows      []Fate // what was allocated most first
}

// FatesOf joins what sampled blocks say of allocation with a heap profile's censuses by info table; nil if there are not two of these in the
// range, or no blocks between them. They are the first and the last of a range; of a whole log, which often ends with a census of a program
// that has given up all, the first and the one at which most was alive.
func FatesOf(p *profile.Profile, h *columns.HeapProfile, in profile.Range) *Fates {
	first, last := -1, -1
	for i := range h.Censuses {
		c := &h.Censuses[i]
		if c.Time < in.From || in.To != 0 && c.Time >= in.To || h.Kinds(i) == nil {
			continue
		}
		if first < 0 || c.Time < h.Censuses[first].Time {
			first = i
		}
		if last < 0 || c.Time >= h.Censuses[last].Time {
			last = i
		}
	}
	if first == last {
		return nil
	}
	largest := last
	for i := range h.Censuses {
		if c := &h.Censuses[i]; in == (profile.Range{}) && h.Kinds(i) != nil && c.Time > h.Censuses[first].Time && c.Total > h.Censuses[largest].Total {
			largest = i
		}
	}
	whole := largest == last
	last = largest
	f := All
	f.Range = profile.Range{From: h.Censuses[first].Time, To: h.Censuses[last].Time}
	t := Of(p, f)
	if t.Blocks == 0 {
		return nil
	}
	out := &Fates{From: f.Range.From, To: f.Range.To, Largest: !whole, Blocks: t.Blocks, Allocated: t.Stands, Before: h.Censuses[first].Total, After: h.Censuses[last].Total}
	at := map[key]int{}
	fate := func(r Row) *Fate {
		k := key{r.Name, r.Kind, r.FileID, r.Span}
		i, ok := at[k]
		if !ok {
			i = len(out.Rows)
			at[k] = i
			out.Rows = append(out.Rows, Fate{Row: r})
		}
		return &out.Rows[i]
	}
	for _, r := range t.Rows {
		x := fate(r)
		x.Allocated, x.AllocatedLow, x.AllocatedHigh = r.Share*out.Allocated, r.Low*out.Allocated, r.High*out.Allocated
	}
	for _, k := range h.Kinds(first) {
		fate(live(p, k.Closure)).Grown -= int64(k.Bytes)
	}
	for _, k := range h.Kinds(last) {
		x := fate(live(p, k.Closure))
		x.Grown += int64(k.Bytes)
		x.Live += k.Bytes
	}
	slices.SortStableFunc(out.Rows, func(a, b Fate) int {
		return cmp.Or(cmp.Compare(b.Allocated, a.Allocated), cmp.Compare(b.Grown, a.Grown), cmp.Compare(b.Live, a.Live), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// live describes a kind of closures at a census.
func live(p *profile.Profile, closure uint32) Row {
	switch {
	case closure == columns.PinnedKind:
		return Row{Name: PinnedArrays}
	case closure == columns.RestKind:
		return Row{Name: Rare}
	}
	return Describe(p, closure)
}

// Grew are the rows that have become more, what has grown most first.
func (f *Fates) Grew() []Fate {
	var all []Fate
	for _, r := range f.Rows {
		if r.Grown > 0 {
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b Fate) int { return cmp.Or(cmp.Compare(b.Grown, a.Grown), cmp.Compare(a.Name, b.Name)) })
	return all
}

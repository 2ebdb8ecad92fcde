package timeline

import (
	"cmp"
	"maps"
	"slices"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// Pause is a stop-the-world collection. It combines the parts of all capabilities, which
// overlap in time: it lasts from the request to stop until the last capability goes on.
type Pause struct {
	Start, End uint64 // ns
	// SyncNs is the time from the request until all capabilities have stopped, WorkNs the time
	// in which at least one collects, and ReleaseNs the time from there until the last goes on.
	// Where the log has no requests all is work.
	SyncNs, WorkNs, ReleaseNs uint64
	// WaitNs is the time, summed over the capabilities that took part, in which one had stopped
	// and did not collect: it waited for the others to stop, to finish, or to let it go on.
	WaitNs uint64
	// Flush is set for a stop at the end of a concurrent mark, which is no collection.
	Flush bool
	// Generation is the oldest one collected; −1 if unknown.
	Generation int
	Caps       int    // number that took part
	Copied     uint64 // bytes
	Live       uint64 // bytes after it; 0 if not reported, as after minor collections
}

// Ns returns the duration of the pause.
func (p *Pause) Ns() uint64 { return p.End - p.Start }

// Pauses returns the log's collections, and the other stops of the non-moving collector, ordered
// by start.
func Pauses(p *profile.Profile) []Pause {
	out := collections(p)
	n := len(out)
	for _, c := range p.RTSLog.Concurrent {
		if c.Kind == columns.ConcurrentSync {
			out = append(out, Pause{Start: c.Start, End: c.End, WorkNs: c.End - c.Start, Generation: -1, Flush: true})
		}
	}
	if len(out) > n {
		slices.SortStableFunc(out, func(a, b Pause) int { return cmp.Compare(a.Start, b.Start) })
	}
	return out
}

func collections(p *profile.Profile) []Pause {
	if slices.ContainsFunc(p.GCs, func(g columns.GC) bool { return g.Request != 0 }) {
		return withStatistics(p, whole(led(p.GCs)))
	}
	parts := slices.Clone(p.GCs)
	slices.SortFunc(parts, func(a, b columns.GC) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Cap, b.Cap)) })
	var out []Pause
	for _, g := range parts {
		if n := len(out); n > 0 && g.Start < out[n-1].End {
			last := &out[n-1]
			last.End = max(last.End, g.End)
			last.WaitNs += g.End - g.Start - g.Worked
			last.Caps++
			continue
		}
		out = append(out, Pause{Start: g.Start, End: g.End, Generation: -1, Caps: 1, WaitNs: g.End - g.Start - g.Worked})
	}
	for i := range out {
		out[i].WorkNs = out[i].Ns()
	}
	return withStatistics(p, whole(out))
}

// whole leaves out what lasts no time: the end of a collection in which the capture began, of which nothing
// else was seen.
func whole(ps []Pause) []Pause {
	return slices.DeleteFunc(ps, func(p Pause) bool { return p.Ns() == 0 })
}

// led returns a pause for each collection that a capability requested, with the parts of those
// that followed: a part belongs to the first collection that ended after it began.
func led(gcs []columns.GC) []Pause {
	var out []Pause
	var ends []uint64 // when their work ended, ascending
	for _, g := range gcs {
		if g.Request != 0 {
			out = append(out, Pause{Start: g.Request, End: g.End, Generation: -1, Caps: 1,
				SyncNs: g.Start - g.Request, WorkNs: g.End - g.Start, WaitNs: g.End - g.Request - g.Worked})
		}
	}
	slices.SortFunc(out, func(a, b Pause) int { return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start)) })
	for i := range out {
		ends = append(ends, out[i].End)
	}
	n := len(out)
	for _, g := range gcs {
		if g.Request != 0 {
			continue
		}
		at, _ := slices.BinarySearch(ends, g.Start)
		if at == n || g.End < out[at].Start {
			out = append(out, Pause{Start: g.Start, End: g.End, WorkNs: g.End - g.Start, Generation: -1, Caps: 1, WaitNs: g.End - g.Start - g.Worked})
			continue
		}
		x := &out[at]
		if g.Start < x.Start { // it saw the request before the time was noted
			x.SyncNs, x.Start = x.SyncNs+x.Start-g.Start, g.Start
		}
		x.End = max(x.End, g.End)
		x.ReleaseNs = x.End - ends[at]
		x.WaitNs += g.End - g.Start - g.Worked
		x.Caps++
	}
	slices.SortFunc(out, func(a, b Pause) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	return out
}

// withStatistics adds to pauses what the run-time system reports of collections.
func withStatistics(p *profile.Profile, out []Pause) []Pause {
	// The RTS reports a collection's statistics when it ends; whether before or after
	// the end event depends on its version.
	for i := range p.RTSLog.Collections {
		c := &p.RTSLog.Collections[i]
		at := pauseAt(out, c.Time)
		if at < 0 {
			continue
		}
		x := &out[at]
		x.Generation = max(x.Generation, int(c.Generation))
		x.Copied = columns.SatAdd(x.Copied, c.Copied)
		x.Live = max(x.Live, c.Live)
	}
	return out
}

// pauseAt returns the last pause that starts at or before a time, or −1.
func pauseAt(ps []Pause, t uint64) int {
	i, found := slices.BinarySearchFunc(ps, t, func(p Pause, t uint64) int { return cmp.Compare(p.Start, t) })
	if !found {
		i--
	}
	return i
}

// PauseStats are statistics of the pauses of one generation.
type PauseStats struct {
	Generation   int // −1 if unknown
	Count        uint64
	TotalNs      uint64 // in which there was a pause
	MaxNs        uint64
	P50Ns, P95Ns uint64 // percentiles (nearest rank)
	Copied       uint64 // bytes
	LongestAt    uint64 // ns, start of the longest
	CopiedKnown  bool
	LiveMax      uint64 // bytes
	// Sums of the pauses' parts, and the longest wait for capabilities to stop.
	SyncNs, MaxSyncNs, WorkNs, ReleaseNs, WaitNs uint64
	ParallelismSum                               uint64 // sum over all pauses of the capabilities that took part
}

// SumPauses returns the statistics of all pauses, and those by generation.
func SumPauses(ps []Pause) (all PauseStats, byGen []PauseStats) {
	own := Exclusive(ps)
	sum := func(gen int, keep func(*Pause) bool) PauseStats {
		s := PauseStats{Generation: gen}
		var ns []uint64
		for i := range ps {
			x := &ps[i]
			if !keep(x) {
				continue
			}
			s.Count++
			s.TotalNs = columns.SatAdd(s.TotalNs, own[i])
			s.SyncNs, s.WorkNs, s.ReleaseNs = s.SyncNs+x.SyncNs, s.WorkNs+x.WorkNs, s.ReleaseNs+x.ReleaseNs
			s.MaxSyncNs, s.WaitNs = max(s.MaxSyncNs, x.SyncNs), columns.SatAdd(s.WaitNs, x.WaitNs)
			if x.Ns() > s.MaxNs || s.Count == 1 {
				s.MaxNs, s.LongestAt = x.Ns(), x.Start
			}
			s.Copied = columns.SatAdd(s.Copied, x.Copied)
			s.CopiedKnown = s.CopiedKnown || x.Generation >= 0
			s.LiveMax = max(s.LiveMax, x.Live)
			s.ParallelismSum += uint64(x.Caps)
			ns = append(ns, x.Ns())
		}
		slices.Sort(ns)
		rank := func(percent int) uint64 {
			if len(ns) == 0 {
				return 0
			}
			return ns[(len(ns)*percent+99)/100-1]
		}
		s.P50Ns, s.P95Ns = rank(50), rank(95)
		return s
	}
	all = sum(-1, func(*Pause) bool { return true })
	gens := make(map[int]bool)
	for i := range ps {
		gens[ps[i].Generation] = true
	}
	for _, g := range slices.Sorted(maps.Keys(gens)) {
		byGen = append(byGen, sum(g, func(p *Pause) bool { return p.Generation == g }))
	}
	return all, byGen
}

// Exclusive returns the time of each pause, in ns, that is not in one before it: a capability may
// go on only after another has requested the next collection.
func Exclusive(ps []Pause) []uint64 {
	own, until := make([]uint64, len(ps)), uint64(0)
	for i := range ps {
		own[i] = ps[i].End - min(max(ps[i].Start, until), ps[i].End)
		until = max(until, ps[i].End)
	}
	return own
}

// PausesIn returns the pauses that overlap a range.
func PausesIn(ps []Pause, r profile.Range) []Pause {
	return slices.DeleteFunc(slices.Clone(ps), func(p Pause) bool {
		return p.End <= r.From && p.End > p.Start || p.Start < r.From && p.End == p.Start || r.To != 0 && p.Start >= r.To
	})
}

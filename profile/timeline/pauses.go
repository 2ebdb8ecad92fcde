package timeline

import (
	"cmp"
	"maps"
	"slices"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// Pause is a stop-the-world collection. It combines the parts of all capabilities, which
// overlap in time.
type Pause struct {
	Start, End uint64 // ns
	// Generation is the oldest one collected; −1 if unknown.
	Generation int
	Caps       int    // number that took part
	Copied     uint64 // bytes
	Live       uint64 // bytes after it; 0 if not reported, as after minor collections
}

// Ns returns the duration of the pause.
func (p *Pause) Ns() uint64 { return p.End - p.Start }

// Pauses returns the log's collections, ordered by start.
func Pauses(p *profile.Profile) []Pause {
	parts := slices.Clone(p.GCs)
	slices.SortFunc(parts, func(a, b columns.GC) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Cap, b.Cap)) })
	var out []Pause
	for _, g := range parts {
		if n := len(out); n > 0 && g.Start < out[n-1].End {
			last := &out[n-1]
			last.End = max(last.End, g.End)
			last.Caps++
			continue
		}
		out = append(out, Pause{Start: g.Start, End: g.End, Generation: -1, Caps: 1})
	}
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
	Generation     int // −1 if unknown
	Count          uint64
	TotalNs        uint64
	MaxNs          uint64
	P50Ns, P95Ns   uint64 // percentiles (nearest rank)
	Copied         uint64 // bytes
	LongestAt      uint64 // ns, start of the longest
	CopiedTold     bool
	LiveMax        uint64 // bytes
	ParallelismSum uint64 // sum over all pauses of the capabilities that took part
}

// SumPauses returns the statistics of all pauses, and those by generation.
func SumPauses(ps []Pause) (all PauseStats, byGen []PauseStats) {
	sum := func(gen int, keep func(*Pause) bool) PauseStats {
		s := PauseStats{Generation: gen}
		var ns []uint64
		for i := range ps {
			x := &ps[i]
			if !keep(x) {
				continue
			}
			s.Count++
			s.TotalNs = columns.SatAdd(s.TotalNs, x.Ns())
			if x.Ns() > s.MaxNs || s.Count == 1 {
				s.MaxNs, s.LongestAt = x.Ns(), x.Start
			}
			s.Copied = columns.SatAdd(s.Copied, x.Copied)
			s.CopiedTold = s.CopiedTold || x.Generation >= 0
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

// PausesIn returns the pauses that overlap a range.
func PausesIn(ps []Pause, r profile.Range) []Pause {
	return slices.DeleteFunc(slices.Clone(ps), func(p Pause) bool {
		return p.End <= r.From && p.End > p.Start || p.Start < r.From && p.End == p.Start || r.To != 0 && p.Start >= r.To
	})
}

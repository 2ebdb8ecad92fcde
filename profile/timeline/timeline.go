package timeline

import (
	"maps"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Options determine what a timeline shows.
type Options struct {
	Buckets int // number of buckets; at least 1
	// Mark, if not nil, is an element whose weight in each bucket is computed.
	Mark  *profile.ElementID
	Level profile.Level // of Mark
	// Window, if not the zero Range, is the extent of the timeline. The selection's
	// own range is then ignored.
	Window profile.Range
}

// Timeline is a selection's figures over time, in buckets of equal length. Its extent is
// the selection's range.
type Timeline struct {
	From, To uint64 // ns
	Step     uint64 // ns per bucket; the last may extend beyond To
	Weight   []uint64
	Samples  []uint64
	Marked   []uint64 // weight of the samples that share the marked element
	Caps     []profile.CapWeight
	// Allocated is the bytes allocated in each bucket; nil if the log does not have
	// them.
	Allocated []uint64
	// Lost is the number of samples lost in each bucket.
	Lost []uint64
	// RTS is the activity of capabilities as the RTS reported it; nil if it did not.
	RTS []Activity
	// UnwatchedThreads and UnwatchedGC are the time in each bucket, in ns, in which runs of
	// threads, and collections, were not watched: nobody knows what happened. They are nil if all
	// was watched.
	UnwatchedThreads, UnwatchedGC []uint64
	// Unrecorded is the time in each bucket, in ns, of which the log says nothing; nil if there is none.
	Unrecorded []uint64
	// Unseen are the buckets in which what has no sample need not have been idle: they are shorter
	// than the time between two samples was there. It is nil if there are none.
	Unseen []bool
}

// Of computes a selection's timeline. That of a log without times, as of a pprof profile, is
// empty: all of its samples in one column would be no course of a program.
func Of(s *profile.Selection, o Options) *Timeline {
	p := s.Profile
	if p.Duration == 0 {
		return &Timeline{Step: 1, Weight: []uint64{}, Samples: []uint64{}, Lost: []uint64{}}
	}
	extent := s.Filter.Range
	if o.Window != (profile.Range{}) {
		extent = o.Window
	}
	t := &Timeline{From: extent.From, To: extent.To}
	if t.To == 0 || t.To > p.Duration {
		t.To = p.Duration + 1
	}
	t.From = min(t.From, t.To)
	n := max(1, min(o.Buckets, 1<<16))
	t.Step = max(1, (t.To-t.From+uint64(n)-1)/uint64(n))
	t.Weight, t.Samples, t.Lost = make([]uint64, n), make([]uint64, n), make([]uint64, n)
	bucket := func(time uint64) int {
		if time < t.From || time >= t.To {
			return -1
		}
		return min(int((time-t.From)/t.Step), n-1)
	}

	var marked []bool
	if o.Mark != nil {
		marked = make([]bool, len(p.Sites))
		for site, c := range s.Count {
			if c > 0 {
				marked[site] = slices.Contains(s.LeafElements(o.Level, site), *o.Mark)
			}
		}
	}
	window := profile.Window{From: t.From, To: t.To, Step: t.Step, Buckets: n}
	t.allocation(s, window)
	if s.Event >= 0 {
		b := s.Over(s.Event, window, marked)
		t.Weight, t.Samples, t.Marked, t.Caps = b.Weight, b.Samples, b.Marked, b.Caps
		t.Unseen = s.Unseen(t.Samples, t.Weight, t.Step)
	}
	for _, l := range p.Losses {
		if b := bucket(l.Time); b >= 0 && s.Event >= 0 && l.Event == p.Events[s.Event].Index && l.Reason != eventlog.LossSideBand {
			t.Lost[b] = columns.SatAdd(t.Lost[b], l.Count)
		}
	}
	t.activity(p)
	t.Unrecorded = t.unrecorded(p, n)
	t.UnwatchedThreads = unwatchedNs(p, "threads", t.From, t.To, t.Step, n)
	t.UnwatchedGC = unwatchedNs(p, "gc", t.From, t.To, t.Step, n)
	return t
}

// allocEvent returns the position of the event that counts allocated bytes, or −1.
func allocEvent(p *profile.Profile) int {
	return slices.IndexFunc(p.Events, func(e columns.Event) bool { return e.Unit == "bytes" && e.Samples > 0 })
}

// InPauses is the time in each bucket in which there was a pause (see Pauses); nil if the log has no collections.
func (t *Timeline) InPauses(p *profile.Profile) []uint64 {
	if len(p.GCs) == 0 {
		return nil
	}
	ns, pauses := make([]uint64, len(t.Weight)), Pauses(p)
	for i, own := range Exclusive(pauses) {
		t.spread(ns, pauses[i].End-own, pauses[i].End)
	}
	return ns
}

// Activity is the time that a capability spent running threads and collecting garbage in
// each bucket, in ns, as the RTS reported it. The remaining time is idle, where it was watched.
type Activity struct {
	Cap     uint32
	Run, GC []uint64
}

// activity spreads the RTS's runs and collections over the buckets, by
// capability.
func (t *Timeline) activity(p *profile.Profile) {
	if len(p.RTSLog.Runs) == 0 {
		return
	}
	rows := make(map[uint32]*Activity)
	row := func(cap uint32) *Activity {
		r := rows[cap]
		if r == nil {
			r = &Activity{Cap: cap, Run: make([]uint64, len(t.Weight)), GC: make([]uint64, len(t.Weight))}
			rows[cap] = r
		}
		return r
	}
	for i := range p.RTSLog.Runs {
		r := &p.RTSLog.Runs[i]
		t.spread(row(uint32(r.Cap)).Run, r.Start, r.End)
	}
	for _, g := range p.GCs {
		if g.Cap >= 0 && g.Cap < eventlog.NoCapability {
			t.spread(row(uint32(g.Cap)).GC, g.Start, g.End)
		}
	}
	for _, cap := range slices.Sorted(maps.Keys(rows)) {
		t.RTS = append(t.RTS, *rows[cap])
	}
}

// spread adds a time range to the buckets that it overlaps.
func (t *Timeline) spread(buckets []uint64, from, to uint64) {
	from, to = max(from, t.From), min(to, t.To)
	for from < to {
		b := min(int((from-t.From)/t.Step), len(buckets)-1)
		end := to
		if b < len(buckets)-1 {
			end = min(to, t.From+uint64(b+1)*t.Step)
		}
		buckets[b] = columns.SatAdd(buckets[b], end-from)
		from = end
	}
}

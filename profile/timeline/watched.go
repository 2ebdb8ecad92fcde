package timeline

import "ccagent/profile"

// Unwatched reports for buckets of equal length whether at least half of each was not watched by
// a group of probes ("gc" or "threads"). It is nil if all was watched, or the log does not say.
func Unwatched(p *profile.Profile, group string, from, to, step uint64, buckets int) []bool {
	ns := unwatchedNs(p, group, from, to, step, buckets)
	t := &Timeline{From: from, To: to, Step: step}
	return t.mostly(ns)
}

// unrecorded returns the time in each bucket of which the log says nothing; nil if there is none.
func (t *Timeline) unrecorded(p *profile.Profile, buckets int) []uint64 {
	if p.Log.Unrecorded(t.From, t.To) == 0 {
		return nil
	}
	ns := make([]uint64, buckets)
	for _, g := range p.Gaps {
		t.spread(ns, g.From, g.To)
	}
	return ns
}

// Missing reports for each bucket whether the log says nothing of at least half of it; nil if it has
// no gaps.
func (t *Timeline) Missing() []bool { return t.mostly(t.Unrecorded) }

// mostly reports of which buckets some time is at least half; nil for nil.
func (t *Timeline) mostly(ns []uint64) []bool {
	if ns == nil {
		return nil
	}
	out := make([]bool, len(ns))
	for i, n := range ns {
		out[i] = n*2 >= min(t.Step, max(t.To-min(t.From+uint64(i)*t.Step, t.To), 1))
	}
	return out
}

// unwatchedNs returns the time in each bucket that was not watched.
func unwatchedNs(p *profile.Profile, group string, from, to, step uint64, buckets int) []uint64 {
	ws, known := p.RTSLog.Watches[group]
	t := &Timeline{From: from, To: to, Step: step}
	if _, partly := p.Watched(group); !known || !partly {
		return t.unrecorded(p, buckets)
	}
	ns := make([]uint64, buckets)
	at := from
	for _, w := range ws {
		if w.From > at {
			t.spread(ns, at, w.From)
		}
		at = max(at, w.To)
	}
	t.spread(ns, at, to)
	return ns
}

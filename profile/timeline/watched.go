package timeline

import "ccagent/profile"

// Unwatched reports for buckets of equal length whether at least half of each was not watched by
// a group of probes ("gc" or "threads"). It is nil if all was watched, or the log does not say.
func Unwatched(p *profile.Profile, group string, from, to, step uint64, buckets int) []bool {
	ns := unwatchedNs(p, group, from, to, step, buckets)
	if ns == nil {
		return nil
	}
	out := make([]bool, buckets)
	for i, n := range ns {
		out[i] = n*2 >= min(step, max(to-min(from+uint64(i)*step, to), 1))
	}
	return out
}

// unwatchedNs returns the time in each bucket that was not watched.
func unwatchedNs(p *profile.Profile, group string, from, to, step uint64, buckets int) []uint64 {
	ws, known := p.RTSLog.Watches[group]
	if _, partly := p.Watched(group); !known || !partly {
		return nil
	}
	t := &Timeline{From: from, To: to, Step: step}
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

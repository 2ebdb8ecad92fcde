package timeline

import (
	"slices"

	"ccagent/profile"
)

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

// unseen returns the buckets in which more may have run than samples show. Samples weigh mean in the
// whole selection, and more where the rate was lowered. One that weighs more than a bucket stands
// for CPU time that was used somewhere between the sample before and itself; so do those of a bucket
// that weigh more than all of the machine's CPUs can have done in it.
func (t *Timeline) unseen(mean uint64, cpus uint32) []bool {
	out := make([]bool, len(t.Samples))
	heavy, last := false, true // the next sample; whether there is none
	for i := len(t.Samples) - 1; i >= 0; i-- {
		next := heavy
		if n := t.Samples[i]; n > 0 {
			heavy = t.Weight[i]/n > t.Step || cpus > 0 && t.Weight[i]/uint64(cpus) > t.Step
			if last && heavy { // so would the one be that has not come
				for j := i + 1; j < len(out); j++ {
					out[j] = true
				}
			}
			last = false
		}
		out[i] = mean > t.Step || heavy || next
	}
	if !slices.Contains(out, true) {
		return nil
	}
	return out
}

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

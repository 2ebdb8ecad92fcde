package timeline

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// ThreadState is what a Haskell thread does, as the RTS's word gives it.
type ThreadState uint8

const (
	ThreadRunning ThreadState = iota
	ThreadWaiting             // could run, and no capability does
	ThreadBlocked             // on an MVar, a black hole, STM, a delay, …
	ThreadForeign             // in a safe foreign call
	ThreadStates
)

// ThreadCounts are the mean numbers of threads in each state, by bucket.
type ThreadCounts [ThreadStates][]float64

// Threads counts the threads by state in buckets of equal length. It is nil
// where the log has no runs of threads, or only those that probes within a budget
// saw, which are not all. What a thread does between two runs, the
// reason tells for which it stopped; of one that never ran, nothing is told.
func Threads(p *profile.Profile, from, to uint64, buckets int) *ThreadCounts {
	if len(p.RTSLog.Runs) == 0 || p.HaveCapture && p.RTS == "" || to <= from || buckets <= 0 {
		return nil
	}
	t := &Timeline{From: from, To: to, Step: max(1, (to-from+uint64(buckets)-1)/uint64(buckets))}
	var ns [ThreadStates][]uint64
	for s := range ns {
		ns[s] = make([]uint64, buckets)
	}
	runs := slices.Clone(p.RTSLog.Runs)
	slices.SortFunc(runs, func(a, b columns.Run) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Start, b.Start))
	})
	created := make(map[uint32]uint64)
	for i := range p.RTSLog.Threads {
		if th := &p.RTSLog.Threads[i]; th.Created > 0 {
			created[th.ID] = th.Created
		}
	}
	for i := range runs {
		r := &runs[i]
		if at, ok := created[r.Thread]; ok && (i == 0 || runs[i-1].Thread != r.Thread) {
			t.spread(ns[ThreadWaiting], at, r.Start)
		}
		t.spread(ns[ThreadRunning], r.Start, r.End)
		until := p.Duration
		if i+1 < len(runs) && runs[i+1].Thread == r.Thread {
			until = runs[i+1].Start
		}
		if s, ok := between(r.Status); ok {
			t.spread(ns[s], r.End, until)
		}
	}
	out := &ThreadCounts{}
	for s := range ns {
		out[s] = make([]float64, buckets)
		for b, n := range ns[s] {
			out[s][b] = float64(n) / float64(t.Step)
		}
	}
	return out
}

// between is what a thread does after it stopped for a reason; false if it is gone
// or the log does not tell.
func between(why eventlog.StopStatus) (ThreadState, bool) {
	switch why {
	case 0, eventlog.StoppedFinished:
		return 0, false
	case eventlog.StoppedHeapOverflow, eventlog.StoppedStackOverflow, eventlog.StoppedYielding:
		return ThreadWaiting, true
	case eventlog.StoppedForeignCall:
		return ThreadForeign, true
	}
	return ThreadBlocked, true
}

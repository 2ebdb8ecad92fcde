package timeline

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// ThreadState is the state of a Haskell thread, as derived from the RTS's events.
type ThreadState uint8

const (
	ThreadRunning ThreadState = iota
	ThreadWaiting             // runnable, but no capability runs it
	ThreadBlocked             // on an MVar, a black hole, STM, a delay, …
	ThreadForeign             // in a safe foreign call
	ThreadStates
)

// ThreadCounts are the mean numbers of threads in each state, by bucket.
type ThreadCounts [ThreadStates][]float64

// Threads returns the mean numbers of threads by state in buckets of equal length. It is
// nil if the log has no runs of threads, or only part of them because the probes were
// subject to a budget. Between two runs a thread's state follows from the reason for
// which it stopped. A thread that never ran is not counted.
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

// between returns a thread's state after it stopped for a reason; false if it has ended
// or the state is unknown.
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

package columns

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
)

// Run is an interval in which a capability ran a thread.
type Run struct {
	Start, End uint64 // ns
	Thread     uint32
	Cap        uint16
	Status     eventlog.StopStatus // why the thread stopped
}

// Ran returns the number and duration of all runs, including those not kept in Runs.
func (r *RTS) Ran() (runs, ns uint64) {
	for i := range r.Threads {
		runs, ns = runs+r.Threads[i].Runs, ns+r.Threads[i].RunNs
	}
	return runs, ns
}

// runState collects the runs of threads.
type runState struct {
	sumsOnly bool      // runs are counted, and not kept
	running  []running // by capability
	held     []heldRuns
	n        int // number of runs in held
}

type running struct {
	Run
	on bool
}

// heldRuns are a capability's runs in chunks, because growing one slice would copy many
// millions of them.
type heldRuns [][]Run

// maxRTSRuns bounds the number of runs kept, of 24 bytes each.
const maxRTSRuns = 1 << 25

func (s *rtsState) runs(rec *eventlog.Record, ev *eventlog.RunThread) {
	if rec.Cap < 0 {
		return
	}
	s.endRun(rec.Cap, rec.Time, 0)
	if n := rec.Cap + 1 - len(s.running); n > 0 {
		s.running = append(s.running, make([]running, n)...)
	}
	s.running[rec.Cap] = running{Run{Start: rec.Time, Thread: ev.Thread, Cap: uint16(rec.Cap)}, true}
}

func (s *rtsState) stops(rec *eventlog.Record, ev *eventlog.StopThread) {
	if ev.Status == eventlog.StoppedFinished {
		s.p.RTSLog.Finished++
	}
	s.stopped(ev, rec.Time)
	s.endRun(rec.Cap, rec.Time, ev.Status)
}

// endRun ends the current run of a capability, if there is one. With totals only, the run
// is counted but not kept.
func (s *rtsState) endRun(cap int, time uint64, status eventlog.StopStatus) {
	if cap < 0 || cap >= len(s.running) || !s.running[cap].on {
		return
	}
	s.running[cap].on = false
	run := s.running[cap].Run
	if time < run.Start {
		return
	}
	run.End, run.Status = time, status
	if first := &s.p.RTSLog.FirstRun; *first == 0 || run.Start < *first {
		*first = run.Start
	}
	s.ranThread(&run)
	s.watches["threads"].ranIn(&run)
	if !s.sumsOnly && s.n < maxRTSRuns {
		s.hold(run)
	}
}

func (s *runState) hold(run Run) {
	if n := int(run.Cap) + 1 - len(s.held); n > 0 {
		s.held = append(s.held, make([]heldRuns, n)...)
	}
	h := &s.held[run.Cap]
	last := len(*h) - 1
	if last < 0 || len((*h)[last]) == cap((*h)[last]) {
		size := 16
		if last >= 0 {
			size = min(2*cap((*h)[last]), 1<<12)
		}
		*h = append(*h, make([]Run, 0, size))
		last++
	}
	(*h)[last] = append((*h)[last], run)
	s.n++
}

// soFar copies what later events may change in the last runs.
func (s runState) soFar() runState {
	s.running, s.held = slices.Clone(s.running), slices.Clone(s.held)
	for cap := range s.held {
		s.held[cap] = slices.Clone(s.held[cap])
		if n := len(s.held[cap]); n > 0 {
			s.held[cap][n-1] = slices.Clip(s.held[cap][n-1])
		}
	}
	return s
}

// finishRuns ends the runs in progress and sorts all runs.
func (s *rtsState) finishRuns(last uint64) {
	r := &s.p.RTSLog
	for cap := range s.running {
		s.endRun(cap, max(last, s.running[cap].Start), 0)
	}
	if s.n == 0 {
		return
	}
	r.Runs = make([]Run, 0, s.n)
	for cap := range s.held {
		first := len(r.Runs)
		for _, chunk := range s.held[cap] {
			r.Runs = append(r.Runs, chunk...)
		}
		s.held[cap] = nil
		byStart := func(a, b Run) int { return cmp.Compare(a.Start, b.Start) }
		if runs := r.Runs[first:]; !slices.IsSortedFunc(runs, byStart) {
			slices.SortStableFunc(runs, byStart)
		}
	}
}

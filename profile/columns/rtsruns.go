package columns

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
)

// Run is a stretch of time in which a capability ran a thread.
type Run struct {
	Start, End uint64 // ns
	Thread     uint32
	Cap        uint16
	Status     eventlog.StopStatus // why it stopped
}

// Ran sums up all runs, also those that are not held.
func (r *RTS) Ran() (runs, ns uint64) {
	for i := range r.Threads {
		runs, ns = runs+r.Threads[i].Runs, ns+r.Threads[i].RunNs
	}
	return runs, ns
}

// runState takes the runs of threads.
type runState struct {
	running []running // by capability
	held    []heldRuns
	n       int // of held
}

type running struct {
	Run
	on bool
}

// heldRuns are those of a capability, in pieces: there may be many millions, which are
// not to be moved as more come.
type heldRuns [][]Run

// maxRTSRuns bounds the runs held, of 24 bytes each.
const maxRTSRuns = 1 << 25

func (b *builder) runs(rec *eventlog.Record, ev *eventlog.RunThread) {
	if rec.Cap < 0 {
		return
	}
	b.endRun(rec.Cap, rec.Time, 0)
	s := &b.runState
	if n := rec.Cap + 1 - len(s.running); n > 0 {
		s.running = append(s.running, make([]running, n)...)
	}
	s.running[rec.Cap] = running{Run{Start: rec.Time, Thread: ev.Thread, Cap: uint16(rec.Cap)}, true}
}

func (b *builder) stops(rec *eventlog.Record, ev *eventlog.StopThread) {
	if ev.Status == eventlog.StoppedFinished {
		b.p.RTSLog.Finished++
	}
	b.stopped(ev, rec.Time)
	b.endRun(rec.Cap, rec.Time, ev.Status)
}

// endRun ends what a capability runs, if anything. Who asks only about the whole log has
// no use for the run itself.
func (b *builder) endRun(cap int, time uint64, status eventlog.StopStatus) {
	s := &b.runState
	if cap < 0 || cap >= len(s.running) || !s.running[cap].on {
		return
	}
	s.running[cap].on = false
	run := s.running[cap].Run
	if time < run.Start {
		return
	}
	run.End, run.Status = time, status
	b.ranThread(&run)
	if b.totals == nil && s.n < maxRTSRuns {
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

// soFar copies what a snapshot's last runs change.
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

// finishRuns ends what still runs, and puts all runs in their order.
func (b *builder) finishRuns() {
	s, r := &b.runState, &b.p.RTSLog
	for cap := range s.running {
		b.endRun(cap, max(b.last, s.running[cap].Start), 0)
	}
	if s.n == 0 {
		return
	}
	r.Runs = make([]Run, 0, s.n)
	for cap := range s.held {
		first := len(r.Runs)
		for _, piece := range s.held[cap] {
			r.Runs = append(r.Runs, piece...)
		}
		s.held[cap] = nil
		byStart := func(a, b Run) int { return cmp.Compare(a.Start, b.Start) }
		if runs := r.Runs[first:]; !slices.IsSortedFunc(runs, byStart) {
			slices.SortStableFunc(runs, byStart)
		}
	}
}

package blocked

import (
	"testing"

	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/agent/sourcetest"
	"ccagent/eventlog"
	"ccagent/heap/threads"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

// Threads that wait are samples, with what they wait for as the leaf, and the weights of a thread that
// waits all the time add up to the time that passes. A stretch that cannot be read is reported.
func TestWaitsAndLosses(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	weight := map[uint64]uint64{}
	states := map[eventlog.ThreadState]bool{}
	write := r.Write
	im := r.Run(t, testprog.Build(t, "blocked", testprog.Options{Threaded: true}), "1000000")
	b := r.Source.(*blocked)
	bi := b.images[im.Incarnation]
	if bi == nil {
		t.Fatal("the source has not attached to a Haskell program")
	}
	b.host.Write = func(im *process.Image, s *perf.Sample) (*eventlog.Sample, error) {
		weight[s.Tso] += s.Period
		states[eventlog.ThreadState(s.Frames[0]&0xff)] = true
		return write(im, s)
	}
	begun := bi.stretches.begun
	sourcetest.Until(t, "threads were seen in four kinds of wait", func() bool {
		if err := b.Throttle(source.Use{}); err != nil {
			t.Fatal(err)
		}
		return states[eventlog.StateMVar] && states[eventlog.StateSTM] && states[eventlog.StateForeign] && states[eventlog.StateBlackHole]
	})
	passed := bi.stretches.begun - begun
	for tso, w := range weight {
		if w > passed {
			t.Errorf("thread %d has waited for %d ns of %d", tso, w, passed)
		}
	}
	if n := r.Losses(t, eventlog.LossUnread); n != bi.unread {
		t.Errorf("the log reports %d stretches that were not read, and %d were not", n, bi.unread)
	}
	before := bi.unread
	b.again(bi, bi.stretches.begun+bi.stretches.length-1, threads.ErrMoving)
	if n := r.Losses(t, eventlog.LossUnread); n != before+1 {
		t.Errorf("the log reports %d stretches that were not read, want %d", n, before+1)
	}
}

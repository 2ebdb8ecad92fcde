package timeline

import (
	"math"
	"reflect"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// The mean numbers of running, waiting, blocked and foreign threads in each bucket are
// those computed by hand.
func TestThreadsOver(t *testing.T) {
	p := profile.New(&columns.Log{Duration: 100})
	p.RTSLog.Runs = []columns.Run{ // by capability, as they are kept
		{Start: 20, End: 30, Thread: 1, Cap: 0, Status: eventlog.StoppedYielding},
		{Start: 40, End: 50, Thread: 1, Cap: 0, Status: eventlog.StoppedMVar},
		{Start: 90, End: 95, Thread: 1, Cap: 0, Status: eventlog.StoppedFinished},
		{Start: 20, End: 60, Thread: 2, Cap: 1, Status: eventlog.StoppedForeignCall},
	}
	p.RTSLog.Threads = []columns.RTSThread{{ID: 1, Created: 10}, {ID: 2}}
	got := Threads(p, 0, 100, 10)
	want := &ThreadCounts{
		ThreadRunning: {0, 0, 2, 1, 2, 1, 0, 0, 0, 0.5},
		ThreadWaiting: {0, 1, 0, 1, 0, 0, 0, 0, 0, 0},
		ThreadBlocked: {0, 0, 0, 0, 0, 1, 1, 1, 1, 0},
		ThreadForeign: {0, 0, 0, 0, 0, 0, 1, 1, 1, 1},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v\nwant\n%v", got, want)
	}
	// A window sums to what the whole has in it.
	sum := func(c *ThreadCounts, s ThreadState, width float64) (n float64) {
		for _, x := range c[s] {
			n += x * width
		}
		return n
	}
	part := Threads(p, 25, 55, 3)
	if n := sum(part, ThreadRunning, 10); math.Abs(n-45) > 1e-9 {
		t.Errorf("from 25 to 55 threads ran %v, want 45: %v", n, part)
	}
	if Threads(profile.New(&columns.Log{Duration: 9}), 0, 9, 3) != nil || Threads(p, 5, 5, 3) != nil {
		t.Error("threads from nothing")
	}
}

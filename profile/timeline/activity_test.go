package timeline

import (
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

// The activity of capabilities follows from the runs and collections that the RTS logs.
func TestActivityOfRTSLog(t *testing.T) {
	r := logtest.NewRTS()
	r.Put(500, eventlog.NoCap, &eventlog.ProgramArgs{Args: []string{"./p", "x"}}, &eventlog.OSProcessPID{PID: 77},
		&eventlog.WallClock{Sec: 10, Nsec: 1500}, &eventlog.HeapInfo{Generations: 2})
	r.Put(1000, 0, &eventlog.CreateThread{Thread: 1}, &eventlog.RunThread{Thread: 1})
	r.Put(5000, 0, &eventlog.StopThread{Thread: 1, Status: eventlog.StoppedHeapOverflow}, &eventlog.GCStart{})
	r.Put(7000, 0, &eventlog.GCStats{Generation: 1, Copied: 30}, &eventlog.GCEnd{}, &eventlog.RunThread{Thread: 1})
	r.Put(7500, 0, &eventlog.HeapLive{Bytes: 100}, &eventlog.HeapSize{Bytes: 200}, &eventlog.HeapAllocated{Bytes: 40}, &eventlog.HeapAllocated{Bytes: 60})
	r.Put(2000, 1, &eventlog.HeapAllocated{Bytes: 5}, &eventlog.RunThread{Thread: 2})
	r.Put(8000, 0, &eventlog.StopThread{Thread: 1, Status: eventlog.StoppedFinished})
	r.Put(9000, 0, &eventlog.CapDelete{Cap: 0})
	p := mustLoad(t, r.End())
	l := &p.RTSLog
	if strings.Join(l.Args, " ") != "./p x" || l.PID != 77 || l.WallNs != 10_000_001_000 || l.Caps != 2 || l.Created != 1 || l.Finished != 1 {
		t.Errorf("%+v", l)
	}
	if want := (columns.GCTotals{Collections: 1, Major: 1, Copied: 30, PeakLive: 100, PeakSize: 200, Allocated: 65}); l.Stats != want {
		t.Errorf("%+v, want %+v", l.Stats, want)
	}
	// What is still running when the log ends ran until then.
	want := []columns.Run{{Start: 1000, End: 5000, Thread: 1, Cap: 0, Status: eventlog.StoppedHeapOverflow}, {Start: 7000, End: 8000, Thread: 1, Cap: 0, Status: eventlog.StoppedFinished}, {Start: 2000, End: 9000, Thread: 2, Cap: 1, Status: 0}}
	if len(l.Runs) != 3 || l.Runs[0] != want[0] || l.Runs[1] != want[1] || l.Runs[2] != want[2] {
		t.Errorf("runs %+v", l.Runs)
	}
	tl := Of(p.Select(profile.Filter{Range: profile.Range{From: 0, To: 10000}}), Options{Buckets: 5})
	if len(tl.RTS) != 2 {
		t.Fatalf("%d capabilities", len(tl.RTS))
	}
	var run, gc uint64
	for i := range tl.RTS[0].Run {
		run, gc = run+tl.RTS[0].Run[i], gc+tl.RTS[0].GC[i]
	}
	if run != 5000 || gc != 2000 {
		t.Errorf("run %d, gc %d: %+v", run, gc, tl.RTS[0])
	}
}

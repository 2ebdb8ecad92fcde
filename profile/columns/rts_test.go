package columns

import (
	"reflect"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
)

// The threads, collections, concurrent phases and ticky counters that an RTS reports are
// loaded with their times and counts.
func TestRTSThreadsAndCollections(t *testing.T) {
	r := logtest.NewRTS()
	r.Put(10, 0, &eventlog.CreateThread{Thread: 1}, &eventlog.ThreadLabel{Thread: 1, Label: "main"}, &eventlog.RunThread{Thread: 1})
	r.Put(30, 0, &eventlog.StopThread{Thread: 1, Status: eventlog.StoppedHeapOverflow}, &eventlog.GCStats{Generation: 1, Copied: 7, Threads: 2}, &eventlog.HeapLive{Bytes: 50})
	r.Put(40, 0, &eventlog.RunThread{Thread: 1}, &eventlog.ConcMarkBegin{})
	r.Put(45, 0, &eventlog.StopThread{Thread: 1, Status: eventlog.StoppedFinished}, &eventlog.MigrateThread{Thread: 2, NewCap: 1}, &eventlog.ConcMarkEnd{})
	r.Put(50, eventlog.NoCap, &eventlog.TickyCounterDef{Counter: 9, Name: "f", Arity: 2}, &eventlog.TickyCounterSample{Counter: 9, Entries: 3, Allocated: 16}, &eventlog.TickyCounterSample{Counter: 9, Entries: 4}, &eventlog.TickyCounterSample{Counter: 8, Entries: 1})
	p := loaded(t, r.End())
	l := &p.RTSLog
	want := RTSThread{ID: 1, Label: "main", Created: 10, Finished: 45, Runs: 2, RunNs: 25, Stops: map[eventlog.StopStatus]uint64{eventlog.StoppedHeapOverflow: 1, eventlog.StoppedFinished: 1}}
	if len(l.Threads) != 2 || !reflect.DeepEqual(l.Threads[0], want) || l.Threads[1].Moves != 1 {
		t.Errorf("%+v", l.Threads)
	}
	if len(l.Collections) != 1 || l.Collections[0] != (Collection{Time: 30, Generation: 1, Copied: 7, Threads: 2, Live: 50}) {
		t.Errorf("%+v", l.Collections)
	}
	if len(l.Concurrent) != 1 || l.Concurrent[0] != (ConcurrentPhase{Kind: ConcurrentMark, Start: 40, End: 45}) {
		t.Errorf("%+v", l.Concurrent)
	}
	if len(p.Ticky) != 2 || p.Ticky[0].Entries != 7 || p.Ticky[0].Allocated != 16 || p.Ticky[0].Name != "f" || !p.Ticky[1].Undefined {
		t.Errorf("%+v", p.Ticky)
	}
}

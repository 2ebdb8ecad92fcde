package profile

import (
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

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
	tl := p.Select(Filter{Range: Range{From: 0, To: 10000}}).Timeline(TimelineOptions{Buckets: 5})
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

func TestCostCentreProfile(t *testing.T) {
	r := logtest.NewRTS()
	r.Put(1, eventlog.NoCap, &eventlog.ProfBegin{TickNs: 1_000_000},
		&eventlog.CostCentre{Centre: 3, Label: "GC", Module: "GC", SrcLoc: "<built-in>"},
		&eventlog.CostCentre{Centre: 2, Label: "main", Module: "Main", SrcLoc: "T.hs:(11,1)-(19,21)"},
		&eventlog.CostCentre{Centre: 1, Label: "build", Module: "Main", SrcLoc: "T.hs:9:1-66"})
	for i := range uint64(10) {
		r.Put(i*1_000_000, eventlog.NoCap, &eventlog.ProfSample{Tick: i, Stack: []uint32{1, 2}})
	}
	r.Put(20_000_000, eventlog.NoCap, &eventlog.ProfSample{Cap: 1, Stack: []uint32{2}}, &eventlog.ProfSample{Stack: []uint32{3}},
		&eventlog.ProfSample{Stack: []uint32{99}}, &eventlog.ProfSample{})
	p := mustLoad(t, r.End())
	s := p.Select(Filter{})
	if s.Total != 14_000_000 || s.EventDef().Unit != "ns" || s.EventDef().Rate != 1000 {
		t.Fatalf("%d of %+v", s.Total, s.EventDef())
	}
	got := make(map[string][2]uint64)
	for _, row := range s.Hot(LevelBinding).Rows {
		got[row.Element.Name] = [2]uint64{row.ShareWeight, row.InclusiveWeight}
	}
	for name, want := range map[string][2]uint64{"Main.build": {10_000_000, 10_000_000}, "Main.main": {1_000_000, 11_000_000}, "(GC)": {1_000_000, 1_000_000}} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v, in %v", name, got[name], want, got)
		}
	}
	if e := s.Hot(LevelSpan).Rows[0].Element; e.Name != "T.hs:9:1-9:67" {
		t.Errorf("span %s", e.Name)
	}
}

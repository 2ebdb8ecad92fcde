package profile

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

type rtsWriter struct {
	t *testing.T
	b bytes.Buffer
	w *eventlog.Writer
}

func newRTSLog(t *testing.T) *rtsWriter {
	r := &rtsWriter{t: t}
	r.w = eventlog.NewWriter(&r.b, nil)
	r.put(0, eventlog.NoCap, &eventlog.RTSIdentifier{Text: "GHC-9.0.2 rts_thr_l"})
	return r
}

func (r *rtsWriter) put(time uint64, cap int, evs ...eventlog.Event) {
	for _, ev := range evs {
		if err := r.w.Write(time, cap, ev); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rtsWriter) load() *Profile {
	r.t.Helper()
	if err := r.w.Close(); err != nil {
		r.t.Fatal(err)
	}
	p, err := Load(&r.b)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

func TestActivityOfRTSLog(t *testing.T) {
	r := newRTSLog(t)
	r.put(500, eventlog.NoCap, &eventlog.ProgramArgs{Args: []string{"./p", "x"}}, &eventlog.OSProcessPID{PID: 77},
		&eventlog.WallClock{Sec: 10, Nsec: 1500}, &eventlog.HeapInfo{Generations: 2})
	r.put(1000, 0, &eventlog.CreateThread{Thread: 1}, &eventlog.RunThread{Thread: 1})
	r.put(5000, 0, &eventlog.StopThread{Thread: 1, Status: eventlog.StoppedHeapOverflow}, &eventlog.GCStart{})
	r.put(7000, 0, &eventlog.GCStats{Generation: 1, Copied: 30}, &eventlog.GCEnd{}, &eventlog.RunThread{Thread: 1})
	r.put(7500, 0, &eventlog.HeapLive{Bytes: 100}, &eventlog.HeapSize{Bytes: 200}, &eventlog.HeapAllocated{Bytes: 40}, &eventlog.HeapAllocated{Bytes: 60})
	r.put(2000, 1, &eventlog.HeapAllocated{Bytes: 5}, &eventlog.RunThread{Thread: 2})
	r.put(8000, 0, &eventlog.StopThread{Thread: 1, Status: eventlog.StoppedFinished})
	r.put(9000, 0, &eventlog.CapDelete{Cap: 0})
	p := r.load()
	l := &p.RTSLog
	if strings.Join(l.Args, " ") != "./p x" || l.PID != 77 || l.WallNs != 10_000_001_000 || l.Caps != 2 || l.Created != 1 || l.Finished != 1 {
		t.Errorf("%+v", l)
	}
	if want := (GCTotals{Collections: 1, Major: 1, Copied: 30, PeakLive: 100, PeakSize: 200, Allocated: 65}); l.Stats != want {
		t.Errorf("%+v, want %+v", l.Stats, want)
	}
	// What is still running when the log ends ran until then.
	want := []Run{{1000, 5000, 1, 0, eventlog.StoppedHeapOverflow}, {7000, 8000, 1, 0, eventlog.StoppedFinished}, {2000, 9000, 2, 1, 0}}
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
	r := newRTSLog(t)
	r.put(1, eventlog.NoCap, &eventlog.ProfBegin{TickNs: 1_000_000},
		&eventlog.CostCentre{Centre: 3, Label: "GC", Module: "GC", SrcLoc: "<built-in>"},
		&eventlog.CostCentre{Centre: 2, Label: "main", Module: "Main", SrcLoc: "T.hs:(11,1)-(19,21)"},
		&eventlog.CostCentre{Centre: 1, Label: "build", Module: "Main", SrcLoc: "T.hs:9:1-66"})
	for i := range uint64(10) {
		r.put(i*1_000_000, eventlog.NoCap, &eventlog.ProfSample{Tick: i, Stack: []uint32{1, 2}})
	}
	r.put(20_000_000, eventlog.NoCap, &eventlog.ProfSample{Cap: 1, Stack: []uint32{2}}, &eventlog.ProfSample{Stack: []uint32{3}},
		&eventlog.ProfSample{Stack: []uint32{99}}, &eventlog.ProfSample{})
	p := r.load()
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
	src, err := s.Source("Main.build")
	if err != nil || src == nil {
		t.Errorf("no source of Main.build: %v", err)
	}
	if e := s.Hot(LevelSpan).Rows[0].Element; e.Name != "T.hs:9:1-9:67" {
		t.Errorf("span %s", e.Name)
	}
}

func TestParseSrcLoc(t *testing.T) {
	for in, want := range map[string]string{
		"T.hs:9:1-66": "T.hs 9:1-9:67", "src/A.hs:3:5": "src/A.hs 3:5-3:6", "A.hs:(11,1)-(19,21)": "A.hs 11:1-19:22",
		"<built-in>": "", "<entire-module>": "", "A.hs:x:y": "", ":1:2": "", "A.hs:(1,2)": "", "A.hs:9:1-": "", "": "",
		"A.hs:99999999999:1": "", "C:\\A.hs:3:5-7": "C:\\A.hs 3:5-3:8",
	} {
		file, x, ok := parseSrcLoc(in)
		got := ""
		if ok {
			got = file + " " + x.String()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// A log that the installed GHC's RTS writes now.
func TestFreshRTSLog(t *testing.T) {
	exe := testprog.Build(t, "threads100", testprog.Options{Threaded: true, Flags: []string{"-eventlog"}})
	dir := t.TempDir()
	cmd := exec.Command(testprog.CopyTo(t, exe, dir), "10", "40", "4", "+RTS", "-l", "-N2")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(filepath.Join(dir, "threads100.eventlog"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	l := &p.RTSLog
	if !strings.HasPrefix(p.RTS, "GHC-") || l.Caps != 2 || l.Created < 10 || len(l.Runs) < 10 || l.PID != uint32(cmd.Process.Pid) || l.WallNs == 0 || l.Stats.Allocated == 0 {
		t.Errorf("%s %+v", p.RTS, l)
	}
	last := make(map[uint16]uint64)
	for _, r := range l.Runs {
		if r.Start < last[r.Cap] || r.End < r.Start || r.End > p.Duration {
			t.Fatalf("run %+v after %d", r, last[r.Cap])
		}
		last[r.Cap] = r.End
	}
}

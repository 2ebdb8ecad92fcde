package columns_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"

	"github.com/google/go-cmp/cmp"
)

// wholeLog is all that can be asked of a Profile of totals.
func wholeLog(p *profile.Profile) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	rts := p.RTSLog
	rts.Runs = nil // only their sums are of the whole log
	say("capture %+v %t, end %+v %t, rts %q %+v", p.Capture, p.HaveCapture, p.End, p.HaveEnd, p.RTS, rts)
	say("%+v, %d ns, symbolised %t, %d samples, %d sites, %+v", p.Accounting, p.Duration, p.Symbolised, p.Samples(), len(p.Sites), p.Stacks())
	say("%+v %+v %+v %+v", p.Losses, p.Costs, p.Overheads, p.Warnings)
	say("%+v %+v %+v %+v", p.GCs, p.Heap, p.Markers, p.Exact)
	say("%+v %+v %+v", p.Modules, p.Mappings, p.Processes)
	for i := range p.Events {
		s := p.Select(profile.Filter{}.WithEvent(i))
		say("%+v", p.Events[i])
		say("%+v %+v %+v", s.Summary(), s.Categories(), s.Unnoted())
		for _, level := range profile.Levels {
			h := s.Hot(level)
			for _, r := range h.Rows {
				say("%s %d %d %d %v %v", r.Element.Name, r.ShareWeight, r.OnlyWeight, r.Samples, r.Share, r.Inclusive)
			}
		}
	}
	return out
}

// totalsOf reads totals of a log.
func totalsOf(t *testing.T, log []byte) (*columns.Log, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log.eventlog")
	if err := os.WriteFile(path, log, 0o600); err != nil {
		t.Fatal(err)
	}
	return columns.OpenTotals(path, nil)
}

func sameTotals(t *testing.T, what string, log []byte) {
	t.Helper()
	want, err := profile.Load(bytes.NewReader(log))
	if he := (*eventlog.HeaderError)(nil); errors.As(err, &he) {
		want = nil
	} else if err != nil {
		t.Fatal(err)
	}
	got, err := totalsOf(t, log)
	if (err != nil) != (want == nil) {
		t.Fatalf("%s: one of both is no log: %v", what, err)
	}
	if err != nil {
		return
	}
	if diff := cmp.Diff(wholeLog(want), wholeLog(profile.New(got))); diff != "" {
		t.Fatalf("%s:\n%s", what, diff)
	}
}

// busyLog is of many small blocks: samples of several events, with cost-centre
// stacks or of the kernel, between what defines their nodes, and an RTS's events.
func busyLog(t testing.TB, seed uint64, odd bool) []byte {
	rng := rand.New(rand.NewPCG(seed, 21))
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, &eventlog.WriterOptions{Buffer: 4 << 10})
	time := uint64(0)
	put := func(cap int, ev eventlog.Event) {
		if err := w.Write(time, cap, ev); err != nil {
			t.Fatal(err)
		}
	}
	put(eventlog.NoCap, &eventlog.Capture{PID: 7, Program: "/bin/x", GHCVersion: "9.0.2"})
	put(eventlog.NoCap, &eventlog.Module{ID: 1, Path: "/bin/x"})
	events := uint32(0)
	nodes := uint32(0)
	for i := range 6000 {
		time += rng.Uint64N(2e6)
		switch r := rng.IntN(100); {
		case events < 2 || r == 0 && events < 12:
			put(eventlog.NoCap, &eventlog.EventDef{Index: events, Requested: fmt.Sprint("e", events), Granted: "cpu-clock", Unit: "ns"})
			events++
		case nodes == 0 || r < 3:
			ev := &eventlog.Nodes{First: nodes + 1}
			for range 1 + rng.IntN(5) {
				parent := uint32(0)
				if nodes > 0 {
					parent = 1 + rng.Uint32N(nodes)
				}
				nodes++
				ev.Nodes = append(ev.Nodes, eventlog.Node{Parent: parent, Kind: eventlog.FrameReturn, Module: 1, Addr: 0x1000 + 16*rng.Uint64N(50)})
			}
			put(eventlog.NoCap, ev)
		case r < 6:
			put(rng.IntN(2), &eventlog.RunThread{Thread: 1 + rng.Uint32N(3)})
		case r < 8:
			put(rng.IntN(2), &eventlog.StopThread{Thread: 1, Status: eventlog.StoppedFinished})
		case r == 8:
			put(eventlog.NoCap, &eventlog.Loss{Event: rng.Uint32N(events), Count: rng.Uint64N(9)})
		case r == 9:
			put(eventlog.NoCap, &eventlog.CentreDef{ID: 1 + rng.Uint32N(4), Label: "f", Module: "M", SrcLoc: "M.hs:1:1-9"})
		case r == 10:
			id := 1 + rng.Uint32N(9)
			put(eventlog.NoCap, &eventlog.CentreStack{ID: id, Parent: id / 2, Centre: 1 + rng.Uint32N(4)})
		default:
			s := &eventlog.Sample{
				Event: rng.Uint32N(events), CPU: rng.Uint32N(3), PID: 7, TID: 7, TSO: rng.Uint64N(9), Weight: rng.Uint64N(1 << rng.IntN(40)),
				Node: rng.Uint32N(nodes + 1), Stop: eventlog.StopReason(rng.IntN(6)), Flags: eventlog.SampleFlags(rng.IntN(8)),
			}
			if rng.IntN(5) == 0 {
				s.Centres, s.SkippedWords, s.FoldedFrames = rng.Uint32N(12), rng.Uint64N(3), rng.Uint32N(9)
			}
			if odd && i > 3000 && rng.IntN(200) == 0 {
				// What nothing defines, or what is defined later.
				s.Node, s.Event = nodes+1+rng.Uint32N(50), s.Event+rng.Uint32N(2)
			}
			put(eventlog.NoCap, s)
		}
	}
	put(eventlog.NoCap, &eventlog.CaptureEnd{})
	put(eventlog.NoCap, &eventlog.File{ID: 1, Path: "M.hs"})
	put(eventlog.NoCap, &eventlog.Binding{ID: 1, Package: "main", Module: "M", Name: "f", Category: eventlog.CategoryHaskell})
	put(eventlog.NoCap, &eventlog.Binding{ID: 2, Symbol: "evacuate", Name: "evacuate", Category: eventlog.CategoryGC})
	put(eventlog.NoCap, &eventlog.Span{ID: 1, File: 1, Binding: 1, Line: 1, Col: 1, EndLine: 2, EndCol: 2})
	put(eventlog.NoCap, &eventlog.Block{ID: 1, Module: 1, Lo: 0x1000, Hi: 0x1100, Binding: 1, Causes: []eventlog.Cause{{Span: 1}}})
	locs := &eventlog.Locations{Module: 1}
	for i := range uint64(40) {
		l := eventlog.Location{Addr: 0x1000 + 16*i, Quality: eventlog.QualityExact, Category: eventlog.CategoryHaskell, Binding: 1}
		if i < 16 {
			l.Block = 1
		}
		if i > 30 {
			l.Binding, l.Category = 2, eventlog.CategoryGC
		}
		locs.Locations = append(locs.Locations, l)
	}
	put(eventlog.NoCap, locs)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return log.Bytes()
}

// Totals are the figures of the columns, whatever has happened to the log.
func TestTotals(t *testing.T) {
	for seed := range uint64(4) {
		log := busyLog(t, seed, false)
		sameTotals(t, "a whole log", log)
		sameTotals(t, "a cut log", log[:len(log)-len(log)/3])
		sameTotals(t, "with what is not defined", busyLog(t, seed, true))
		rng := rand.New(rand.NewPCG(seed, 22))
		header := bytes.Index(log, []byte("datb")) + 4
		for range 12 {
			bad := bytes.Clone(log)
			for range 1 + rng.IntN(3) {
				bad[header+rng.IntN(len(bad)-header)] ^= 1 << rng.IntN(8)
			}
			if rng.IntN(3) == 0 {
				at := header + rng.IntN(len(bad)-header)
				bad = append(bad[:at], bad[min(len(bad), at+rng.IntN(9000)):]...)
			}
			sameTotals(t, "a damaged log", bad)
		}
	}
	for name, l := range map[string][]byte{
		"n-body": logtest.NBody().End(), "cut": logtest.NBody().EndAbruptly(false), "no samples": logtest.New().End(),
		"empty": nil, "no log": []byte("hello, world"),
	} {
		sameTotals(t, name, l)
	}
}

// Of the logs of every GHC and of our own first version, too.
func TestTotalsOfGoldenLogs(t *testing.T) {
	paths, _ := filepath.Glob("../../eventlog/testdata/*/*.eventlog")
	if len(paths) < 37 {
		t.Fatalf("%d logs", len(paths))
	}
	for _, path := range paths {
		log, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sameTotals(t, filepath.Base(path), log)
	}
}

// A Profile of totals says so where it is asked for what it has not.
func TestTotalsHaveNoSamples(t *testing.T) {
	l, err := totalsOf(t, logtest.NBody().End())
	if err != nil {
		t.Fatal(err)
	}
	p := profile.New(l)
	for name, ask := range map[string]func(){
		"range":  func() { p.Select(profile.Filter{Range: profile.Range{From: 1}}) },
		"thread": func() { p.Select(profile.Filter{Threads: []uint64{1}}) },
		"sample": func() { p.Sample(0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: an answer without looking at samples", name)
				}
			}()
			ask()
		}()
	}
}

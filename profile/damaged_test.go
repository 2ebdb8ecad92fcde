package profile_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
	"ccagent/profile/source"
	"ccagent/profile/stacks"
	"ccagent/profile/timeline"
)

// References to undefined ids are counted by kind, and their samples are kept as
// unresolved.
func TestLoadDanglingReferences(t *testing.T) {
	l := logtest.New()
	f := l.File("A.hs", "x\n")
	b := l.Binding("main", "A", "f", 77) // made from nothing
	good := l.Block(b, l.Span(f, 1, 1, 1, 2, b))
	bad := l.Block(88, 99)
	l.Symbol(&eventlog.Span{ID: 50, File: 51, Binding: 52, Line: 1})
	l.Symbol(&eventlog.FileText{File: 53, Text: []byte("lost")})
	l.Symbol(&eventlog.Binding{ID: b, Name: "again"})
	l.Symbol(&eventlog.Binding{ID: 0, Name: "zero"})
	l.Symbol(&eventlog.Binding{ID: 1 << 31, Module: "Huge", Name: "id", Category: eventlog.CategoryHaskell})
	l.Symbol(&eventlog.Locations{Module: logtest.Module, Locations: []eventlog.Location{{Addr: 0x999, Binding: 1 << 31, Quality: eventlog.QualityExact, Category: eventlog.CategoryHaskell}}})
	l.Sample(1, 10, l.Stack(good))
	l.Sample(2, 10, l.Stack(bad))
	l.Sample(3, 10, 1<<31)
	l.Sample(4, 10, l.Stack(logtest.Frame{Module: logtest.Module, Addr: 0x999}))
	l.SampleOf(5, eventlog.Sample{Event: 9, Weight: 5, Node: 1})
	l.Write(6, &eventlog.Nodes{First: 1, Nodes: make([]eventlog.Node, 3)})            // defined before
	l.Write(6, &eventlog.Nodes{First: 0xffffffff, Nodes: make([]eventlog.Node, 3)})   // beyond the last id
	l.Write(6, &eventlog.Nodes{First: 0xfffffff0, Nodes: []eventlog.Node{{Addr: 1}}}) // far off, but sound
	l.Write(6, &eventlog.Nodes{First: 0xfffffff1, Nodes: []eventlog.Node{{Parent: 0xfffffff0}, {Parent: 0xfffffff2}, {Parent: 7777}}})
	l.Sample(7, 10, 0xfffffff1)
	p := load(t, l.End())

	want := columns.Undefined{Events: 1, Nodes: 1, Parents: 2, Bindings: 4, Spans: 1, Files: 2}
	if p.Accounting.Undefined != want {
		t.Errorf("undefined: %+v, want %+v", p.Accounting.Undefined, want)
	}
	if p.Accounting.Redefined != 8 { // 3 + 3 nodes, 2 bindings
		t.Errorf("redefined: %d", p.Accounting.Redefined)
	}
	if p.Samples() != 6 || len(p.Events) != 2 || !p.Events[1].Undefined {
		t.Errorf("%d samples, events %+v", p.Samples(), p.Events)
	}
	got := map[string]uint64{}
	for _, r := range p.Select(profile.Filter{}).Hot(profile.LevelBinding).Rows {
		got[r.Element.Name] = r.ShareWeight
	}
	for name, w := range map[string]uint64{"A.f": 10, "(STG)": 10, "Huge.id": 10, "(unresolved)": 20} {
		if got[name] != w {
			t.Errorf("%s has %d, want %d; all: %v", name, got[name], w, got)
		}
	}
}

// The sum of weights that exceed 64 bits is the largest weight, not a wrapped one.
func TestWeightsSaturate(t *testing.T) {
	l := logtest.New()
	for range 3 {
		l.Sample(1, 1<<63, l.Stack(l.Unknown()))
	}
	s := load(t, l.End()).Select(profile.Filter{})
	if s.Total != ^uint64(0) {
		t.Errorf("total %d", s.Total)
	}
	for _, r := range s.Hot(profile.LevelBinding).Rows {
		if r.Share > 1 {
			t.Errorf("share %v", r.Share)
		}
	}
}

// Of a log that is cut anywhere, queries answer from what is there: from each sample
// that is whole before the cut, and from nothing else.
func TestQueriesOfCutLogs(t *testing.T) {
	whole := logtest.NBody().End()
	var ends []int // of the samples
	for r := eventlog.NewReader(bytes.NewReader(whole)); r.Next(); {
		if _, sample := r.Record().Event.(*eventlog.Sample); sample {
			ends = append(ends, int(r.Offset()))
		}
	}
	for n := bytes.Index(whole, []byte("datb")) + 4; n < len(whole); n += 7 {
		p := load(t, whole[:n])
		want := 0
		for want < len(ends) && ends[want] <= n {
			want++
		}
		if int(p.Samples()) != want || p.Accounting.Complete {
			t.Fatalf("cut at %d: %d samples, want %d; complete: %t", n, p.Samples(), want, p.Accounting.Complete)
		}
		s := p.Select(profile.Filter{})
		for level := range profile.LevelLine + 1 {
			wantWithin(t, s, level)
		}
		if root := stacks.TreeOf(s, stacks.Options{}).Nodes[0].Total; root != s.Total {
			t.Fatalf("cut at %d: the tree holds %d of %d", n, root, s.Total)
		}
	}
}

// wantWithin fails unless what only an element has is within its share, that within what
// it has inclusively, and that within the total.
func wantWithin(t testing.TB, s *profile.Selection, level profile.Level) {
	t.Helper()
	for _, r := range s.Hot(level).Rows {
		if r.OnlyWeight > r.ShareWeight || r.ShareWeight > r.InclusiveWeight || r.InclusiveWeight > s.Total {
			t.Fatalf("%v: %+v of %d", level, r, s.Total)
		}
	}
}

// Queries of a log without events return empty results.
func TestQueriesOfLogWithoutEvents(t *testing.T) {
	r := logtest.NewRTS()
	r.Put(1000, 0, &eventlog.GCStart{})
	r.Put(2000, 0, &eventlog.GCEnd{})
	p := load(t, r.End())
	s := p.Select(profile.Filter{})
	if s.Event != -1 || len(s.Hot(profile.LevelBinding).Rows) != 0 || stacks.TreeOf(s, stacks.Options{}).Nodes[0].Total != 0 {
		t.Error("a log without events has rows")
	}
	if tl := timeline.Of(s, timeline.Options{Buckets: 7}); len(tl.Weight) != 7 || slices.Max(tl.Weight) != 0 {
		t.Errorf("a log without events has weight over time: %v", tl.Weight)
	}
}

// Flipping bytes anywhere must neither fail nor change what a profile may be.
func TestLoadFlippedBytes(t *testing.T) {
	whole := logtest.NBody().End()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		bad := bytes.Clone(whole)
		for range 1 + rng.IntN(8) {
			bad[rng.IntN(len(bad))] ^= byte(1 << rng.IntN(8))
		}
		exercise(t, bad)
	}
}

// exercise loads a log and asks it everything.
func exercise(t testing.TB, log []byte) {
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		if p != nil {
			t.Fatal("both a profile and an error")
		}
		return
	}
	for e := range p.Events {
		s := p.Select(profile.Filter{}.WithEvent(e))
		for level := range profile.LevelLine + 1 {
			wantWithin(t, s, level)
		}
		stacks.TreeOf(s, stacks.Options{})
		stacks.TreeOf(s, stacks.Options{Invert: true, AllFrames: true})
		timeline.Of(s, timeline.Options{Buckets: 20})
		s.Summary()
		exact := centres.Attribute(s, centres.Find(p, centres.Set{Patterns: []centres.Pattern{{Level: profile.LevelBinding, HasLevel: true, Glob: "*"}}}), centres.ModeExact)
		sum := uint64(0)
		for i := range exact.Rows {
			sum = columns.SatAdd(sum, exact.Rows[i].Individual)
		}
		if sum != s.Total {
			t.Fatalf("cost-centre stacks of %d sum to %d", s.Total, sum)
		}
		s.Costs(s)
		for f := 1; f < min(p.Files(), 8); f++ {
			source.OfFile(s, columns.FileID(f))
		}
		for b := 1; b < min(p.Bindings(), 8); b++ {
			_, _ = source.OfBinding(s, columns.BindingID(b))
		}
		if e == 3 {
			break
		}
	}
}

// FuzzLoad varies the events under a sound header; the header is the business
// of package eventlog's own target.
func FuzzLoad(f *testing.F) {
	split := func(log []byte) (header, events []byte) {
		at := bytes.Index(log, []byte("datb")) + 4
		return log[:at], log[at:]
	}
	header, events := split(logtest.NBody().End())
	f.Add(events)
	_, events = split(logtest.NBody().EndAbruptly(false))
	f.Add(events[:400])
	_, events = split(logtest.DamagedExact())
	f.Add(events)
	f.Fuzz(func(t *testing.T, events []byte) { exercise(t, slices.Concat(header, events)) })
}

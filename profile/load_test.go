package profile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
)

func mustLoad(t testing.TB, log []byte) *Profile {
	t.Helper()
	p, err := Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLoadKeepsWhatTheLogSays(t *testing.T) {
	p := mustLoad(t, logtest.NBody().End())
	if !p.HaveCapture || !p.HaveEnd || !p.Symbolised || !p.Accounting.Complete || p.Capture.Program != "/home/u/nbody" || len(p.Capture.Args) != 2 {
		t.Errorf("capture: %+v", p.Capture)
	}
	if a := p.Accounting; a.Malformed != 0 || a.Undefined.Sum() != 0 || a.Redefined != 0 || a.Dropped != 0 || a.Unknown != 0 {
		t.Errorf("accounting of a whole log: %+v", a)
	}
	e := &p.Events[0]
	if p.Samples() != 100 || e.Samples != 100 || e.Weight != 100e6 || e.Lost != 7 || e.Throttled != 2 || p.Duration != 100e6 {
		t.Errorf("%d samples, event %+v, duration %d", p.Samples(), e, p.Duration)
	}
	if s := p.Sample(42); s.Time != 43e6 || s.Weight != 1e6 || s.Thread != (ThreadKey{100, 100, 1}) || s.Capability != 0 {
		t.Errorf("sample: %+v", s)
	}
	if f := p.File(1); string(f.Text) != logtest.NBodySource || f.Cut {
		t.Errorf("text: %q", f.Text)
	}
	if c, ok := p.Cost(); !ok || c.BPFRuns != 102 {
		t.Errorf("cost: %+v", c)
	}
	if m := p.Modules[0]; !m.Symbols.HasNotes || !bytes.Equal(m.BuildID, []byte{0xab, 0xcd}) {
		t.Errorf("module: %+v", m)
	}
}

// A log cut anywhere opens, and holds every sample up to the cut.
func TestLoadTruncated(t *testing.T) {
	whole := logtest.NBody().End()
	header := bytes.Index(whole, []byte("datb")) + 4
	last := -1
	for n := header; n < len(whole); n += 7 {
		p := mustLoad(t, whole[:n])
		if p.Accounting.Complete {
			t.Fatalf("cut at %d: complete", n)
		}
		if p.Samples() < last {
			t.Fatalf("cut at %d: %d samples, with less of the log %d", n, p.Samples(), last)
		}
		last = p.Samples()
		for level := range levels {
			p.Select(Filter{}).Hot(level)
		}
		p.Select(Filter{}).Tree(TreeOptions{})
	}
	if last != 100 {
		t.Errorf("%d samples before the end", last)
	}
	for n := range header {
		if _, err := Load(bytes.NewReader(whole[:n])); err == nil {
			t.Fatalf("cut inside the header at %d: no error", n)
		} else if he := (*eventlog.HeaderError)(nil); !errors.As(err, &he) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestLoadPassesReadErrors(t *testing.T) {
	whole := logtest.NBody().End()
	want := errors.New("disk on fire")
	r := io.MultiReader(bytes.NewReader(whole[:len(whole)/2]), errReader{want})
	if _, err := Load(r); !errors.Is(err, want) {
		t.Errorf("error %v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

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
	p := mustLoad(t, l.End())

	want := Undefined{Events: 1, Nodes: 1, Parents: 2, Bindings: 4, Spans: 1, Files: 2}
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
	for _, r := range p.Select(Filter{}).Hot(LevelBinding).Rows {
		got[r.Element.Name] = r.ShareWeight
	}
	for name, w := range map[string]uint64{"A.f": 10, "(STG)": 10, "Huge.id": 10, "(unresolved)": 20} {
		if got[name] != w {
			t.Errorf("%s has %d, want %d; all: %v", name, got[name], w, got)
		}
	}
}

func TestLoadManyEvents(t *testing.T) {
	l := logtest.New()
	for i := range uint32(600) {
		l.SampleOf(1, eventlog.Sample{Event: i * 1000, Weight: 1})
	}
	p := mustLoad(t, l.End())
	if len(p.Events) != maxEvents || p.Accounting.Dropped != 600-maxEvents || p.Samples() != maxEvents {
		t.Errorf("%d events, %d dropped, %d samples", len(p.Events), p.Accounting.Dropped, p.Samples())
	}
}

func TestBindingParentsInACircle(t *testing.T) {
	l := logtest.New()
	a := l.Binding("main", "A", "a", 2)
	b := l.Binding("main", "A", "b", 3)
	c := l.Binding("main", "A", "c", 2)
	self := l.Binding("main", "A", "self", 4)
	src := l.Binding("main", "A", "src", 0)
	w := l.Binding("main", "A", "$wsrc", src)
	ww := l.Binding("main", "A", "$w$wsrc", w)
	for _, id := range []uint32{a, b, c, self, ww} {
		l.Sample(1, 1, l.Stack(l.Code(id, eventlog.QualityExact, eventlog.CategoryHaskell)))
	}
	p := mustLoad(t, l.End())
	for id, want := range map[uint32]uint32{self: self, src: src, w: src, ww: src} {
		if got := p.Binding(BindingID(id)).Source; got != BindingID(want) {
			t.Errorf("source of %d is %d, want %d", id, got, want)
		}
	}
	if n := p.Select(Filter{}).Hot(LevelBinding).Rows; len(n) == 0 {
		t.Error("no rows")
	}
}

func TestWeightsSaturate(t *testing.T) {
	l := logtest.New()
	for range 3 {
		l.Sample(1, 1<<63, l.Stack(l.Unknown()))
	}
	s := mustLoad(t, l.End()).Select(Filter{})
	if s.Total != ^uint64(0) {
		t.Errorf("total %d", s.Total)
	}
	for _, r := range s.Hot(LevelBinding).Rows {
		if r.Share > 1 {
			t.Errorf("share %v", r.Share)
		}
	}
}

func TestTextWithHoles(t *testing.T) {
	l := logtest.New()
	l.Symbol(&eventlog.File{ID: 1, Path: "A.hs", TextSize: 10})
	l.Symbol(&eventlog.FileText{File: 1, Offset: 0, Text: []byte("abc")})
	l.Symbol(&eventlog.FileText{File: 1, Offset: 4, Text: []byte("efg")})
	l.Symbol(&eventlog.FileText{File: 1, Offset: 3, Text: []byte("defghijkl")})
	p := mustLoad(t, l.End())
	if f := p.File(1); string(f.Text) != "abc" || !f.Cut || p.Accounting.Redefined != 2 {
		t.Errorf("text %q, cut %v, %d refused", f.Text, f.Cut, p.Accounting.Redefined)
	}
}

func TestRTSLog(t *testing.T) {
	var buf bytes.Buffer
	w := eventlog.NewWriter(&buf, nil)
	for i, ev := range []eventlog.Event{
		&eventlog.RTSIdentifier{Text: "GHC-9.0.2 rts_thr"}, &eventlog.GCStart{}, &eventlog.GCEnd{},
		&eventlog.ThreadLabel{Thread: 3, Label: "worker"}, &eventlog.HeapLive{Bytes: 99}, &eventlog.UserMarker{Text: "here"},
	} {
		if err := w.Write(uint64(i)*1000, 0, ev); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p := mustLoad(t, buf.Bytes())
	if p.HaveCapture || p.RTS == "" || len(p.GCs) != 1 || p.GCs[0] != (GC{0, 1000, 2000}) || len(p.Heap) != 1 || len(p.Markers) != 1 || p.Duration != 5000 {
		t.Errorf("%+v", p)
	}
	if s := p.Select(Filter{}); s.Event != -1 || len(s.Hot(LevelBinding).Rows) != 0 || s.Tree(TreeOptions{}).Nodes[0].Total != 0 {
		t.Error("a log without events has rows")
	}
	p.Select(Filter{}).Timeline(TimelineOptions{Buckets: 7})
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
	p, err := Load(bytes.NewReader(log))
	if err != nil {
		if p != nil {
			t.Fatal("both a profile and an error")
		}
		return
	}
	for e := range p.Events {
		s := p.Select(Filter{}.WithEvent(e))
		for level := range levels {
			for _, r := range s.Hot(level).Rows {
				if r.OnlyWeight > r.ShareWeight || r.ShareWeight > r.InclusiveWeight || r.InclusiveWeight > s.Total {
					t.Fatalf("%v: %+v of %d", level, r, s.Total)
				}
			}
		}
		s.Tree(TreeOptions{})
		s.Tree(TreeOptions{Invert: true, AllFrames: true})
		s.Timeline(TimelineOptions{Buckets: 20})
		s.Summary()
		exact := s.CostCentres(p.Centres(CentreSet{[]CentrePattern{{Level: LevelBinding, HasLevel: true, Glob: "*"}}}), ModeExact)
		sum := uint64(0)
		for i := range exact.Rows {
			sum = satAdd(sum, exact.Rows[i].Individual)
		}
		if sum != s.Total {
			t.Fatalf("cost-centre stacks of %d sum to %d", s.Total, sum)
		}
		s.Costs(s)
		for f := 1; f < min(p.Files(), 8); f++ {
			s.SourceOfFile(FileID(f))
		}
		for b := 1; b < min(p.Bindings(), 8); b++ {
			_, _ = s.SourceOfBinding(BindingID(b))
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
	_, events = split(damagedExactLog())
	f.Add(events)
	f.Fuzz(func(t *testing.T, events []byte) { exercise(t, slices.Concat(header, events)) })
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.eventlog")
	if err := os.WriteFile(path, logtest.NBody().End(), 0o600); err != nil {
		t.Fatal(err)
	}
	var told int64
	p, err := Open(path, func(done, total int64) { told = done })
	if err != nil || p.Samples() != 100 {
		t.Fatal(p, err)
	}
	if st, err := os.Stat(path); err != nil || told != st.Size() {
		t.Errorf("progress ended at %d: %v", told, err)
	}
	if _, err := Open(dir, nil); err == nil {
		t.Error("a directory opens")
	}
	if _, err := Open(filepath.Join(dir, "no"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func generated(b testing.TB, samples, stacks int) []byte {
	b.Helper()
	var buf bytes.Buffer
	if err := logtest.Generate(&buf, samples, stacks, 1); err != nil {
		b.Fatal(err)
	}
	return buf.Bytes()
}

func BenchmarkLoad(b *testing.B) {
	const n = 1_000_000
	log := generated(b, n, 20_000)
	b.ReportAllocs()
	b.SetBytes(int64(len(log)))
	var p *Profile
	begin := cpuTime()
	for b.Loop() {
		p, _ = Load(bytes.NewReader(log))
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds()/1e6, "Msamples/s")
	b.ReportMetric(float64(b.N)*n/(cpuTime()-begin).Seconds()/1e6, "Msamples/cpu-s")
	var m runtime.MemStats
	before := func() uint64 { runtime.GC(); runtime.ReadMemStats(&m); return m.HeapAlloc }
	with := before()
	runtime.KeepAlive(p)
	p = nil
	b.ReportMetric(float64(with-before())/n, "B/sample")
}

func BenchmarkSelectAndHot(b *testing.B) {
	p, err := Load(bytes.NewReader(generated(b, 1_000_000, 20_000)))
	if err != nil {
		b.Fatal(err)
	}
	for _, level := range Levels {
		b.Run(fmt.Sprint(level), func(b *testing.B) {
			for b.Loop() {
				p.Select(Filter{}).Hot(level)
			}
		})
	}
	s := p.Select(Filter{})
	b.Run("select", func(b *testing.B) {
		for b.Loop() {
			p.Select(Filter{})
		}
	})
	b.Run("tree", func(b *testing.B) {
		for b.Loop() {
			s.Tree(TreeOptions{})
		}
	})
	b.Run("inverted", func(b *testing.B) {
		for b.Loop() {
			s.Tree(TreeOptions{Invert: true})
		}
	})
	b.Run("timeline", func(b *testing.B) {
		for b.Loop() {
			s.Timeline(TimelineOptions{Buckets: 120})
		}
	})
}

package columns

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
)

func loaded(t testing.TB, log []byte) *Log {
	t.Helper()
	l, err := Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// A loaded log has the capture, samples, symbols, text, cost and modules that were
// written to it.
func TestLoadKeepsWhatTheLogSays(t *testing.T) {
	p := loaded(t, logtest.NBody().End())
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
		p := loaded(t, whole[:n])
		if p.Accounting.Complete {
			t.Fatalf("cut at %d: complete", n)
		}
		if p.Samples() < last {
			t.Fatalf("cut at %d: %d samples, with less of the log %d", n, p.Samples(), last)
		}
		last = p.Samples()
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

// Load returns the error of its reader.
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

// A log with more events than the limit keeps the samples of the first ones and counts
// the others as dropped.
func TestLoadManyEvents(t *testing.T) {
	l := logtest.New()
	for i := range uint32(600) {
		l.SampleOf(1, eventlog.Sample{Event: i * 1000, Weight: 1})
	}
	p := loaded(t, l.End())
	if len(p.Events) != maxEvents || p.Accounting.Dropped != 600-maxEvents || p.Samples() != maxEvents {
		t.Errorf("%d events, %d dropped, %d samples", len(p.Events), p.Accounting.Dropped, p.Samples())
	}
}

// Bindings whose parents form a circle are their own source bindings; others have the end
// of their chain.
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
	p := loaded(t, l.End())
	for id, want := range map[uint32]uint32{self: self, src: src, w: src, ww: src} {
		if got := p.Binding(BindingID(id)).Source; got != BindingID(want) {
			t.Errorf("source of %d is %d, want %d", id, got, want)
		}
	}
}

// Text chunks that leave a hole or exceed the stated size are refused and counted.
func TestTextWithHoles(t *testing.T) {
	l := logtest.New()
	l.Symbol(&eventlog.File{ID: 1, Path: "A.hs", TextSize: 10})
	l.Symbol(&eventlog.FileText{File: 1, Offset: 0, Text: []byte("abc")})
	l.Symbol(&eventlog.FileText{File: 1, Offset: 4, Text: []byte("efg")})
	l.Symbol(&eventlog.FileText{File: 1, Offset: 3, Text: []byte("defghijkl")})
	p := loaded(t, l.End())
	if f := p.File(1); string(f.Text) != "abc" || !f.Cut || p.Accounting.Redefined != 2 {
		t.Errorf("text %q, cut %v, %d refused", f.Text, f.Cut, p.Accounting.Redefined)
	}
}

// A log written by an RTS, without a capture, is loaded with its labels, collections,
// heap figures and markers.
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
	p := loaded(t, buf.Bytes())
	if p.HaveCapture || p.RTS == "" || len(p.GCs) != 1 || p.GCs[0] != (GC{Cap: 0, Start: 1000, End: 2000, Worked: 1000}) || len(p.Heap) != 1 || len(p.Markers) != 1 || p.Duration != 5000 {
		t.Errorf("%+v", p)
	}
}

// Open reports progress up to the file's size, and refuses a directory and a missing
// file.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.eventlog")
	if err := os.WriteFile(path, logtest.NBody().End(), 0o600); err != nil {
		t.Fatal(err)
	}
	var last int64
	p, err := Open(path, func(done, total int64) { last = done })
	if err != nil || p.Samples() != 100 {
		t.Fatal(p, err)
	}
	if st, err := os.Stat(path); err != nil || last != st.Size() {
		t.Errorf("progress ended at %d: %v", last, err)
	}
	if _, err := Open(dir, nil); err == nil {
		t.Error("a directory opens")
	}
	if _, err := Open(filepath.Join(dir, "no"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

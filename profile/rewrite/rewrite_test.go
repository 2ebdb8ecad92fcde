package rewrite

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/stacks"
)

func input(name string, log []byte) Input {
	return Input{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(log)), nil }}
}

func rewritten(t testing.TB, o Options, ins ...Input) ([]byte, Report) {
	t.Helper()
	var b bytes.Buffer
	report, err := Write(&b, ins, o)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), report
}

func load(t testing.TB, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func generated(t testing.TB, samples int, seed uint64) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := logtest.Generate(&b, samples, 300, seed); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func folded(s *profile.Selection) map[string]uint64 {
	m := make(map[string]uint64)
	stacks.TreeOf(s, stacks.Options{MaxDepth: -1, AllFrames: true}).Folded(func(stack string, w uint64) { m[stack] += w })
	return m
}

func rows(s *profile.Selection, level profile.Level) map[string][4]uint64 {
	m := make(map[string][4]uint64)
	for _, r := range s.Hot(level).Rows {
		m[r.Element.Name] = [4]uint64{r.ShareWeight, r.OnlyWeight, r.InclusiveWeight, r.Samples}
	}
	return m
}

// same holds two selections against each other.
func same(t *testing.T, got, want *profile.Selection) {
	t.Helper()
	if got.Samples != want.Samples || got.Total != want.Total {
		t.Errorf("%d samples of %d, want %d of %d", got.Samples, got.Total, want.Samples, want.Total)
	}
	if !maps.Equal(folded(got), folded(want)) {
		t.Error("stacks differ")
	}
	for _, level := range profile.Levels {
		if !maps.Equal(rows(got, level), rows(want, level)) {
			t.Errorf("%s rows differ:\n%v\n%v", level, rows(got, level), rows(want, level))
		}
	}
}

func undamaged(t *testing.T, p *profile.Profile) {
	t.Helper()
	if a := p.Accounting; a.Malformed+int(a.Undefined.Sum())+int(a.Redefined)+int(a.Dropped) != 0 || !a.Complete {
		t.Errorf("the log is not sound: %+v", a)
	}
}

// Rewriting a log without options keeps all samples, figures and the duration.
func TestWholeLogIsTheSame(t *testing.T) {
	for name, log := range map[string][]byte{"nbody": logtest.NBody().End(), "generated": generated(t, 5000, 1)} {
		t.Run(name, func(t *testing.T) {
			out, report := rewritten(t, Options{}, input(name, log))
			p, orig := load(t, out), load(t, log)
			undamaged(t, p)
			if report.Left != 0 || report.Samples != uint64(orig.Samples()) {
				t.Errorf("report %+v of %d samples", report, orig.Samples())
			}
			same(t, p.Select(profile.Filter{}), orig.Select(profile.Filter{}))
			if p.Duration != orig.Duration || p.Capture.Program != orig.Capture.Program || p.HaveEnd != orig.HaveEnd {
				t.Errorf("duration %d, want %d", p.Duration, orig.Duration)
			}
		})
	}
}

// A range of the whole log and the log cut to it are the same samples.
func TestCutIsTheRange(t *testing.T) {
	log := generated(t, 5000, 1)
	r := profile.Range{From: 1_200_000_000, To: 2_345_678_901}
	out, report := rewritten(t, Options{Range: r}, input("log", log))
	p := load(t, out)
	undamaged(t, p)
	want := load(t, log).Select(profile.Filter{Range: r})
	same(t, p.Select(profile.Filter{}), want)
	same(t, p.Select(profile.Filter{Range: r}), want)
	if report.Samples != want.Samples || p.Duration > r.To || len(out) >= len(log) {
		t.Errorf("%d samples in %d bytes of %d, to %d", report.Samples, len(out), len(log), p.Duration)
	}
}

// A rewritten log has exactly the samples that Keep chooses.
func TestKeepChoosesSamples(t *testing.T) {
	log := generated(t, 3000, 1)
	orig := load(t, log)
	want := orig.Select(profile.Filter{Caps: []uint32{2}})
	in := input("log", log)
	in.Keep = want.Keeps
	out, _ := rewritten(t, Options{}, in)
	same(t, load(t, out).Select(profile.Filter{}), want)
}

// Pieces of a log, merged, are the log.
func TestMergedPiecesAreTheWhole(t *testing.T) {
	log := generated(t, 4000, 5)
	const cut = 1_500_000_000
	first, _ := rewritten(t, Options{Range: profile.Range{To: cut}}, input("log", log))
	second, _ := rewritten(t, Options{Range: profile.Range{From: cut}}, input("log", log))
	out, _ := rewritten(t, Options{}, input("first", first), input("second", second))
	p, orig := load(t, out), load(t, log)
	undamaged(t, p)
	same(t, p.Select(profile.Filter{}), orig.Select(profile.Filter{}))
	if p.Bindings() != orig.Bindings() || p.Spans() != orig.Spans() || p.Files() != orig.Files() || len(p.Modules) != len(orig.Modules) || len(p.Events) != 1 {
		t.Errorf("%d bindings of %d, %d spans of %d, %d files of %d, %d events",
			p.Bindings(), orig.Bindings(), p.Spans(), orig.Spans(), p.Files(), orig.Files(), len(p.Events))
	}
}

// rtsLog is what a run-time system might write of the process that NBody
// profiles, its clock a third of a second ahead of the capture.
func rtsLog(t *testing.T, pid uint32) []byte {
	t.Helper()
	var b bytes.Buffer
	w := eventlog.NewWriter(&b, nil)
	put := func(time uint64, cap int, ev eventlog.Event) {
		if err := w.Write(time, cap, ev); err != nil {
			t.Fatal(err)
		}
	}
	put(0, eventlog.NoCap, &eventlog.RTSIdentifier{Text: "GHC-9.0.2 rts_thr_l"})
	put(0, eventlog.NoCap, &eventlog.OSProcessPID{PID: pid})
	put(1000, eventlog.NoCap, &eventlog.WallClock{Sec: 1_699_999_999, Nsec: 666_668_000})
	put(2000, 0, &eventlog.ThreadLabel{Thread: 1, Label: "main"})
	put(340_000_000, 0, &eventlog.RunThread{Thread: 1})
	put(345_000_000, 0, &eventlog.UserMarker{Text: "phase two"})
	put(350_000_000, 0, &eventlog.StopThread{Thread: 1, Status: eventlog.StoppedYielding})
	put(350_000_000, 0, &eventlog.GCStart{})
	put(361_000_000, 0, &eventlog.GCEnd{})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Markers and labels of the RTS's log stand over our samples.
func TestMergeWithRTSLog(t *testing.T) {
	ours := logtest.NBody().End()
	out, _ := rewritten(t, Options{}, input("ours", ours), input("rts", rtsLog(t, 100)))
	p := load(t, out)
	undamaged(t, p)
	const shift = 333_333_000
	if s, want := p.Select(profile.Filter{}), load(t, ours).Select(profile.Filter{}); s.Total != want.Total {
		t.Errorf("total %d, want %d", s.Total, want.Total)
	}
	if at := p.Sample(0).Time; at != 1_000_000+shift {
		t.Errorf("the first sample is at %d", at)
	}
	if len(p.Markers) != 1 || p.Markers[0].Time != 345_000_000 || p.Threads[0].Label != "main" || len(p.GCs) != 1 {
		t.Errorf("markers %v, threads %v, collections %v", p.Markers, p.Threads, p.GCs)
	}
	if p.Capture.StartUnixNs != 1_700_000_000_000_000_000-shift {
		t.Errorf("the log begins at %d", p.Capture.StartUnixNs)
	}
}

// Logs without a common clock, of different processes or of several RTSs are refused with
// a typed error.
func TestWhatCannotBeMerged(t *testing.T) {
	ours, theirs := input("ours", logtest.NBody().End()), input("rts", rtsLog(t, 100))
	var noClock bytes.Buffer
	w := eventlog.NewWriter(&noClock, nil)
	if err := errors.Join(w.Write(1, 0, &eventlog.RunThread{Thread: 1}), w.Close()); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		ins  []Input
		want error
	}{
		{[]Input{theirs, theirs}, ErrTwoRTS},
		{[]Input{ours, input("other", rtsLog(t, 101))}, ErrOtherPID},
		{[]Input{ours, input("no clock", noClock.Bytes())}, ErrNoClock},
	} {
		if _, err := Write(io.Discard, x.ins, Options{}); !errors.Is(err, x.want) {
			t.Errorf("%v, want %v", err, x.want)
		}
	}
	var header *eventlog.HeaderError
	if _, err := Write(io.Discard, []Input{input("none", []byte("no log"))}, Options{}); !errors.As(err, &header) {
		t.Errorf("%v, want a header error", err)
	}
}

// Of two logs that declare an event type with different sizes, the second's events of it are
// left out and counted.
func TestMergeOfOtherDeclarations(t *testing.T) {
	theirs := rtsLog(t, 100)
	var own bytes.Buffer
	types := eventlog.Types()
	for i := range types {
		if types[i].ID == eventlog.IDUserMarker {
			types[i].Size = 4
		}
	}
	w := eventlog.NewWriter(&own, &eventlog.WriterOptions{Types: types})
	r := eventlog.NewReader(bytes.NewReader(theirs))
	for r.Next() {
		rec, err := r.Record(), error(nil)
		switch rec.Event.(type) {
		case *eventlog.BlockMarker:
		case *eventlog.UserMarker:
			err = w.WriteRaw(rec.Time, rec.Cap, eventlog.IDUserMarker, []byte("four"))
		default:
			err = w.Write(rec.Time, rec.Cap, rec.Event)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out, report := rewritten(t, Options{}, input("ours", logtest.NBody().End()), input("rts", own.Bytes()))
	p := load(t, out)
	undamaged(t, p)
	if report.Left != 1 || len(p.Markers) != 0 || len(p.GCs) != 1 {
		t.Errorf("left %d, %d markers, %d collections", report.Left, len(p.Markers), len(p.GCs))
	}
}

// A cut repeats what was under way when it begins.
func TestCutRepeatsState(t *testing.T) {
	out, _ := rewritten(t, Options{Range: profile.Range{From: 344_000_000, To: 355_000_000}}, input("rts", rtsLog(t, 100)))
	var got []string
	r := eventlog.NewReader(bytes.NewReader(out))
	for r.Next() {
		switch rec := r.Record(); rec.Event.(type) {
		case *eventlog.RunThread:
			got = append(got, "run")
			if rec.Time != 344_000_000 || rec.Cap != 0 {
				t.Errorf("runs at %d on %d", rec.Time, rec.Cap)
			}
		case *eventlog.StopThread:
			got = append(got, "stop")
		case *eventlog.GCStart:
			got = append(got, "gc")
		case *eventlog.GCEnd:
			got = append(got, "gc end")
		case *eventlog.UserMarker:
			got = append(got, "marker")
		}
	}
	if want := []string{"run", "marker", "stop", "gc"}; !equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	out, _ = rewritten(t, Options{Range: profile.Range{From: 355_000_000}}, input("rts", rtsLog(t, 100)))
	if p := load(t, out); len(p.GCs) != 1 || p.GCs[0].Start != 355_000_000 {
		t.Errorf("collections %v", p.GCs)
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Damage is left out, and what refers to nothing still does.
func TestDamagedLog(t *testing.T) {
	log := generated(t, 2000, 9)
	for i := 3000; i < len(log); i += 9973 {
		log[i] ^= 0x55
	}
	out, report := rewritten(t, Options{}, input("log", log))
	p, orig := load(t, out), load(t, log)
	if p.Accounting.Malformed != 0 || report.Left == 0 {
		t.Errorf("%d damaged stretches, left %d", p.Accounting.Malformed, report.Left)
	}
	if s, want := p.Select(profile.Filter{}), orig.Select(profile.Filter{}); s.Total != want.Total || !maps.Equal(folded(s), folded(want)) {
		t.Errorf("total %d, want %d", s.Total, want.Total)
	}
}

// Rewriting any bytes fails or yields a complete log without damage.
func FuzzWrite(f *testing.F) {
	f.Add(logtest.NBody().End(), uint64(20_000_000))
	f.Add(exactLog(1, 1, 2, 3), uint64(0))
	f.Fuzz(func(t *testing.T, log []byte, from uint64) {
		var b bytes.Buffer
		if _, err := Write(&b, []Input{input("log", log)}, Options{Range: profile.Range{From: from}}); err != nil {
			return
		}
		r := eventlog.NewReader(bytes.NewReader(b.Bytes()))
		for r.Next() {
			if m, bad := r.Record().Event.(*eventlog.Malformed); bad {
				t.Fatal(m)
			}
		}
		if r.Err() != nil || !r.Complete() {
			t.Fatalf("what was written is no whole log: %v", r.Err())
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	log := generated(b, 500_000, 1)
	b.SetBytes(int64(len(log)))
	for b.Loop() {
		if _, err := Write(io.Discard, []Input{input("log", log)}, Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

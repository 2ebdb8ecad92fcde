package text_test

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"ccagent/ui/printer"
	diffscreen "ccagent/ui/screen/diff"
	"ccagent/ui/screen/flame"
	heapscreen "ccagent/ui/screen/heap"
	"ccagent/ui/screen/hot"
	sourcescreen "ccagent/ui/screen/source"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/diff"
	"ccagent/profile/logtest"
	"ccagent/profile/source"
	"ccagent/profile/stacks"
	"ccagent/profile/timeline"
	"ccagent/ui/safe"
	"ccagent/ui/text"
)

// hostileHeap is an RTS's log whose bands, cost centres and markers attack who
// looks at them, in names of 10 000 characters too.
func hostileHeap() *logtest.Log {
	l := logtest.New()
	long := strings.Repeat("\x1b[31mband\u202e", 900)
	l.Write(1, &eventlog.HeapProfBegin{Breakdown: eventlog.BreakdownClosureType, Module: nasty})
	for i := range uint64(4) {
		at := i * 1e6
		l.Write(at, &eventlog.HeapSampleBegin{Era: i})
		for _, name := range []string{nasty, long, "", "\x00"} {
			l.Write(at, &eventlog.HeapSampleString{Bytes: 1 << (10 + i), Label: name})
		}
		l.Write(at, &eventlog.HeapSampleEnd{Era: i})
		l.Write(at, &eventlog.HeapLive{Bytes: ^uint64(0) >> i})
		l.Write(at, &eventlog.UserMarker{Text: nasty + long})
	}
	return l
}

// What the new screens' twins print is safe, fits, and is one document as JSON.
func TestHostileHeapAndDiff(t *testing.T) {
	heap, samples := load(t, hostileHeap().End()), load(t, hostile().End())
	run := diff.Measure(nasty, samples.Select(profile.Filter{}), profile.LevelBinding)
	empty := diff.Measure("none", samples.Select(profile.Filter{Threads: []uint64{99}}), profile.LevelBinding)
	single, err := diff.Compare([]*diff.Run{run}, []*diff.Run{empty}, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	several, err := diff.Compare([]*diff.Run{run, run, run, run}, []*diff.Run{empty, run, run, empty}, diff.Options{Normalise: diff.Share})
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{0, 40, 80, 120} {
		o := printer.Options{File: nasty, Width: width}
		for name, print := range map[string]func(io.Writer) error{
			"heap":         func(w io.Writer) error { return heapscreen.Report{Profile: heap}.Text(w, o) },
			"gc":           func(w io.Writer) error { return heapscreen.GCReport{Profile: heap}.Text(w, o) },
			"diff-single":  func(w io.Writer) error { return diffscreen.Report{Result: single, All: true}.Text(w, o) },
			"diff-several": func(w io.Writer) error { return diffscreen.Report{Result: several, All: true}.Text(w, o) },
			"heap.json":    func(w io.Writer) error { return heapscreen.Report{Profile: heap}.JSON(w, o) },
			"gc.json":      func(w io.Writer) error { return heapscreen.GCReport{Profile: heap}.JSON(w, printer.Options{}) },
			"diff.json":    func(w io.Writer) error { return diffscreen.Report{Result: several}.JSON(w, o) },
		} {
			var b bytes.Buffer
			if err := print(&b); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, ".json") && !json.Valid(b.Bytes()) {
				t.Errorf("%s is no JSON", name)
			}
			for _, r := range b.String() {
				if r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e) {
					t.Fatalf("%s at width %d has %U:\n%q", name, width, r, b.String())
				}
			}
			if width < 80 || strings.HasSuffix(name, ".json") {
				continue
			}
			for line := range strings.Lines(b.String()) {
				if w := safe.Width(strings.TrimRight(line, "\n")); w > width {
					t.Errorf("%s: %d columns in a terminal of %d: %q", name, w, width, line)
				}
			}
		}
	}
}

// Nothing that a selection or a log lacks is an error: each view says what it is.
func TestNothingSelected(t *testing.T) {
	p := load(t, logtest.NBody().End())
	s := p.Select(profile.Filter{Threads: []uint64{99}})
	var b bytes.Buffer
	for _, print := range []func() error{
		func() error {
			return hot.Report{Selection: s, Level: profile.LevelBinding}.Text(&b, printer.Options{File: "x"})
		},
		func() error {
			return text.OverTime{Selection: s, Timeline: timeline.Of(s, timeline.Options{Buckets: 10})}.Text(&b, printer.Options{File: "x"})
		},
		func() error {
			return flame.Report{Selection: s, Tree: stacks.TreeOf(s, stacks.Options{})}.Text(&b, printer.Options{File: "x"})
		},
	} {
		b.Reset()
		if err := print(); err != nil || !strings.Contains(b.String(), "No sample of this event is in the selection.") {
			t.Errorf("%v\n%s", err, b.String())
		}
	}
	// No event at all, and an event without samples.
	none := load(t, logtest.New().End())
	b.Reset()
	if err := (hot.Report{Selection: none.Select(profile.Filter{}), Level: profile.LevelBinding}).Text(&b, printer.Options{File: "x"}); err != nil || !strings.Contains(b.String(), "No sample") {
		t.Errorf("%v\n%s", err, b.String())
	}
}

// A source that is missing, or newer than the binary, is shown for what it is,
// with what there is: spans and costs.
func TestBadSources(t *testing.T) {
	for problem, want := range map[string]string{
		"the file was not found when the log was symbolised": "not found",
		"newer than the binary":                              "newer than the binary",
	} {
		l := logtest.New()
		src := ""
		if problem == "newer than the binary" {
			src = "module A where\nf = 1\n"
		}
		l.Symbol(&eventlog.File{ID: 1, Path: "A.hs", Problem: problem, TextSize: uint64(len(src))})
		if src != "" {
			l.Symbol(&eventlog.FileText{File: 1, Text: []byte(src)})
		}
		b := l.Binding("main", "A", "f", 0)
		l.Sample(5, 10, l.Stack(l.Block(b, l.Span(1, 2, 1, 2, 6, b))))
		p := load(t, l.End())
		s := p.Select(profile.Filter{})
		v, err := source.Find(s, "A.f")
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := (sourcescreen.Report{Selection: s, View: v}).Text(&out, printer.Options{File: "x"}); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "100") {
			t.Errorf("%s:\n%s", problem, out.String())
		}
	}
}

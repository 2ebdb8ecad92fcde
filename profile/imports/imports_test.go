package imports

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"ccagent/eventlog"

	pprof "github.com/google/pprof/profile"
)

const script = `# a comment
perf comm with spaces 4711/4712 [001] 12.000001: 1000 cpu-clock:u: 
	  401000 Main.go+0x1f (/bin/p)
	  401100 inner (inlined)
	  401100 outer+0x2 (/bin/p)
	ffffffff81000000 [unknown] ([kernel.kallsyms])

p 99 12.000002: cycles: 
	           0 [GC] ([unknown])
	    7f0000 [unknown] (/lib/x (deleted).so)

short 5 [000] 13.5: 7 cpu-clock:u:  55aa f (/bin/p)
`

// text returns the events that an import writes, except those that every import writes.
func text(t *testing.T, in string) (Summary, []string) {
	t.Helper()
	f, r, err := Open(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	sum, err := Write(&log, f, r)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	nodes := map[uint32]eventlog.Node{}
	bindings := map[uint32]string{}
	places := map[uint64]string{}
	var samples []eventlog.Sample
	var times []uint64
	for rd := eventlog.NewReader(&log); rd.Next(); {
		switch ev := rd.Record().Event.(type) {
		case *eventlog.Malformed:
			t.Fatal(ev)
		case *eventlog.Nodes:
			nodes[ev.First] = ev.Nodes[0]
		case *eventlog.Binding:
			bindings[ev.ID] = strings.TrimPrefix(ev.Module+"."+ev.Name, ".")
		case *eventlog.Locations:
			l := ev.Locations[0]
			places[l.Addr] = fmt.Sprintf("%s(%s)", bindings[l.Binding], l.Category)
		case *eventlog.Sample:
			samples = append(samples, *ev)
			times = append(times, rd.Record().Time)
		case *eventlog.EventDef:
			lines = append(lines, fmt.Sprintf("event %d %s %s", ev.Index, ev.Requested, ev.Unit))
		}
	}
	for i, s := range samples {
		line := fmt.Sprintf("%d: %d×%d pid %d tid %d cpu %d:", times[i], s.Event, s.Weight, s.PID, s.TID, s.CPU)
		for n := s.Node; n != 0; n = nodes[n].Parent {
			line += " " + places[nodes[n].Addr]
		}
		lines = append(lines, line)
	}
	return sum, lines
}

// Perf script's text becomes events, samples and stacks: with and without threads, CPUs and
// periods, with inlined, kernel and unknown frames, and with the frame on the header's line.
func TestScript(t *testing.T) {
	sum, got := text(t, script)
	want := []string{
		"event 0 cpu-clock:u ns", "event 1 cycles cycles",
		"0: 0×1000 pid 4711 tid 4712 cpu 1: Main.go(haskell) outer(foreign) (kernel)",
		"1000: 1×1 pid 99 tid 99 cpu 0: (gc) /lib/x (deleted).so+0x7f0000(unresolved)",
		"1499999000: 0×7 pid 5 tid 5 cpu 0: f(foreign)",
	}
	// The expectations omit the name of a frame that is only a category, and of a kernel
	// frame without symbol.
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], "[GC](gc)", "(gc)")
		got[i] = strings.ReplaceAll(got[i], "[unknown](kernel)", "(kernel)")
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if sum.Samples != 3 || sum.Passed != 0 || sum.Duration != 1_499_999_000 {
		t.Errorf("%+v", sum)
	}
}

// Source lines, as -F +srcline adds them, distinguish lines of one function.
func TestScriptWithSourceLines(t *testing.T) {
	in := "p 1 1.0: c: \n\t 12 f+0x1 (x)\n  a.c:7\n\t 13 g (x)\n  x[13]\n\np 1 1.0: c: \n\t 12 f+0x2 (x)\n  a.c:8\n\t 13 g (x)\n  x[13]\n"
	sum, _ := text(t, in)
	var log bytes.Buffer
	if _, err := Write(&log, PerfScript, strings.NewReader(in)); err != nil || sum.Passed > 0 {
		t.Fatal(err, sum)
	}
	var spans []string
	for rd := eventlog.NewReader(&log); rd.Next(); {
		if s, ok := rd.Record().Event.(*eventlog.Span); ok {
			spans = append(spans, fmt.Sprintf("%d:%d", s.File, s.Line))
		}
	}
	if got := strings.Join(spans, " "); got != "0:0 1:7 1:8" {
		t.Errorf("spans %s", got)
	}
}

// Lines that cannot be parsed are skipped and counted; a line that is too long ends the
// import.
func TestScriptPassesOverNonsense(t *testing.T) {
	sum, got := text(t, "p 1 1.0: c: \n\tzzz not a frame\n\t 12 f (x)\nnot a header\n\t 12 orphan (x)\n\np 1 2.0: c: \n")
	if sum.Passed != 3 || sum.First != 2 || sum.Samples != 2 || !strings.HasSuffix(got[1], "f(foreign)") {
		t.Errorf("%+v, %q", sum, got)
	}
	f, r, _ := Open(strings.NewReader("p 1 1.0: c: \n\t 1 " + strings.Repeat("x", maxLine) + "\n"))
	if _, err := Write(io.Discard, f, r); f != PerfScript || !errors.Is(err, ErrTooLarge) {
		t.Errorf("a line beyond the bound: %v", err)
	}
}

func testPProf() *pprof.Profile {
	fn := func(id uint64, name string) *pprof.Function {
		return &pprof.Function{ID: id, Name: name, SystemName: name + "_sym", Filename: "A.hs"}
	}
	f, g, h, gc := fn(1, "Main.f"), fn(2, "Main.g"), fn(3, "h"), fn(4, "(GC)")
	a := &pprof.Location{ID: 1, Address: 1, Line: []pprof.Line{{Function: f, Line: 3}, {Function: g, Line: 9}}}
	b := &pprof.Location{ID: 2, Address: 2, Line: []pprof.Line{{Function: h}}}
	c := &pprof.Location{ID: 3, Address: 3, Line: []pprof.Line{{Function: gc}}}
	return &pprof.Profile{
		SampleType:    []*pprof.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}, {Type: "alloc", Unit: "bytes"}},
		DurationNanos: 5e9, DefaultSampleType: "cpu",
		Sample: []*pprof.Sample{
			{Location: []*pprof.Location{a, b}, Value: []int64{3, 10, 0}, Label: map[string][]string{"thread": {"main"}, "capability": {"1"}, "cpu": {"2"}}, NumLabel: map[string][]int64{"pid": {77}}},
			{Location: []*pprof.Location{c}, Value: []int64{5, 4, 6}},
			{Location: []*pprof.Location{b}, Value: []int64{1, -4, 0}},
		},
		Location: []*pprof.Location{a, b, c}, Function: []*pprof.Function{f, g, h, gc},
	}
}

// A pprof profile becomes the same log gzipped or not: rows are split into as many samples
// as they count, and labels become processes, threads and CPUs.
func TestPProf(t *testing.T) {
	var raw, zipped bytes.Buffer
	if err := testPProf().WriteUncompressed(&raw); err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(&zipped)
	z.Write(raw.Bytes())
	z.Close()
	want := []string{
		"event 0 cpu ns", "event 1 alloc bytes",
		"0: 0×4 pid 77 tid 1 cpu 2: Main.g(haskell) h(foreign)", "0: 0×3 pid 77 tid 1 cpu 2: Main.g(haskell) h(foreign)", "0: 0×3 pid 77 tid 1 cpu 2: Main.g(haskell) h(foreign)",
		"0: 0×4 pid 0 tid 0 cpu 0: (GC)(gc)", "0: 1×6 pid 0 tid 0 cpu 0: (GC)(gc)",
	}
	for _, in := range []string{raw.String(), zipped.String()} {
		sum, got := text(t, in)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if sum.Format != PProf || sum.Duration != 5e9 {
			t.Errorf("%+v", sum)
		}
	}
}

// Open detects a file's format from its first bytes; an unknown file counts as an eventlog.
func TestSniff(t *testing.T) {
	for in, want := range map[string]Format{
		"": Eventlog, "hdrbhetb": Eventlog, "xxxxhetb": Eventlog, "hello": Eventlog, "\x7fELF": Eventlog, "a b c\n": Eventlog,
		script: PerfScript, "\n# x\n" + script: PerfScript, "\x0a\x04\x08\x01\x10\x02": PProf,
	} {
		if got := sniff([]byte(in)); got != want {
			t.Errorf("%.20q: %s, want %s", in, got, want)
		}
	}
}

// Names are split after a Haskell module name; other names with dots are not split.
func TestQualified(t *testing.T) {
	for in, want := range map[string]string{
		"Main.f": "Main|f", "Data.Map.insert": "Data.Map|insert", "GHC.Base.++": "GHC.Base|++", "GHC.Base..": "GHC.Base|.", "runtime.mallocgc": "|runtime.mallocgc",
		"f": "|f", "Just": "|Just", "A.": "|A.", "std::vector<A.b>": "|std::vector<A.b>",
	} {
		m, n := qualified(in)
		if m+"|"+n != want {
			t.Errorf("%s: %s|%s, want %s", in, m, n, want)
		}
	}
}

// Any bytes read as a pprof profile are refused or become a log without damage.
func FuzzPProf(f *testing.F) {
	var b bytes.Buffer
	if err := testPProf().WriteUncompressed(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte{0x0a, 4, 8, 1, 16, 2})
	f.Fuzz(func(t *testing.T, in []byte) { sound(t, PProf, in) })
}

// Any text read as perf script output is refused or becomes a log without damage.
func FuzzScript(f *testing.F) {
	f.Add([]byte(script))
	f.Add([]byte("p 1 1.0: c:  1 f (x)"))
	f.Fuzz(func(t *testing.T, in []byte) { sound(t, PerfScript, in) })
}

// sound imports any input and checks that the result is an error or an undamaged log whose
// samples refer only to defined ids.
func sound(t *testing.T, f Format, in []byte) {
	var log bytes.Buffer
	sum, err := Write(&log, f, bytes.NewReader(in))
	if err != nil {
		return
	}
	nodes, events, samples := uint32(0), map[uint32]bool{}, uint64(0)
	rd := eventlog.NewReader(&log)
	for rd.Next() {
		switch ev := rd.Record().Event.(type) {
		case *eventlog.Malformed:
			t.Fatal(ev)
		case *eventlog.Nodes:
			if nodes++; ev.First != nodes || ev.Nodes[0].Parent >= nodes {
				t.Fatalf("node %d after %d: %+v", ev.First, nodes-1, ev.Nodes)
			}
		case *eventlog.EventDef:
			events[ev.Index] = true
		case *eventlog.Sample:
			if samples++; ev.Node > nodes || !events[ev.Event] || ev.Weight == 0 && f == PProf {
				t.Fatalf("%+v", ev)
			}
		}
	}
	if rd.Err() != nil || !rd.Complete() || samples != sum.Samples {
		t.Fatalf("%v, complete %t, %d of %d samples", rd.Err(), rd.Complete(), samples, sum.Samples)
	}
}

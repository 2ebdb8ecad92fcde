package export

import (
	"bytes"
	"io"
	"regexp"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// twoEvents returns a log with time and allocation events, in two processes, with threads
// of all kinds.
func twoEvents() []byte {
	l := logtest.NBody()
	l.Write(0, &eventlog.EventDef{Index: 1, Requested: "alloc", Granted: "alloc", Unit: "bytes", RateMode: eventlog.RatePeriod, Rate: 1 << 20})
	l.Write(0, &eventlog.ThreadLabel{Thread: 1, Label: "main; worker"})
	l.Write(0, &eventlog.Process{Change: eventlog.ProcessSeen, PID: 100, Comm: "a b", Path: "/home/u/nbody"})
	l.Write(0, &eventlog.Mapping{PID: 100, Module: logtest.Module, Start: 0x555500000000, End: 0x555501000000, Bias: 0x555500000000})
	file := l.File("src/Alloc.hs", "")
	build := l.Binding("main", "Alloc", "build;all", 0)
	span := l.Span(file, 3, 1, 3, 9, build)
	in := l.Block(build, span)
	allocate := l.Code(l.Function("allocateMightFail", eventlog.CategoryRTS), eventlog.QualityExact, eventlog.CategoryRTS)
	for i := range uint64(30) {
		l.SampleOf(i*3_000_000, eventlog.Sample{Event: 1, Weight: 1<<20 + i, TSO: i % 3, Node: l.Stack(in, in, allocate), Capability: uint32(i % 2)})
	}
	l.SampleOf(50_000_000, eventlog.Sample{Event: 0, Weight: 12345, TSO: 7, Node: l.Stack(in, allocate), Capability: eventlog.NoCapability})
	return l.End()
}

func generated(t testing.TB, n, stacks int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := logtest.Generate(&b, n, stacks, 3); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func load(t testing.TB, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func both(p *profile.Profile, f profile.Filter) []*profile.Selection {
	var ss []*profile.Selection
	for i := range p.Events {
		ss = append(ss, p.Select(f.WithEvent(i)))
	}
	return ss
}

// cases returns selections that every format must export without losing weight.
func cases(t testing.TB) map[string][]*profile.Selection {
	p := load(t, twoEvents())
	return map[string][]*profile.Selection{
		"whole":      both(p, profile.Filter{}),
		"range":      both(p, profile.Filter{Range: profile.Range{From: 20_000_000, To: 61_000_000}}),
		"focus":      both(p, profile.Filter{Focus: []*regexp.Regexp{regexp.MustCompile("pairwise")}})[:1],
		"hide":       both(p, profile.Filter{Hide: []*regexp.Regexp{regexp.MustCompile("pairwise|Alloc")}}),
		"hide all":   both(p, profile.Filter{Hide: []*regexp.Regexp{regexp.MustCompile(".")}}),
		"thread":     both(p, profile.Filter{Threads: []uint64{1}}),
		"generated":  both(load(t, generated(t, 3000, 400)), profile.Filter{}),
		"unresolved": both(load(t, logtest.NBody().EndAbruptly(false)), profile.Filter{}),
	}
}

func write(t testing.TB, f func(io.Writer, []*profile.Selection, Options) error, ss []*profile.Selection, o Options) []byte {
	t.Helper()
	var b bytes.Buffer
	o.Program = "ccview test"
	if err := f(&b, ss, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func each(t *testing.T, f func(t *testing.T, ss []*profile.Selection)) {
	for name, ss := range cases(t) {
		t.Run(name, func(t *testing.T) { f(t, ss) })
	}
}

// Two exports of the same selections are equal byte for byte.
func TestFormatsAreDeterministic(t *testing.T) {
	ss := both(load(t, twoEvents()), profile.Filter{})
	for _, f := range Formats {
		a, b := write(t, f.Write, ss, Options{}), write(t, f.Write, ss, Options{})
		if !bytes.Equal(a, b) {
			t.Errorf("%s: two exports differ", f.Name)
		}
	}
}

func BenchmarkExport(b *testing.B) {
	ss := both(load(b, generated(b, 200_000, 5000)), profile.Filter{})
	for _, f := range Formats {
		b.Run(f.Name, func(b *testing.B) {
			for b.Loop() {
				if err := f.Write(io.Discard, ss, Options{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*200_000/b.Elapsed().Seconds(), "samples/s")
		})
	}
}

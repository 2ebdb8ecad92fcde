package compat

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
	"ccagent/profile/rewrite"
	"ccagent/profile/stacks"
)

// log is NBody with allocation, a stack deeper than 255 frames, and names that
// are not plain.
func log() []byte {
	l := logtest.NBody()
	l.Write(0, &eventlog.CapsetCreate{Type: eventlog.CapsetOSProcess})
	l.Write(0, &eventlog.ProgramArgs{Args: []string{"./nbody", "1000"}})
	l.Write(0, &eventlog.EventDef{Index: 1, Requested: "alloc", Granted: "alloc", Unit: "bytes", RateMode: eventlog.RatePeriod, Rate: 1 << 20})
	file := l.File("src/Deep.hs", "")
	var deep []logtest.Frame
	for i := range 300 {
		b := l.Binding("main", "Deep", fmt.Sprintf("f%dλ", i), 0)
		deep = append(deep, l.Block(b, l.Span(file, uint32(i+1), 1, uint32(i+1), 9, b)))
	}
	node := l.Stack(deep...)
	for i := range uint64(40) {
		l.SampleOf(100_000_000+i*1_003_009, eventlog.Sample{Weight: 1_000_000, TSO: 9, Node: node, Capability: uint32(i / 20)})
		l.SampleOf(100_000_000+i*1_003_009, eventlog.Sample{Event: 1, Weight: 1<<20 + i, TSO: 9, Node: l.Stack(deep[:3+i%2]...), Capability: uint32(i / 20)})
	}
	return l.End()
}

func selections(t testing.TB, log []byte) []*profile.Selection {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	var ss []*profile.Selection
	for i := range p.Events {
		ss = append(ss, p.Select(profile.Filter{}.WithEvent(i)))
	}
	return ss
}

// derived gives a log with what a tool looks for, and its events by time.
func derived(t testing.TB, tool string, log []byte) ([]byte, []timed) {
	t.Helper()
	before, err := Events(tool, selections(t, log))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	in := rewrite.Input{Name: "log", Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(log)), nil }}
	if _, err := rewrite.Write(&b, []rewrite.Input{in}, rewrite.Options{Add: before}); err != nil {
		t.Fatal(err)
	}
	var evs []timed
	r := eventlog.NewReader(bytes.NewReader(b.Bytes()))
	for r.Next() {
		rec := r.Record()
		if m, bad := rec.Event.(*eventlog.Malformed); bad {
			t.Fatal(m)
		}
		evs = append(evs, timed{rec.Time, rec.Cap, clone(rec.Event)})
	}
	return b.Bytes(), evs
}

type timed struct {
	time uint64
	cap  int
	ev   eventlog.Event
}

// clone keeps what a reader would overwrite.
func clone(ev eventlog.Event) eventlog.Event {
	switch e := ev.(type) {
	case *eventlog.CostCentre:
		c := *e
		return &c
	case *eventlog.ProfBegin:
		c := *e
		return &c
	case *eventlog.ProfSample:
		c := *e
		c.Stack = slices.Clone(e.Stack)
		return &c
	case *eventlog.UserBinaryMsg:
		return &eventlog.UserBinaryMsg{Data: bytes.Clone(e.Data)}
	case *eventlog.RunThread:
		c := *e
		return &c
	case *eventlog.StopThread:
		c := *e
		return &c
	case *eventlog.GCStart:
		return &eventlog.GCStart{}
	case *eventlog.GCEnd:
		return &eventlog.GCEnd{}
	case *eventlog.HeapProfBegin:
		c := *e
		return &c
	case *eventlog.HeapSampleBegin:
		c := *e
		return &c
	case *eventlog.HeapSampleString:
		c := *e
		return &c
	case *eventlog.HeapAllocated:
		c := *e
		return &c
	}
	return nil
}

func byTime(evs []timed) []timed {
	evs = slices.Clone(evs)
	slices.SortStableFunc(evs, func(a, b timed) int {
		switch {
		case a.time < b.time:
			return -1
		case a.time > b.time:
			return 1
		}
		return 0
	})
	return evs
}

// The result is the log it was, for ccview.
func TestOwnEventsStay(t *testing.T) {
	orig := log()
	want := selections(t, orig)
	for _, tool := range Names() {
		out, _ := derived(t, tool, orig)
		for i, s := range selections(t, out) {
			if s.Total != want[i].Total || s.Samples != want[i].Samples || len(s.Profile.Events) != len(want[i].Profile.Events) {
				t.Errorf("%s: %d samples of %d, want %d of %d", tool, s.Samples, s.Total, want[i].Samples, want[i].Total)
			}
		}
	}
}

// What hs-speedscope makes of it, by its rules (see the package's doc).
func TestHsSpeedscope(t *testing.T) {
	_, evs := derived(t, "hs-speedscope", log())
	var defs []*eventlog.CostCentre
	stacks := make(map[string]int)
	interval := uint64(0)
	var samples [][]uint32
	for _, e := range byTime(evs) {
		switch ev := e.ev.(type) {
		case *eventlog.ProfBegin:
			interval = ev.TickNs
		case *eventlog.CostCentre:
			defs = append(defs, ev)
		case *eventlog.ProfSample:
			samples = append(samples, ev.Stack)
		}
	}
	if len(defs) < 8 {
		t.Fatalf("%d definitions", len(defs))
	}
	frames := slices.Clone(defs[7:])
	slices.Reverse(frames)
	for i, d := range defs {
		if want := uint32(len(defs) - i); d.Centre != want {
			t.Fatalf("definition %d has id %d, want %d", i, d.Centre, want)
		}
	}
	for _, st := range samples {
		if len(st) == 1 && int(st[0]) >= len(frames) {
			t.Errorf("sample %v would be dropped", st)
		}
		var names []string
		for _, id := range slices.Backward(st) {
			if id < 1 || int(id) > len(frames) {
				t.Fatalf("id %d of %d frames", id, len(frames))
			}
			names = append(names, frames[id-1].Label)
		}
		stacks[strings.Join(names, ";")]++
	}
	if stacks["Main.main;Physics.step"] != 20 || stacks["evacuate"] != 10 || len(samples) != 140 || interval != 1_000_000 {
		t.Errorf("%d samples every %d ns: %v", len(samples), interval, stacks)
	}
	for st, n := range stacks {
		if strings.HasPrefix(st, "… deeper frames;Deep.f46λ;") && n == 40 {
			return
		}
	}
	t.Error("the deepest stacks do not say that they are cut")
}

// gspSample is a stack as ghc-stack-profiler's reader decodes it.
type gspSample struct {
	cap, thread uint32
	names       []string // root first
}

func decodeGSP(t *testing.T, evs []timed) (all []gspSample) {
	t.Helper()
	text := make(map[uint64]string)
	source := make(map[uint64]string)
	var part []string
	for _, e := range evs {
		msg, ok := e.ev.(*eventlog.UserBinaryMsg)
		if !ok {
			continue
		}
		b := msg.Data
		u16 := func() (n uint16) { n, b = binary.BigEndian.Uint16(b), b[2:]; return }
		u32 := func() (n uint32) { n, b = binary.BigEndian.Uint32(b), b[4:]; return }
		u64 := func() (n uint64) { n, b = binary.BigEndian.Uint64(b), b[8:]; return }
		switch tag := u16(); tag {
		case 0xffcc:
			id, n := u64(), u16()
			if int(n) != len(b) {
				t.Fatalf("string of %d bytes in %d", n, len(b))
			}
			text[id] = string(b)
		case 0xffcd:
			id, row, _, file := u64(), u32(), u32(), u64()
			if _, ok := text[file]; !ok || len(b) != 0 {
				t.Fatal("source location of an unknown file")
			}
			source[id] = fmt.Sprintf("%s:%d", text[file], row)
		case 0xffca, 0xffcb:
			s := gspSample{cap: u32(), thread: u32()}
			for range u16() {
				kind := b[0]
				b = b[1:]
				name, ok := text[u64()]
				if kind == 3 {
					_, known := source[u64()]
					ok = ok && known
				}
				if !ok || kind != 2 && kind != 3 {
					t.Fatalf("entry of kind %d refers to nothing", kind)
				}
				part = append(part, name)
			}
			if len(b) != 0 {
				t.Fatalf("%d bytes after the stack", len(b))
			}
			if tag == 0xffca {
				s.names, part = part, nil
				all = append(all, s)
			}
		default:
			t.Fatalf("tag %x", tag)
		}
	}
	return all
}

// The derived messages of ghc-stack-profiler decode to every sample's whole stack with
// its thread and capability.
func TestStackProfiler(t *testing.T) {
	_, evs := derived(t, "ghc-stack-profiler", log())
	all := decodeGSP(t, evs)
	if len(all) != 140 {
		t.Fatalf("%d samples", len(all))
	}
	deepest := all[len(all)-1]
	if deepest.thread != 9 || deepest.cap != 1 || len(deepest.names) != 300 || deepest.names[0] != "Deep.f0λ" || deepest.names[299] != "Deep.f299λ" {
		t.Errorf("thread %d of capability %d: %d frames from %s", deepest.thread, deepest.cap, len(deepest.names), deepest.names[0])
	}
}

// A stack that does not fit a message comes in parts.
func TestStackProfilerParts(t *testing.T) {
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, nil)
	m := &messages{w: w, strings: make(map[string]uint64), frames: make(map[*profile.Frame][]byte)}
	f := &profile.Frame{Name: "f", File: "F.hs", Line: 3}
	stack := slices.Repeat([]stacks.Frame{{Frame: f}, {Frame: &profile.Frame{Name: "g"}}}, 6000)
	entries, err := m.entries(stack)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.stack(columns.Sample{Thread: columns.ThreadKey{TSO: 4}}, entries); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var evs []timed
	for r := eventlog.NewReader(&log); r.Next(); {
		evs = append(evs, timed{ev: clone(r.Record().Event)})
	}
	all := decodeGSP(t, evs)
	if len(all) != 1 || len(all[0].names) != 12000 || all[0].names[0] != "g" || all[0].names[11999] != "f" {
		t.Errorf("%d samples", len(all))
	}
}

// Bars on a capability neither nest nor overlap, and hold all its samples.
func TestThreadScope(t *testing.T) {
	_, evs := derived(t, "threadscope", log())
	open := make(map[int]eventlog.Event)
	busy := make(map[string]uint64)
	begun := make(map[int]uint64)
	caps := make(map[int]bool)
	for _, e := range byTime(evs) {
		switch ev := e.ev.(type) {
		case *eventlog.RunThread, *eventlog.GCStart:
			if open[e.cap] != nil || e.cap == eventlog.NoCap {
				t.Fatalf("%T on capability %d while %T", ev, e.cap, open[e.cap])
			}
			open[e.cap], begun[e.cap], caps[e.cap] = ev, e.time, true
		case *eventlog.StopThread:
			run, ok := open[e.cap].(*eventlog.RunThread)
			if !ok || run.Thread != ev.Thread {
				t.Fatalf("thread %d stops while %+v", ev.Thread, open[e.cap])
			}
			delete(open, e.cap)
			busy[fmt.Sprintf("thread %d on %d", ev.Thread, e.cap)] += e.time - begun[e.cap]
		case *eventlog.GCEnd:
			if _, ok := open[e.cap].(*eventlog.GCStart); !ok {
				t.Fatalf("a collection ends while %+v", open[e.cap])
			}
			delete(open, e.cap)
			busy["gc"] += e.time - begun[e.cap]
		}
	}
	if len(open) != 0 || !caps[0] || !caps[1] {
		t.Errorf("left open %v, capabilities %v", open, caps)
	}
	// 10 ms of collection, 20 samples of thread 9 on capability 1.
	near := func(name string, want uint64) {
		if got := busy[name]; got < want-want/5 || got > want+want/5 {
			t.Errorf("%s is busy for %d ns, want about %d", name, got, want)
		}
	}
	near("gc", 10_000_000)
	near("thread 9 on 1", 20_000_000)
}

// The derived heap samples add up to the allocated bytes by binding, and a log without
// allocation is refused.
func TestEventlog2html(t *testing.T) {
	orig := log()
	_, evs := derived(t, "eventlog2html", orig)
	begun, sum := false, uint64(0)
	bands := make(map[string]bool)
	for _, e := range evs {
		switch ev := e.ev.(type) {
		case *eventlog.HeapProfBegin:
			begun = true
		case *eventlog.HeapSampleBegin:
			if !begun || e.time < 1 {
				t.Error("a heap sample before the profile, or at time 0")
			}
		case *eventlog.HeapSampleString:
			sum += ev.Bytes
			bands[ev.Label] = true
		}
	}
	if want := selections(t, orig)[1].Total; sum != want {
		t.Errorf("%d bytes of %d", sum, want)
	}
	if got := slices.Sorted(maps.Keys(bands)); !slices.Equal(got, []string{"allocated by Deep.f2λ", "allocated by Deep.f3λ"}) {
		t.Errorf("bands %q", got)
	}
	if _, err := Events("eventlog2html", selections(t, logtest.NBody().End())); err == nil {
		t.Error("no error for a log without allocation")
	}
}

// Asking for the events of an unknown tool is an error that names it.
func TestUnknownTool(t *testing.T) {
	if _, err := Events("hs-speedscope,vi", selections(t, log())); err == nil || !strings.Contains(err.Error(), "vi") {
		t.Errorf("error %v", err)
	}
}

// What the tools themselves take from such logs, by the library that they read them
// with, is all there is: every sample, with its whole stack as far as it is written.
func TestReaders(t *testing.T) {
	needGHCEvents(t)
	exe := testprog.Build(t, "eventreaders", testprog.Options{NoDebug: true})
	read := func(tool string) (kinds map[string][]string) {
		b, _ := derived(t, tool, log())
		file := filepath.Join(t.TempDir(), "log.eventlog")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(exe, tool, file).Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", tool, err, out)
		}
		kinds = make(map[string][]string)
		for line := range strings.SplitSeq(strings.TrimSpace(string(out)), "\n") {
			kind, rest, _ := strings.Cut(line, "\t")
			kinds[kind] = append(kinds[kind], rest)
		}
		return kinds
	}
	count := func(lines []string, is func(string) bool) (n int) {
		for _, l := range lines {
			if is(l) {
				n++
			}
		}
		return n
	}
	suffix := func(s string) func(string) bool { return func(l string) bool { return strings.HasSuffix(l, s) } }
	contains := func(s string) func(string) bool { return func(l string) bool { return strings.Contains(l, s) } }
	deep := func(of string) func(string) bool {
		return func(l string) bool { return strings.Contains(l, of) && strings.HasSuffix(l, "Deep.f299λ") }
	}

	got := read("hs-speedscope")
	if s := got["sample"]; len(s) != 140 || !slices.Equal(got["program"], []string{"./nbody"}) || !slices.Equal(got["interval"], []string{"1000000"}) ||
		count(s, suffix("\tMain.main;Physics.step")) != 20 || count(s, suffix("\tevacuate")) != 10 ||
		count(s, deep("\t… deeper frames;Deep.f46λ;Deep.f47λ;")) != 40 || count(s, contains("?")) != 0 || count(s, contains("(none)")) != 0 {
		t.Errorf("hs-speedscope: %q", got)
	}

	got = read("eventlog2html")
	sum, last := uint64(0), uint64(0)
	for _, l := range got["band"] {
		bytes, _, _ := strings.Cut(l, "\t")
		n, err := strconv.ParseUint(bytes, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	for _, l := range got["census"] {
		at, err := strconv.ParseUint(l, 10, 64)
		if err != nil || at <= last {
			t.Errorf("a census at %s, after one at %d", l, last)
		}
		last = at
	}
	if want := selections(t, log())[1].Total; sum != want || len(got["mode"]) != 1 || len(got["program"]) != 1 {
		t.Errorf("eventlog2html: %d bytes of %d: %q", sum, want, got)
	}
	if end, _ := strconv.ParseUint(got["end"][0], 10, 64); end < last {
		t.Errorf("eventlog2html: the chart ends at %d, before its last census at %d", end, last)
	}

	got = read("ghc-stack-profiler")
	if s := got["stack"]; len(s) != 140 || count(s, contains("?")) != 0 ||
		count(s, func(l string) bool {
			return strings.Contains(l, "\t9\tDeep.f0λ@src/Deep.hs;") && strings.HasSuffix(l, ";Deep.f299λ@src/Deep.hs")
		}) != 40 {
		t.Errorf("ghc-stack-profiler: %d stacks, the last %q", len(s), s[max(0, len(s)-1):])
	}
}

func needGHCEvents(t *testing.T) {
	t.Helper()
	testprog.GHC(t, "")
	if out, err := exec.Command("ghc-pkg", "--simple-output", "list", "ghc-events").Output(); err != nil || len(bytes.TrimSpace(out)) == 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "the ghc-events library", Hint: "apt-get install libghc-ghc-events-dev"})
	}
}

// The ghc-events library reads every event of such logs.
func TestGHCEventsReads(t *testing.T) {
	needGHCEvents(t)
	exe := testprog.Build(t, "eventdump", testprog.Options{NoDebug: true})
	for _, tool := range Names() {
		b, evs := derived(t, tool, log())
		file := filepath.Join(t.TempDir(), "log.eventlog")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(exe, file).Output()
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "\tEventBlock {") })
		// The reader gives markers of blocks as events.
		markers := 0
		for r := eventlog.NewReader(bytes.NewReader(b)); r.Next(); {
			if r.Record().Event.EventID() == eventlog.IDBlockMarker {
				markers++
			}
		}
		if strings.HasPrefix(lines[len(lines)-1], "error") || len(lines) != len(evs)-markers {
			t.Errorf("%s: the library reads %d of %d events: %s", tool, len(lines), len(evs)-markers, lines[len(lines)-1])
		}
	}
}

package reasons_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/reasons"
)

const ms = 1_000_000

// program is a log under construction, of a program with two functions that have source.
type program struct {
	*logtest.Log
	build, read logtest.Frame
}

func newProgram() *program {
	l := &program{Log: logtest.New()}
	l.Write(0, &eventlog.EventDef{Index: 1, Requested: "alloc", Granted: "alloc", Unit: "bytes"})
	file := l.File("Main.hs", "build = 1\nread = 2\n")
	of := func(name string, line uint32) logtest.Frame {
		b := l.Binding("main", "Main", name, 0)
		return l.Block(b, l.Span(file, line, 1, line, 9, b))
	}
	l.build, l.read = of("build", 1), of("read", 2)
	return l
}

func (l *program) code(name string, c eventlog.Category) logtest.Frame {
	return l.Code(l.Function(name, c), eventlog.QualityExact, c)
}

func (l *program) run(event uint32, n int, weight uint64, flags eventlog.SampleFlags, frames ...logtest.Frame) {
	for range n {
		l.SampleOf(0, eventlog.Sample{Event: event, Weight: weight, Node: l.Stack(frames...), Flags: flags})
	}
}

func (l *program) selection(t *testing.T) *profile.Selection {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	return p.Select(profile.Filter{})
}

func table(parts []reasons.Part) []string {
	var out []string
	for _, q := range parts {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%g %s %s", math.Round(1000*q.Share)/10, q.Name, strings.Join(q.Functions, ","))))
	}
	return out
}

// The collector consists of its phases, and is caused by what allocates, not by what calls it.
func TestCollector(t *testing.T) {
	l := newProgram()
	schedule, collect := l.code("schedule", eventlog.CategoryRTS), l.code("GarbageCollect", eventlog.CategoryGC)
	evacuate, sweep := l.code("evacuate1", eventlog.CategoryGC), l.code("sweepBlocks", eventlog.CategoryGC)
	spin := l.code("waitForGcThreads", eventlog.CategoryGC)
	insert := l.Code(l.Binding("containers", "Data.Map", "insert", 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	l.run(0, 50, ms, 0, schedule, collect, evacuate)
	l.run(0, 10, ms, 0, schedule, collect, sweep)
	l.run(0, 10, ms, 0, schedule, collect, spin)
	l.run(0, 30, ms, 0, l.read)
	l.run(1, 30, 1000, 0, l.build, insert) // a library's code allocates for build
	l.run(1, 10, 1000, 0, l.read)
	s := l.selection(t)
	r := reasons.Of(s, reasons.GC)
	if diff := cmp.Diff([]string{
		"50 copying what is live evacuate1", "10 sweeping sweepBlocks", "10 threads of the collector waiting for each other waitForGcThreads",
	}, table(r.Parts)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"75 Main.build", "25 Main.read"}, table(r.Causes)); r.By != "alloc" || diff != "" {
		t.Errorf("causes by %q: %s", r.By, diff)
	}
	if all := strings.Join(r.Advice, "\n"); !strings.Contains(all, "-A64m") || !strings.Contains(all, "-qg") {
		t.Errorf("advice is\n%s", all)
	}
	said := reasons.SentenceOf(s)
	if got, want := said.Text+said.More, "70.0% of CPU time is garbage collection, mostly copying what is live; Main.build allocates 75.0% of all bytes"; got != want {
		t.Errorf("the sentence is %q, want %q", got, want)
	}
	shorter := []string{
		"70.0% of CPU time is garbage collection, mostly copying what is live; Main.build allocates 75.0% of all bytes",
		"70.0% of CPU time is GC, mostly copying what is live; Main.build allocates 75.0% of all bytes",
		"70.0% of CPU time is GC; Main.build allocates 75.0% of all bytes",
		"70.0% of CPU time is garbage collection, mostly copying what is live",
		"70.0% of CPU time is garbage collection",
	}
	if diff := cmp.Diff(shorter, said.Shorter); diff != "" {
		t.Error(diff)
	}
}

// The parts of an element are all of it, and so are its causes: the nearest function with source,
// also one that waits for the C code it called.
func TestKernel(t *testing.T) {
	l := newProgram()
	collect, evacuate := l.code("GarbageCollect", eventlog.CategoryGC), l.code("evacuate", eventlog.CategoryGC)
	write, memcpy := l.code("__write", eventlog.CategoryForeign), l.code("memcpy", eventlog.CategoryForeign)
	fd := l.Code(l.Binding("base", "GHC.IO.FD", "write", 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	waits := logtest.Frame{Kind: eventlog.FrameContext}
	l.run(0, 40, ms, eventlog.SampleInKernel, l.read, fd, waits, write)
	l.run(0, 20, ms, eventlog.SampleInKernel, collect, evacuate)
	l.run(0, 10, ms, eventlog.SampleInKernel, l.build)
	l.run(0, 30, ms, 0, l.build, memcpy)
	s := l.selection(t)
	r := reasons.Of(s, reasons.Kernel)
	if diff := cmp.Diff([]string{
		"40 called from write __write",
		"20 for the collector: page faults on what it copies to, memory taken and given back evacuate",
		"10 page faults and interrupts of Haskell code Main.build",
	}, table(r.Parts)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"40 Main.read", "20 the collector", "10 Main.build"}, table(r.Causes)); diff != "" {
		t.Error(diff)
	}
	said := reasons.SentenceOf(s)
	if got, want := said.Text+said.More, "70.0% of CPU time is in the kernel, mostly called from write, for Main.read"; got != want {
		t.Errorf("the sentence is %q, want %q", got, want)
	}
	if diff := cmp.Diff([]string{"30 Main.build"}, table(reasons.Of(s, reasons.Foreign).Causes)); diff != "" {
		t.Error(diff)
	}
	if got := reasons.Of(s, reasons.STG); got != nil {
		t.Errorf("an element without samples has %+v", got)
	}
	if got := reasons.Of(s, "Main.build"); got != nil {
		t.Errorf("an element with source has %+v", got)
	}
}

// The scheduler waits for files and timers by functions whose names differ between releases.
func TestRuntimeWaits(t *testing.T) {
	l := newProgram()
	schedule := l.code("schedule", eventlog.CategoryRTS)
	for _, name := range []string{"awaitEvent", "awaitCompletedTimeoutsOrIOSelect", "pollCompletedTimeoutsOrIOPoll", "deleteMinTimeoutQueue", "syncIOWaitReady"} {
		l.run(0, 20, ms, 0, schedule, l.code(name, eventlog.CategoryRTS))
	}
	r := reasons.Of(l.selection(t), reasons.RTS)
	if len(r.Parts) != 1 || r.Parts[0].Name != "waiting for files, sockets and timers" {
		t.Errorf("the parts are %q", table(r.Parts))
	}
}

// What several functions share is said of all of them, and nothing is said of a handful of samples.
func TestSentence(t *testing.T) {
	l := newProgram()
	both := l.Block(l.Binding("main", "Main", "loop", 0), 1, 2)
	l.run(0, 100, ms, 0, both)
	if got, want := reasons.SentenceOf(l.selection(t)).Text, "100.0% of CPU time is in code that comes from Main.build and Main.read"; got != want {
		t.Errorf("the sentence is %q, want %q", got, want)
	}
	l = newProgram()
	l.run(0, 3, ms, 0, l.build)
	if got, want := reasons.SentenceOf(l.selection(t)).Text, "Too few samples to say where CPU time is: 3 samples"; got != want {
		t.Errorf("the sentence is %q, want %q", got, want)
	}
	l = newProgram()
	l.run(0, 1, 1000*ms, 0, l.build)
	l.run(0, 99, ms, 0, l.build)
	if got, want := reasons.SentenceOf(l.selection(t)).Text, "Too few samples to say where CPU time is: 100 samples worth 1"; got != want {
		t.Errorf("the sentence is %q, want %q", got, want)
	}
	if got := reasons.SentenceOf(newProgram().selection(t)); got.Text != "" {
		t.Errorf("of no samples it says %q", got.Text)
	}
}

// While the log is written, much code may have no name yet: nothing is said of it then, and what
// helps with code that will never have one is not advised.
func TestNothingIsSaidWhileNamesAreLookedUp(t *testing.T) {
	for growing, want := range map[bool]string{false: "80.0% of CPU time is in code that has no name, mostly nbody", true: ""} {
		l := newProgram()
		l.run(0, 80, ms, 0, l.Unknown())
		l.run(0, 20, ms, 0, l.build)
		p, err := profile.Load(bytes.NewReader(l.End()))
		if err != nil {
			t.Fatal(err)
		}
		p.Accounting.Growing = growing
		s := p.Select(profile.Filter{})
		if got := reasons.SentenceOf(s).Text; got != want {
			t.Errorf("growing %t: the sentence is %q, want %q", growing, got, want)
		}
		r := reasons.Of(s, reasons.Unresolved)
		if r == nil || (len(r.Advice) > 0) == growing {
			t.Errorf("growing %t: the reason is %+v", growing, r)
		}
	}
}

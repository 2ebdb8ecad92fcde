package profile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// What the run-time system does is (RTS), what the collector does (GC), and what its threads
// spend on waiting for each other is (GC waiting) besides; the kernel's work counts to the
// collector where it called the kernel, and only there.
func TestCollector(t *testing.T) {
	l := logtest.New()
	const ms = 1_000_000
	code := func(name string, c eventlog.Category) logtest.Frame {
		return l.Code(l.Function(name, c), eventlog.QualityExact, c)
	}
	schedule, collect := code("schedule", eventlog.CategoryRTS), code("GarbageCollect", eventlog.CategoryGC)
	evacuate := code("evacuate", eventlog.CategoryGC)
	spin, yield := code("acquire_spin_lock_slow_path", eventlog.CategoryGC), code("yieldThread", eventlog.CategoryRTS)
	oldSpin := code("acquire_spin_lock_slow_path", eventlog.CategoryRTS) // as older logs have it
	libc, stg := code("__sched_yield", eventlog.CategoryForeign), code("stg_ap_pp_fast", eventlog.CategorySTG)
	mine := l.Code(l.Binding("main", "Main", "main", 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	alike := code("any_work", eventlog.CategoryForeign) // somebody else's, of the same name
	mmap, freed := code("osCommitMemory", eventlog.CategoryRTS), code("osFreeMBlocks", eventlog.CategoryRTS)

	run := func(n int, flags eventlog.SampleFlags, frames ...logtest.Frame) {
		for range n {
			l.SampleOf(0, eventlog.Sample{Weight: ms, Node: l.Stack(frames...), Flags: flags})
		}
	}
	run(30, 0, schedule, collect, evacuate)
	run(10, 0, schedule, collect, spin)
	run(5, 0, schedule, collect, oldSpin)
	run(3, 0, schedule, collect, spin, yield, libc)
	run(7, eventlog.SampleInKernel, schedule, collect, spin, yield, libc)
	run(4, eventlog.SampleInKernel, schedule, collect, evacuate)
	run(6, eventlog.SampleInKernel, schedule, collect, evacuate, mmap)
	run(2, eventlog.SampleInKernel, schedule, freed)
	run(8, 0, schedule)
	run(5, 0, mine, stg)
	run(15, 0, mine)
	run(5, 0, mine, alike)
	p := load(t, l.End())
	s := p.Select(profile.Filter{})
	if got, want := s.Collector(), (profile.Collector{Share: 0.45, Kernel: 0.17, Waiting: 0.25, Inclusive: 0.65}); got != want {
		t.Errorf("the collector: %+v, want %+v", got, want)
	}
	want := []string{
		"(GC) 45 30 65 45", "(kernel) 19 19 19 19", "(GC waiting) 15 0 25 15", "Main.main 15 15 25 15",
		"(RTS) 8 8 75 8", "(foreign) 8 8 15 8", "(STG) 5 5 5 5",
	}
	if d := cmp.Diff(want, table(s.Hot(profile.LevelBinding))); d != "" {
		t.Error(d)
	}
	if f := s.CategoryFunctions("(GC waiting)"); len(f) != 1 || f[0].Name != "acquire_spin_lock_slow_path" || f[0].Samples != 15 {
		t.Errorf("functions in which the collector waits: %+v", f)
	}
}

package series

import (
	"testing"

	"ccagent/agent/procfs"
	"ccagent/agent/source"
	"ccagent/agent/sourcetest"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

// traced reports whether a thread of a process is traced.
func traced(t *testing.T, pid int) bool {
	t.Helper()
	threads, err := procfs.Threads(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		if s, err := procfs.ReadStatus(thread.TID); err == nil && s.Tracer != 0 {
			return true
		}
	}
	return false
}

// A program that is frozen in the middle of a collection, when the thread that leads it is traced already, does not keep who ends the series,
// and is let go of when it is thawed: then it is counted again.
func TestFrozenInACollection(t *testing.T) {
	testprog.NeedRoot(t)
	for version, unified := range map[string]bool{"version 1": false, "version 2": true} {
		t.Run(version, func(t *testing.T) {
			exe := testprog.Build(t, "maps", testprog.Options{Threaded: true, NoDebug: true})
			r := sourcetest.Open(t, Kind(), perf.Rate{}, "heap=1ms")
			im := r.Run(t, exe, "200000", "1000000") // its collections take a while
			pid := int(im.PID)
			freeze, thaw := testprog.Freezer(t, pid, unified)
			defer thaw()
			s := r.Source.(*series)
			throttle := func() {
				t.Helper()
				if err := s.Throttle(source.Use{Time: perf.Monotonic()}); err != nil {
					t.Fatal(err)
				}
			}
			for frozen := false; !frozen; { // it may stand where it is to be held when it is frozen
				thaw()
				sourcetest.Until(t, "the thread that leads a collection is traced", func() bool {
					throttle()
					return traced(t, pid)
				})
				freeze()
				if err := s.settle(s.image); err != nil {
					t.Fatal(err)
				}
				frozen = traced(t, pid)
			}
			thaw()
			sourcetest.Until(t, "it is let go of", func() bool { return !traced(t, pid) })
			before := s.image.account.Taken
			sourcetest.Until(t, "it is counted again", func() bool {
				throttle()
				return s.image.account.Taken > before
			})
		})
	}
}

// A frozen process of a host does not have the others wait for a collection of it, and its account says so.
func TestFrozenHasNoTurn(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "grow", testprog.Options{Threaded: true, NoDebug: true})
	r := sourcetest.Open(t, HostKind(), perf.Rate{}, "heap=1s")
	im := r.Run(t, exe, "500", "1000000", "2000")
	s := r.Source.(*hostSeries)
	i := s.images[im.Incarnation]
	if i == nil {
		t.Fatal(s.problems)
	}
	sourcetest.Until(t, "it has a heap", func() bool { return s.follow(i) })
	freeze, thaw := testprog.Freezer(t, int(im.PID), false)
	defer thaw()
	freeze()
	sourcetest.Until(t, "it is passed over", func() bool {
		if err := s.Throttle(source.Use{Time: perf.Monotonic()}); err != nil {
			t.Fatal(err)
		}
		return s.turn != nil || i.account.Missed[eventlog.HeapMissStopped] > 0
	})
	if s.turn != nil {
		t.Error("a collection of it is waited for")
	}
}

package cpu

import (
	"runtime"
	"testing"
	"time"

	"ccagent/agent/sourcetest"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

// Samples that the ring buffer has no room for are reported, all of them.
func TestLossIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r := sourcetest.Open(t, Kind(), perf.Rate{Period: 200_000}, "cpu-clock")
	if err := r.Source.Follow([]int{sourcetest.Self()}); err != nil {
		t.Fatal(err)
	}
	if err := r.Source.Start(); err != nil {
		t.Fatal(err)
	}
	spin := 0
	sourcetest.Until(t, "a sample is lost", func() bool {
		for range 1_000_000 {
			spin++
		}
		return r.Lost(t, 0) > 0
	})
	if err := r.Source.Stop(); err != nil {
		t.Fatal(err)
	}
	if reported, lost := r.Losses(t, eventlog.LossRingFull), r.Lost(t, 0); reported != lost {
		t.Errorf("%d were lost, and the log reports %d", lost, reported)
	}
}

// Samples that the kernel's limit on their rate suppressed are reported.
func TestThrottledIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{Frequency: 50}, "cpu-clock")
	s := r.Source.(*cpu)
	// The kernel's limit is not this test's to lower: the event is taken for one of a rate
	// above it, whose overflows did not come.
	limit, ok := perf.MaxRate()
	if !ok || limit == 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "kernel.perf_event_max_sample_rate"})
	}
	s.events[0].now = perf.Rate{Frequency: uint64(limit) + 1}
	r.TargetCPU = func() uint64 { return uint64(time.Second) }
	if err := s.watchLimit(); err != nil {
		t.Fatal(err)
	}
	if reported := r.Losses(t, eventlog.LossThrottled); reported < uint64(limit) {
		t.Errorf("the log reports %d samples", reported)
	}
}

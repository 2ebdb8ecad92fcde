package cpu

import (
	"errors"
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
	lossIsTold(t, sourcetest.Open(t, Kind(), perf.Rate{Period: 200_000}, "cpu-clock"))
}

// So are those at ticks, and there is one at each tick of a thread that runs all the time.
func TestLossOfTicksIsTold(t *testing.T) {
	testprog.NeedRoot(t)
	needTick(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lossIsTold(t, sourcetest.Open(t, Kind(), perf.Rate{}, perf.TickEvent))
}

// needTick skips the test where the kernel's tick cannot be sampled, but not on kernels of which it
// is known that it can.
func needTick(t *testing.T) {
	t.Helper()
	_, err := perf.FindTick()
	if why := (*perf.UnavailableError)(nil); errors.As(err, &why) {
		testprog.Skip(t, &testprog.UnsupportedError{Need: why.Reason})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func lossIsTold(t *testing.T, r *sourcetest.Rig) {
	t.Helper()
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

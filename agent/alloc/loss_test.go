package alloc

import (
	"testing"

	"ccagent/agent/process"
	"ccagent/agent/sourcetest"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

// Samples that the ring buffer has no room for are reported.
func TestLossIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "alloc31", testprog.Options{})
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	r.WriteKnown = func(*process.Image, uint64, *eventlog.Sample) error { return nil }
	r.Run(t, exe, "1000000000")
	if err := r.Source.Unavailable(); err != nil {
		t.Fatal(err)
	}
	sourcetest.Until(t, "a sample is lost", func() bool { return r.Lost(t, 0) > 0 })
	if err := r.Source.Close(); err != nil { // so that no more are, but those of hits that are under way
		t.Fatal(err)
	}
	sourcetest.Until(t, "the log reports what is lost", func() bool { return r.Losses(t, eventlog.LossRingFull) == r.Lost(t, 0) })
}

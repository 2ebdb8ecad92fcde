package offcpu

import (
	"os"
	"testing"

	"ccagent/agent/sourcetest"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

// Waits whose records the ring buffer has no room for are reported.
func TestLossIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	if _, err := r.Discover(uint32(os.Getpid()), "", ""); err != nil {
		t.Fatal(err)
	}
	if err := r.Source.Start(); err != nil {
		t.Fatal(err)
	}
	// Until itself waits, and waits of this process are what is sampled.
	sourcetest.Until(t, "a wait is lost", func() bool { return r.Lost(t, 0) > 0 })
	if err := r.Source.Stop(); err != nil {
		t.Fatal(err)
	}
	// A switch that goes on when tracing ends may still lose one.
	sourcetest.Until(t, "the log reports what is lost", func() bool { return r.Losses(t, eventlog.LossRingFull) == r.Lost(t, 0) })
}

// waiting is a record of a thread's wait.
func waiting(record uint8, tid uint32, at, ns uint64) *perf.Sample {
	return &perf.Sample{SampleHeader: bpf.SampleHeader{Record: record, Pid: 1, Tid: tid, Time: at, Period: ns}}
}

// A wait whose end was lost is reported when its thread waits again, and one whose beginning
// was lost is not reported twice.
func TestLostEndsAreReported(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	for _, w := range []*perf.Sample{
		waiting(bpf.RecordWait, 5, 10, 0),
		waiting(bpf.RecordWait, 5, 30, 0), // its end was lost
		waiting(bpf.RecordWake, 5, 40, 10),
		waiting(bpf.RecordWake, 6, 50, 10), // its beginning was, which BPF has counted
	} {
		if err := r.Source.Consume(w); err != nil {
			t.Fatal(err)
		}
	}
	if reported := r.Losses(t, eventlog.LossWait); reported != 1 {
		t.Errorf("the log reports %d lost waits, want 1", reported)
	}
}

// A wait whose end was lost, of a thread that does not wait again, is no wait to the end of the capture.
func TestLostEndsAreNoLongWaits(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	if _, err := r.Discover(uint32(os.Getpid()), "", ""); err != nil {
		t.Fatal(err)
	}
	wait := waiting(bpf.RecordWait, 5, 10, 0)
	wait.Pid = uint32(os.Getpid())
	if err := r.Source.Consume(wait); err != nil {
		t.Fatal(err)
	}
	if err := r.Source.Finish(1e12); err != nil {
		t.Fatal(err)
	}
	if reported := r.Losses(t, eventlog.LossWait); reported != 1 {
		t.Errorf("the log reports %d lost waits, want 1", reported)
	}
}

// Where more threads wait than are followed, the waits that are given up are reported.
func TestTooManyWaitsAreReported(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	for tid := range uint32(maxWaits + 1) {
		if err := r.Source.Consume(waiting(bpf.RecordWait, tid, 10, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if reported := r.Losses(t, eventlog.LossWait); reported != maxWaits {
		t.Errorf("the log reports %d lost waits, want %d", reported, maxWaits)
	}
}

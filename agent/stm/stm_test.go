package stm

import (
	"testing"

	"ccagent/agent/process"
	"ccagent/agent/sourcetest"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

// Samples that the ring buffer has no room for are reported, and attempts are counted all the same.
func TestLossIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	im := r.Run(t, testprog.Build(t, "conflict", testprog.Options{Threaded: true}), "1000000", "3", "100")
	s := r.Source.(*stm)
	if s.images[im.Incarnation] == nil {
		t.Fatal("the source has not attached to a Haskell program")
	}
	index := int(s.event.Def.Index)
	sourcetest.Until(t, "a sample is lost", func() bool { return r.Lost(t, index) > 0 })
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(perf.Monotonic()); err != nil {
		t.Fatal(err)
	}
	sourcetest.Until(t, "the log reports what is lost", func() bool { return r.Losses(t, eventlog.LossRingFull) == r.Lost(t, index) })
	if n := s.totals.Counted[eventlog.TransactionFailed]; n == 0 {
		t.Errorf("no attempt has failed of %v", s.totals.Counted)
	}
}

// A sample of an attempt in a window waits for what it stands for: the transactions that have begun since the window before.
func TestWindowsWeigh(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	im := r.Run(t, testprog.Build(t, "conflict", testprog.Options{Threaded: true}), "1000000", "3", "100")
	s := r.Source.(*stm)
	if err := s.rest(perf.Monotonic()); err != nil {
		t.Fatal(err)
	}
	var weight uint64
	r.Write = func(_ *process.Image, p *perf.Sample) (*eventlog.Sample, error) {
		weight += p.Period
		return &eventlog.Sample{Weight: p.Period}, nil
	}
	s.hitRate = 1e5
	before := s.covered
	s.probe(maxWindow, 1<<20, 0)
	s.await()
	if len(s.windows) == 0 {
		t.Fatal("the window was not kept")
	}
	w := s.windows[len(s.windows)-1]
	sample := perf.Sample{}
	sample.Pid, sample.Time, sample.Period, sample.Site = im.PID, w.close, 10, uint8(eventlog.TransactionFailed)
	if err := s.Consume(&sample); err != nil || weight != 0 {
		t.Fatalf("a sample was written before its weight is known: %d, %v", weight, err)
	}
	until := w.to.plus(progress{cpu: 1e9, begun: 1e6})
	if err := s.settle(until); err != nil {
		t.Fatal(err)
	}
	stands, length := until.since(before), w.to.since(w.from)
	if length.begun == 0 {
		t.Fatalf("no transaction began in %d ns of CPU time", length.cpu)
	}
	if want := 10 * float64(stands.begun) / float64(length.begun); float64(weight) < 0.99*want || float64(weight) > 1.01*want {
		t.Errorf("a sample of weight 10 has %d, in a window of %+v for %+v want %.0f", weight, length, stands, want)
	}
}

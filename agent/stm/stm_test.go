package stm

import (
	"os/exec"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/source"
	"ccagent/agent/sourcetest"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

func start(t *testing.T, s *stm) {
	t.Helper()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
}

// A program that runs when it is attached to has no probes until measuring starts, and has them no longer than for the hits that the
// budget allows: also while nobody has the source look at its budget.
func TestHitsAreBounded(t *testing.T) {
	testprog.NeedRoot(t)
	stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME)
	if err != nil {
		t.Fatal(err)
	}
	defer stats.Close()
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	s := r.Source.(*stm)
	s.bucket = overhead.NewBudget(overhead.Default).STM()
	im := r.Run(t, testprog.Build(t, "conflict", testprog.Options{Threaded: true}), "1000000", "3", "100")
	si := s.images[im.Incarnation]
	hits := func() uint64 {
		cost, err := s.Cost()
		if err != nil {
			t.Fatal(err)
		}
		return cost.Probes.Runs
	}
	const some = 20_000
	run := func() {
		begun := si.last.begun
		sourcetest.Until(t, "transactions begin", func() bool {
			si.look()
			return si.last.begun > begun+some
		})
	}
	if run(); hits() != 0 {
		t.Fatalf("%d hits of probes before measuring starts", hits())
	}
	start(t, s)
	sourcetest.Until(t, "the budget is used up", func() bool { return s.guard.wasCut() != nil })
	s.background.Wait() // until the probes are removed
	before := hits()
	if run(); hits() != before {
		t.Errorf("%d hits after the probes were removed", hits()-before)
	}
	allowed, counted := s.bucket.Level()/s.cost(), uint64(0)
	if err := s.Account(); err != nil {
		t.Fatal(err)
	}
	if counted = sum(s.totals.Counted[:]); float64(counted) < allowed || counted > before || !s.totals.Exact() {
		t.Errorf("%d attempts counted of %d hits, %.0f are allowed; exact: %v", counted, before, allowed, s.totals.Exact())
	}
	cost, err := s.Cost()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Throttle(source.Use{Cost: cost, Time: perf.Monotonic()}); err != nil || s.mode != resting || s.hitRate == 0 {
		t.Errorf("mode %d after the budget was used up, %.0f hits a second, %v", s.mode, s.hitRate, err)
	}
}

// Samples that the ring buffer has no room for are reported, and attempts are counted all the same.
func TestLossIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	im := r.Run(t, testprog.Build(t, "conflict", testprog.Options{Threaded: true}), "1000000", "3", "100")
	s := r.Source.(*stm)
	if s.images[im.Incarnation] == nil {
		t.Fatal("the source has not attached to a Haskell program")
	}
	start(t, s)
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

// Attempts are counted up to the end of a process, though its memory, in which the run-time system's own count is, is gone
// when that is noticed.
func TestLastAttemptsAreCounted(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	s := r.Source.(*stm)
	exe := testprog.Build(t, "conflict", testprog.Options{Threaded: true})
	cmd := exec.Command(exe, "300", "3", "20000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	testprog.WaitExecuted(t, cmd.Process.Pid)
	// It is held until its attempts are counted: it might be over before.
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	im, err := r.Discover(uint32(cmd.Process.Pid), "", exe)
	if err != nil {
		t.Fatal(err)
	}
	start(t, s)
	if err := cmd.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	counted := func() uint64 {
		a, err := r.Walker.Transactions(im.Incarnation)
		if err != nil {
			t.Fatal(err)
		}
		return sum(a.Ends[:])
	}
	sourcetest.Until(t, "some attempts are counted", func() bool { return counted() > 100 })
	if err := s.Account(); err != nil {
		t.Fatal(err)
	}
	sourcetest.Until(t, "the program has ended", func() bool {
		list, err := procfs.Threads(int(im.PID))
		return err != nil || len(list) == 0 || list[0].State == 'Z'
	})
	want := counted()
	if err := r.Processes.Remove(im, perf.Monotonic()); err != nil {
		t.Fatal(err)
	}
	if got := sum(s.totals.Counted[:]); got != want || !s.totals.Exact() {
		t.Errorf("%d attempts are in the log, and %d were counted; exact: %v", got, want, s.totals.Exact())
	}
}

// A sample of an attempt in a window waits for what it stands for: the attempts of its kind, of as many transactions as have begun
// since the window before. Ends without a sample wait for the next window's, and if there is none, for the end of the process.
func TestWindowsWeigh(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	im := r.Run(t, testprog.Build(t, "conflict", testprog.Options{Threaded: true}), "1000000", "3", "100")
	s := r.Source.(*stm)
	start(t, s)
	if err := s.rest(perf.Monotonic()); err != nil {
		t.Fatal(err)
	}
	var weights []uint64
	r.Write = func(_ *process.Image, p *perf.Sample) (*eventlog.Sample, error) {
		weights = append(weights, p.Period)
		return &eventlog.Sample{Weight: p.Period}, nil
	}
	s.hitRate = 1e5
	kinds := []eventlog.TransactionEnd{eventlog.TransactionCommitted, eventlog.TransactionFailed}
	owed := 0.0
	for _, drawn := range [][]int{{1, 0}, {1, 2}, {1, 0}} { // samples of each kind in a window
		before := s.covered
		s.probe(10*maxWindow, 1<<20, 0) // in which the program has a CPU for some time, however busy the machine is
		s.await()
		if len(s.windows) == 0 {
			t.Fatal("the window was not kept")
		}
		w := s.windows[len(s.windows)-1]
		w.held, weights = nil, nil // what was drawn by itself
		for n, kind := range kinds {
			for k := range drawn[n] {
				sample := perf.Sample{}
				sample.Event, sample.Pid, sample.Time, sample.Period, sample.Site = uint16(s.event.Def.Index), im.PID, w.close, uint64(10+20*k), uint8(kind)
				if err := s.Consume(&sample); err != nil || len(weights) != 0 {
					t.Fatalf("a sample was written before its weight is known: %d, %v", weights, err)
				}
			}
		}
		until := w.to.plus(progress{cpu: 1e9, begun: 1e6})
		if err := s.settle(until); err != nil {
			t.Fatal(err)
		}
		ends := w.counts[s.images[im.Incarnation]].Ends
		of := func(kind eventlog.TransactionEnd) float64 {
			return float64(until.since(earliest(before, w.from)).begun) * float64(ends[kind]) / float64(sum(ends[:]))
		}
		committed, failed := of(kinds[0]), of(kinds[1])
		if ends[kinds[0]] == 0 || ends[kinds[1]] == 0 {
			t.Fatalf("attempts ended %v in a window", ends)
		}
		want := []float64{committed}
		if drawn[1] > 0 {
			want = append(want, (owed+failed)/4, (owed+failed)*3/4)
			owed = 0
		} else {
			owed += failed
		}
		if len(weights) != len(want) {
			t.Fatalf("%d samples were written, want %d", len(weights), len(want))
		}
		for i := range want {
			if got := float64(weights[i]); got < 0.99*want[i] || got > 1.01*want[i] {
				t.Errorf("sample %d stands for %.0f attempts, want %.0f", i, got, want[i])
			}
		}
	}
	var left []uint64
	r.Write = func(_ *process.Image, p *perf.Sample) (*eventlog.Sample, error) {
		if p.Frames[0] == uint64(eventlog.FrameTransaction)<<bpf.FrameKindShift|uint64(eventlog.TransactionFailed) {
			left = append(left, p.Period)
		}
		return &eventlog.Sample{Weight: p.Period}, nil
	}
	if err := r.Processes.Remove(im, perf.Monotonic()); err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 || float64(left[0]) < 0.99*owed || float64(left[0]) > 1.01*owed {
		t.Errorf("at the end of the process samples for %d attempts that failed are written, want %.0f", left, owed)
	}
}

// Of several processes that run when measuring starts none is counted before all have probes. What one does that comes after
// counting was cut off is not what was counted.
func TestCutStopsAllProcesses(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	s := r.Source.(*stm)
	s.bucket = overhead.NewBudget(overhead.Default).STM()
	s.bucket.Pass(0, 1e12) // one hit is allowed
	exe, args := testprog.Build(t, "conflict", testprog.Options{Threaded: true}), []string{"1000000", "3", "100"}
	for range 3 {
		r.Run(t, exe, args...)
	}
	start(t, s)
	sourcetest.Until(t, "the budget is used up", func() bool { return s.guard.wasCut() != nil })
	c := s.guard.wasCut()
	if len(c.reached) != 3 {
		t.Errorf("%d of 3 processes had probes when counting was cut off", len(c.reached))
	}
	late := s.images[r.Run(t, exe, args...).Incarnation]
	if s.guard.take(late) != nil {
		t.Error("a process was given probes after counting was cut off")
	}
	before := s.final(c)
	sourcetest.Until(t, "transactions begin", func() bool {
		late.look()
		return late.last.begun > late.first.begun+1000
	})
	if after := s.final(c); after != before {
		t.Errorf("what was counted stands for %v, and for %v later", before, after)
	}
}

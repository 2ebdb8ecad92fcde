package rts

import (
	"math"
	"slices"
	"testing"
	"time"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/agent/sourcetest"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

// Records that the ring buffer has no room for are reported.
func TestLossIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "alloc31", testprog.Options{})
	r := sourcetest.Open(t, Kind(), perf.Rate{}, "gc", "threads")
	r.Run(t, exe, "1000000000")
	if err := r.Source.Unavailable(); err != nil {
		t.Fatal(err)
	}
	dropped := map[string]uint64{}
	sourcetest.Until(t, "records of both groups are dropped", func() bool {
		if err := r.Source.Account(); err != nil {
			t.Fatal(err)
		}
		var sum source.Summary
		r.Source.Report(&sum)
		for _, p := range sum.Probes {
			dropped[p.Group] = p.Dropped
		}
		return dropped["gc"] > 0 && dropped["threads"] > 0
	})
	written := map[string]uint64{}
	r.Each(t, func(e eventlog.Event) {
		if p, ok := e.(*eventlog.RTSProbes); ok {
			written[p.Group] = p.Dropped
		}
	})
	for _, group := range []string{"gc", "threads"} {
		if written[group] != dropped[group] {
			t.Errorf("of %s the log says that %d records were dropped, want %d", group, written[group], dropped[group])
		}
	}
}

// Probes that have cost more than they may are taken out, and come back when CPU time has paid
// for it; the time that they were out is reported.
func TestBudgetIsKept(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "alloc31", testprog.Options{})
	r := sourcetest.Open(t, Kind(), perf.Rate{}, "gc")
	now := uint64(1e9)
	r.Budget.Asked, r.Budget.Clock = 0.01, func() uint64 { return now }
	// A hit is so dear that the first few spend all.
	r.Budget.Costs.SetTrap(1e6)
	p := r.Source.(*Probes)
	p.used = func(*process.Image) uint64 { return now }
	im := r.Run(t, exe, "1000000000")
	if err := r.Source.Unavailable(); err != nil {
		t.Fatal(err)
	}
	i := p.images[im.PID]
	out := func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return i.groups[bpf.RTSGroupGC].outAt != 0
	}
	sourcetest.Until(t, "the probes are out", out)
	// Of a thousandth of the time: what has been spent, and then some.
	i.mu.Lock()
	paid := 1000 * uint64(i.groups[bpf.RTSGroupGC].cost+enoughBack)
	now += paid
	i.mu.Unlock()
	r.Budget.Pass(float64(paid))
	i.lookAt()
	sourcetest.Until(t, "the probes are back", func() bool { return !out() })
	// What passes after the end of sampling is not the capture's.
	sourcetest.Until(t, "the probes are out again", out)
	if err := r.Source.Stop(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Source.Account(); err != nil {
			t.Fatal(err)
		}
		i.mu.Lock()
		now += 1e12
		i.mu.Unlock()
	}
	if err := r.Source.Finish(perf.Monotonic()); err != nil {
		t.Fatal(err)
	}
	var outNs []uint64
	var watched []bool
	r.Each(t, func(e eventlog.Event) {
		switch e := e.(type) {
		case *eventlog.RTSProbes:
			outNs = append(outNs, e.OutNs)
		case *eventlog.RTSWatch:
			watched = append(watched, e.Watched)
		}
	})
	// In, out and back, at least; a last gap where records were dropped.
	if len(watched) < 3 || !watched[0] || watched[1] || !watched[2] || watched[len(watched)-1] {
		t.Errorf("watched: %v", watched)
	}
	if len(outNs) < 2 || outNs[0] < uint64(time.Second) || slices.Max(outNs) != outNs[0] {
		t.Errorf("the log says that the probes were out for %v ns, the same at any time after the end", outNs)
	}
}

// Names of other events are others' to know, and labels are had without any event.
func TestKind(t *testing.T) {
	if _, known, err := grant("cycles", perf.Rate{}); known || err != nil {
		t.Errorf("cycles is known: %v, %v", known, err)
	}
	h := &source.Host{Budget: overhead.NewBudget(0)}
	if s := open(h, nil, 0); s != nil {
		t.Errorf("there is a source that nobody asked for: %v", s)
	}
	p, ok := open(h, nil, source.Labels).(*Probes)
	if !ok || !p.wanted[bpf.RTSGroupThreads] || !p.quiet[bpf.RTSGroupThreads] || p.wanted[bpf.RTSGroupGC] {
		t.Errorf("labels are asked for: %+v", p)
	}
	if !math.IsInf(h.Budget.RTS().Rate(), 1) {
		t.Error("there is a limit where none was asked for")
	}
}

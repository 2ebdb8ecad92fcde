package activity_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/activity"
)

// Two capabilities are sampled every millisecond of CPU time. The first runs thread 7 for half of
// the time and thread 8 for a quarter, the second thread 9 for a tenth; for a fifth it is in the
// scheduler. A safe foreign call holds no capability, and its thread does not run.
func TestActivity(t *testing.T) {
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, nil)
	write := func(at uint64, e eventlog.Event) {
		t.Helper()
		if err := w.Write(at, eventlog.NoCap, e); err != nil {
			t.Fatal(err)
		}
	}
	write(0, &eventlog.Capture{PID: 1})
	write(0, &eventlog.EventDef{Index: 0, Requested: "cpu-clock", Granted: "cpu-clock", Unit: "ns"})
	write(0, &eventlog.Nodes{First: 1, Nodes: []eventlog.Node{{Kind: eventlog.FramePC, Addr: 100}}})
	r := rand.New(rand.NewPCG(1, 2))
	const step = 1e6
	for i := range uint64(4000) {
		at := i*step + uint64(r.IntN(step))
		sample := eventlog.Sample{PID: 1, TID: 1, Node: 1, Weight: step, Capability: 0}
		switch x := r.Float64(); {
		case x < 0.5:
			sample.TSO = 7
		case x < 0.75:
			sample.TSO = 8
		default:
			sample.Capability = eventlog.NoCapability
		}
		write(at, &sample)
		other := eventlog.Sample{PID: 1, TID: 2, Node: 1, Weight: step, Capability: 1}
		switch x := r.Float64(); {
		case x < 0.1:
			other.TSO = 9
		case x < 0.3:
		case x < 0.6:
			other.TSO, other.Flags, other.Capability = 10, eventlog.SampleContext, eventlog.NoCapability
		default:
			continue
		}
		write(at, &other)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Load(&log)
	if err != nil {
		t.Fatal(err)
	}
	a := activity.Of(p.Select(profile.Filter{}))
	if a == nil || len(a.Capabilities) != 2 || len(a.Threads) != 3 {
		t.Fatalf("%+v", a)
	}
	within := func(what string, s *activity.Share, truth float64) {
		t.Helper()
		if s.Of < s.Low || s.Of > s.High || truth < s.Low || truth > s.High || s.High-s.Low > 0.2 {
			t.Errorf("%s: %.3f, from %.3f to %.3f; it is %.3f", what, s.Of, s.Low, s.High, truth)
		}
	}
	for i, want := range [][activity.States]float64{{0.75, 0, 0, 0, 0.25}, {0.1, 0, 0, 0.2, 0.7}} {
		c, sum := &a.Capabilities[i], 0.0
		for s := range c.Shares {
			within(activity.State(s).String(), &c.Shares[s], want[s])
			sum += c.Shares[s].Of
		}
		if sum < 0.999 || sum > 1.001 {
			t.Errorf("the shares of capability %d sum to %f", i, sum)
		}
	}
	for i, want := range []struct {
		tso   uint64
		share float64
	}{{7, 0.5}, {8, 0.25}, {9, 0.1}} {
		if a.Threads[i].TSO != want.tso {
			t.Errorf("thread %d is %d, want %d", i, a.Threads[i].TSO, want.tso)
		}
		within("thread", &a.Threads[i].Share, want.share)
	}
}

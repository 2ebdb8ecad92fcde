package text

import (
	"math"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Parts are weighted by their intervals, costs by the target's time.
func TestOverheadOf(t *testing.T) {
	alloc := columns.Event{EventDef: eventlog.EventDef{Granted: "alloc", Unit: "bytes"}}
	p := profile.New(&columns.Log{Events: []columns.Event{{Sampling: eventlog.Sampling{Others: 50}}, alloc}, Overheads: []columns.Overhead{
		{Time: 1e9, Overhead: eventlog.Overhead{IntervalNs: 1e9, TargetNs: 8e8, EventNs: 3e6, AllocNs: 4e6, InterruptNs: 1e6, Interrupts: 50, Asked: 10000, EventsTaken: 1e6, Nursery: 1e6, ProbeHits: 10}},
		{Time: 4e9, Overhead: eventlog.Overhead{IntervalNs: 3e9, TargetNs: 12e8, EventNs: 2e6, Asked: 10000, EventsTaken: 200000, Nursery: 0, ProbeHits: 5, ProbeNs: 900}},
	}})
	o := overheadOf(p)
	near := func(name string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	near("asked", *o.Asked, 0.01)
	near("events", o.Events, 0.003)
	near("alloc", o.Alloc, 0.002)
	near("measured", o.Measured, 0.005)
	near("interrupts", o.Interrupts, 0.0005)
	near("elsewhere", o.Elsewhere, 0.0005)
	near("mean taken", o.EventsTaken.Mean, 0.4)
	near("least taken", o.EventsTaken.Min, 0.2)
	near("last taken", o.EventsTaken.Last, 0.2)
	near("nursery", o.Nursery.Mean, 0.25)
	if o.ProbeHits != 15 || *o.ProbeNs != 900 {
		t.Errorf("%d hits of %d ns", o.ProbeHits, *o.ProbeNs)
	}
	p.Events = p.Events[:1]
	if o := overheadOf(p); o.Nursery != nil || o.Blocks != nil || o.Large != nil {
		t.Error("of a log without allocation is said how much of it was taken")
	}
	if overheadOf(profile.New(&columns.Log{})) != nil {
		t.Error("an overhead is printed of a log without any")
	}
}

// Why measuring cost more than was allowed is said of a short run, and of one that cost more at its begin; of others it is not known.
func TestAbove(t *testing.T) {
	interval := func(target, cost uint64) columns.Overhead {
		return columns.Overhead{Overhead: eventlog.Overhead{IntervalNs: target, TargetNs: target, EventNs: cost, Asked: 10000}}
	}
	for name, c := range map[string]struct {
		intervals []columns.Overhead
		want      string
	}{
		"within":   {[]columns.Overhead{interval(1e9, 1e7), interval(4e9, 4e7)}, ""},
		"short":    {[]columns.Overhead{interval(5e8, 1e7), interval(5e8, 1e7)}, "the program used 1.00 s of CPU time"},
		"at first": {[]columns.Overhead{interval(3e9, 12e7), interval(1e9, 8e6)}, "after the first 3.00 s it was 0.8%"},
		"always":   {[]columns.Overhead{interval(3e9, 12e7), interval(9e9, 12e7)}, ""},
	} {
		got := overheadOf(profile.New(&columns.Log{Overheads: c.intervals})).above(c.intervals)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

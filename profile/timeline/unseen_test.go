package timeline_test

import (
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
	"ccagent/profile/timeline"
)

// Where samples weigh more than a bucket, or more than all CPUs can do in one, the buckets before are
// not said to be idle; between light samples they are.
func TestUnseen(t *testing.T) {
	type sample struct{ time, weight uint64 }
	for name, c := range map[string]struct {
		samples []sample
		want    string
	}{
		"light":            {[]sample{{5, 2}, {95, 2}}, ".........."},
		"the rate falls":   {[]sample{{5, 1}, {15, 1}, {16, 1}, {17, 1}, {18, 1}, {19, 1}, {55, 12}, {65, 1}}, ".?????...."},
		"the last":         {[]sample{{5, 1}, {6, 1}, {7, 1}, {8, 1}, {9, 1}, {35, 12}}, "??????????"},
		"more than 4 CPUs": {[]sample{{5, 1}, {65, 9}, {66, 9}, {67, 9}, {68, 9}, {69, 9}, {75, 1}}, "???????..."},
		"as much as 4":     {[]sample{{5, 1}, {65, 9}, {66, 9}, {67, 9}, {68, 9}, {75, 1}}, ".........."},
		"all are rare":     {[]sample{{5, 20}, {95, 20}}, "??????????"},
	} {
		l := logtest.New()
		for _, s := range c.samples {
			l.Sample(s.time, s.weight, 0)
		}
		l.Write(99, &eventlog.Overhead{})
		tl := timeline.Of(load(t, l.End()).Select(profile.Filter{}), timeline.Options{Buckets: 10})
		got := []byte("..........")
		for i := range tl.Unseen {
			if tl.Unseen[i] {
				got[i] = '?'
			}
		}
		if string(got) != c.want || (tl.Unseen != nil) != slices.Contains(got, '?') {
			t.Errorf("%s: unseen are %s, want %s (steps of %d, samples %d)", name, got, c.want, tl.Step, tl.Samples)
		}
	}
}

// An empty bucket of allocation shows nothing where few samples stand for most bytes.
func TestUnseenAllocation(t *testing.T) {
	for name, c := range map[string]struct {
		heavy uint64 // weight of one of 40 samples
		want  bool
	}{"all alike": {100, false}, "one stands for the rest": {10_000, true}} {
		l := logtest.New()
		l.Write(0, &eventlog.EventDef{Index: 1, Requested: "alloc", Granted: "alloc", Unit: "bytes"})
		for i := range uint64(40) {
			weight := uint64(100)
			if i == 20 {
				weight = c.heavy
			}
			l.SampleOf(i%8*10, eventlog.Sample{Event: 1, Weight: weight})
		}
		l.Write(99, &eventlog.Overhead{})
		p := load(t, l.End())
		alloc := slices.IndexFunc(p.Events, func(e columns.Event) bool { return e.Unit == "bytes" })
		tl := timeline.Of(p.Select(profile.Filter{Event: 1 + alloc}), timeline.Options{Buckets: 10})
		if got := tl.Unseen != nil && tl.Unseen[9] && !tl.Unseen[3]; got != c.want {
			t.Errorf("%s: unseen are %v, of samples %v", name, tl.Unseen, tl.Samples)
		}
	}
}

package timeline_test

import (
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
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

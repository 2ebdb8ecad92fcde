package cpu

import (
	"testing"

	"ccagent/perf"
)

func TestScaling(t *testing.T) {
	for _, c := range []struct {
		from, to perf.Count
		before   float64
		want     float64
	}{
		{perf.Count{}, perf.Count{EnabledNs: 100, RunningNs: 100}, 1, 1},
		{perf.Count{}, perf.Count{EnabledNs: 100, RunningNs: 25}, 1, 4},
		{perf.Count{EnabledNs: 100, RunningNs: 25}, perf.Count{EnabledNs: 300, RunningNs: 125}, 4, 2},
		{perf.Count{EnabledNs: 100, RunningNs: 25}, perf.Count{EnabledNs: 300, RunningNs: 25}, 4, 4}, // not counted at all
		{perf.Count{EnabledNs: 100, RunningNs: 25}, perf.Count{EnabledNs: 100, RunningNs: 25}, 3, 3},
		{perf.Count{EnabledNs: 300, RunningNs: 125}, perf.Count{EnabledNs: 100, RunningNs: 25}, 2, 2}, // a thread ended
	} {
		if got := scaling(c.from, c.to, c.before); got != c.want {
			t.Errorf("%+v to %+v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
	var none *counter
	for _, c := range []struct {
		counter *counter
		want    uint64
	}{{none, 10}, {&counter{scale: 2.5}, 25}, {&counter{scale: 1}, 10}} {
		if got := c.counter.weigh(10); got != c.want {
			t.Errorf("%+v: %d, want %d", c.counter, got, c.want)
		}
	}
}

package cpu

import (
	"testing"

	"ccagent/perf"
)

func TestReduced(t *testing.T) {
	for _, c := range []struct {
		asked perf.Rate
		part  float64
		want  perf.Rate
	}{
		{perf.Rate{Frequency: 997}, 1, perf.Rate{Frequency: 997}},
		{perf.Rate{Frequency: 1000}, 1, perf.Rate{Frequency: 1000}},
		{perf.Rate{Frequency: 997}, 0.2, perf.Rate{Frequency: 199}},
		{perf.Rate{Frequency: 997}, 0.001, perf.Rate{Frequency: 2}},
		{perf.Rate{Frequency: 1}, 0.5, perf.Rate{Frequency: 1}},
		{perf.Rate{Period: 1000}, 0.3, perf.Rate{Period: 3334}},
		{perf.Rate{Period: 1 << 62}, 0.01, perf.Rate{Period: 1 << 62}},
	} {
		if got := reduced(c.asked, c.part); got != c.want {
			t.Errorf("%+v, %v: %+v, want %+v", c.asked, c.part, got, c.want)
		}
	}
}

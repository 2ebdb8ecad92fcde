package cpu

import (
	"math"
	"testing"

	"ccagent/perf"
)

// The rate is the highest that the events' part of the budget pays for, of those that are in
// step with no timer.
func TestAutoRate(t *testing.T) {
	for _, c := range []struct {
		interrupt, asked float64
		limit, want      uint64
	}{
		{0, 0.01, 100_000, 997},
		{2_000, 0.01, 100_000, 487},
		{2_000, 0.02, 100_000, 997},
		{25_000, 0.01, 100_000, 241},
		{math.Inf(1), 0.01, 100_000, 241},
		{math.Inf(1), 0, 100_000, 997},
		{0, 0.01, 500, 487},
		{0, 0.01, 100, 47},
		{0, 0.01, 3, 3},
		{0, 0.01, 0, 997},
	} {
		if got := autoRate(c.interrupt, c.asked, c.limit); got != c.want {
			t.Errorf("an interrupt of %v ns, a budget of %v, a limit of %d: %d Hz, want %d", c.interrupt, c.asked, c.limit, got, c.want)
		}
	}
	for _, hz := range rates {
		if commensurate(perf.Rate{Frequency: hz}) {
			t.Errorf("%d Hz is in step with milliseconds", hz)
		}
	}
	for _, r := range []perf.Rate{{Frequency: 1000}, {Frequency: 250}, {Frequency: 100}, {Frequency: 300}, {Period: 4_000_000}} {
		if !commensurate(r) {
			t.Errorf("%+v is not in step with milliseconds", r)
		}
	}
}

// A part of a chosen rate is again one of the chosen.
func TestLowered(t *testing.T) {
	for _, c := range []struct {
		chosen uint64
		part   float64
		want   uint64
	}{{997, 1, 997}, {997, 0.5, 487}, {241, 0.9, 113}, {241, 0.2, 47}, {241, 0.001, 5}, {3, 1, 5}} {
		if got := lowered(c.chosen, c.part); got != c.want {
			t.Errorf("%v of %d Hz: %d, want %d", c.part, c.chosen, got, c.want)
		}
	}
}

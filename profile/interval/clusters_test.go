package interval

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Of clusters that differ much in weight, each of which has one phase of the work or a few, at least 95 % of the intervals hold
// but for chance, where intervals of samples that are independent hold too seldom; and the more clusters there are the narrower they are.
func TestClustersHold(t *testing.T) {
	const runs, truth = 600, 0.25
	for _, c := range []struct {
		name     string
		clusters int
		weight   func(rng *rand.Rand) float64
		inside   float64 // part of a cluster's weight that is not of its phase
	}{
		{"equal", 40, func(*rand.Rand) float64 { return 1 }, 0},
		{"mixed", 40, func(*rand.Rand) float64 { return 1 }, 0.5},
		{"unequal", 40, func(rng *rand.Rand) float64 { return 0.2 + rng.ExpFloat64() }, 0.2},
		{"many", 400, func(rng *rand.Rand) float64 { return 0.2 + rng.ExpFloat64() }, 0},
	} {
		rng := rand.New(rand.NewPCG(19, uint64(c.clusters)))
		held, few, width := 0, 0, 0.0
		for range runs {
			x, w := make([]float64, c.clusters), make([]float64, c.clusters)
			for i := range w {
				w[i] = c.weight(rng)
				of := 0.0
				if rng.Float64() < truth {
					of = 1
				}
				x[i] = w[i] * (c.inside*truth + (1-c.inside)*of)
			}
			in := Clusters(x, w, w, 1)
			if in.Low <= truth && truth <= in.High {
				held++
			}
			width += (in.High - in.Low) / runs
			// Each cluster counted as 20 samples.
			whole, part := 0.0, 0.0
			for i := range w {
				whole, part = whole+w[i], part+x[i]
			}
			low, high := Binomial(20*float64(c.clusters)*part/whole, 20*float64(c.clusters))
			if low <= truth && truth <= high {
				few++
			}
		}
		// A binomial count of 600 at 95 % is below 548 once in 100 000 times.
		if held < 548 {
			t.Errorf("%s: %d of %d hold", c.name, held, runs)
		}
		if c.inside == 0 && few > 500 {
			t.Errorf("%s: of independent samples' intervals %d hold: the test shows nothing", c.name, few)
		}
		if most := map[int]float64{40: 0.6, 400: 0.2}[c.clusters]; width > most {
			t.Errorf("%s: intervals are %.2f wide", c.name, width)
		}
	}
}

// What samples are known to misjudge the whole by is in the interval, in either direction; intervals are within 0 and 1 whatever they are of.
func TestClustersOff(t *testing.T) {
	x, w := make([]float64, 1000), make([]float64, 1000)
	for i := range w {
		w[i] = 1
		if i%4 == 0 {
			x[i] = 1
		}
	}
	narrow := Clusters(x, w, w, 1)
	for _, off := range []float64{0.5, 2} {
		if in := Clusters(x, w, w, off); in.Low > 0.16 || in.High < 0.38 || narrow.High-narrow.Low > 0.1 {
			t.Errorf("off %v: %+v, %+v without", off, in, narrow)
		}
	}
	for _, c := range [][]float64{{}, {0}, {1}, {1, 0}, {1, 1}, {0, 1}, {1e19, 1e19}} {
		for _, x := range [][]float64{make([]float64, len(c)), c} {
			for _, off := range []float64{1, 1e-9, 1e9} {
				in := Clusters(x, c, c, off)
				if !(in.Low >= 0 && in.Low <= in.High && in.High <= 1) || math.IsNaN(in.Effective) {
					t.Errorf("%v of %v: %+v", x, c, in)
				}
			}
		}
	}
}

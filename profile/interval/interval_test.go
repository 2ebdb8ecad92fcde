package interval

import (
	"math"
	"math/rand/v2"
	"testing"
)

// drawn is a sample: whether it is of the row, and its weight.
type drawn struct {
	in     bool
	weight float64
}

// sums cuts samples into batches.
func sums(samples []drawn) (*Whole, *Part) {
	n := min(Batches, len(samples))
	var w Whole
	var p Part
	w.Reset(n)
	p.Reset(n)
	add := func(to *Part, b int, x float64) {
		to.Samples++
		to.Weight += x
		to.Squares += x * x
		to.Batch[b] += x
	}
	for b := range n {
		for _, s := range samples[len(samples)*b/n : len(samples)*(b+1)/n] {
			add(&w.Part, b, s.weight)
			if s.in {
				add(&p, b, s.weight)
			}
		}
	}
	return &w, &p
}

// independent draws samples of equal weight, a fraction of them in the row.
func independent(r *rand.Rand, n int, share float64) []drawn {
	out := make([]drawn, n)
	for i := range out {
		out[i] = drawn{r.Float64() < share, 1}
	}
	return out
}

// phases runs a program for n sampling intervals that switches between the row and other
// code, and takes a sample in each interval's same place. mean is that of the row's phases,
// in intervals. The truth is what the row took of this run.
func phases(r *rand.Rand, n int, mean, share float64) (out []drawn, truth float64) {
	out = make([]drawn, 0, n)
	offset, at := r.Float64(), 0.0
	for in := r.Float64() < share; at < float64(n); in = !in {
		length := r.ExpFloat64() * mean
		if !in {
			length *= (1 - share) / share
		}
		end := min(at+length, float64(n))
		if in {
			truth += end - at
		}
		for len(out) < n && float64(len(out))+offset < end {
			out = append(out, drawn{in, 1})
		}
		at = end
	}
	return out, truth / float64(n)
}

// bursts draws samples in bursts of equal kind, short against a batch. The truth is the
// long run's share.
func bursts(r *rand.Rand, n int, length, share float64) []drawn {
	out := make([]drawn, n)
	in := r.Float64() < share
	for i := range out {
		out[i] = drawn{in, 1}
		if r.Float64() < 1/length {
			in = r.Float64() < share
		}
	}
	return out
}

// At least 95 % of the intervals hold the truth, where samples resemble their neighbours and
// where their weights differ, and where intervals of independent samples would not do.
// The bound leaves 4.5 standard deviations for chance; the random numbers are fixed.
func TestCoverage(t *testing.T) {
	const trials = 500
	for _, c := range []struct {
		name string
		draw func(r *rand.Rand) ([]drawn, float64)
	}{
		{"12 independent samples", func(r *rand.Rand) ([]drawn, float64) { return independent(r, 12, 0.3), 0.3 }},
		{"100 independent samples, 1 %", func(r *rand.Rand) ([]drawn, float64) { return independent(r, 100, 0.01), 0.01 }},
		{"1000 independent samples", func(r *rand.Rand) ([]drawn, float64) { return independent(r, 1000, 0.3), 0.3 }},
		{"10000 independent samples, 99 %", func(r *rand.Rand) ([]drawn, float64) { return independent(r, 10000, 0.99), 0.99 }},
		{"bursts of 5", func(r *rand.Rand) ([]drawn, float64) { return bursts(r, 4000, 5, 0.3), 0.3 }},
		{"bursts of 20", func(r *rand.Rand) ([]drawn, float64) { return bursts(r, 20000, 20, 0.1), 0.1 }},
		{"phases of a third of an interval", func(r *rand.Rand) ([]drawn, float64) { return phases(r, 1000, 0.3, 0.3) }},
		{"phases of 5 intervals", func(r *rand.Rand) ([]drawn, float64) { return phases(r, 1000, 5, 0.3) }},
		{"phases of a twentieth of the run", func(r *rand.Rand) ([]drawn, float64) { return phases(r, 1000, 50, 0.3) }},
		{"late samples weigh five times as much", func(r *rand.Rand) ([]drawn, float64) {
			s := independent(r, 1000, 0.3)
			for i := range s[500:] {
				s[500+i].weight = 5
			}
			return s, 0.3
		}},
		{"weights with a heavy tail", func(r *rand.Rand) ([]drawn, float64) {
			s := independent(r, 1000, 0.3)
			for i := range s {
				s[i].weight = math.Pow(r.Float64(), -1/2.5) // Pareto
			}
			return s, 0.3
		}},
	} {
		hold := 0
		for trial := range trials {
			s, truth := c.draw(rand.New(rand.NewPCG(uint64(trial), 1)))
			w, p := sums(s)
			if i := w.Share(p); i.Low <= truth && truth <= i.High {
				hold++
			}
		}
		if least := int(0.95*trials - 4.5*math.Sqrt(0.95*0.05*trials)); hold < least {
			t.Errorf("%s: %d of %d intervals hold the truth, want at least %d", c.name, hold, trials, least)
		}
	}
}

// Phases of many batches do not widen intervals: a program that does one thing and then
// another is known about as well as one that alternates between them at random.
func TestPhasesAreNoNoise(t *testing.T) {
	s := make([]drawn, 10000)
	for i := range s {
		s[i] = drawn{i < 5003, 1}
	}
	w, p := sums(s)
	if i := w.Share(p); i.High-i.Low > 0.06 {
		t.Errorf("half a run in one phase: %.3f to %.3f", i.Low, i.High)
	}
}

// A share of zero has the rule of three's upper bound, one of everything its mirror image.
func TestNothingAndEverything(t *testing.T) {
	w, p := sums(make([]drawn, 300))
	if i := w.Share(p); i != (Interval{0, 1, 0}) {
		t.Errorf("samples without weight: %+v", i)
	}
	s := independent(rand.New(rand.NewPCG(1, 1)), 300, 0)
	w, p = sums(s)
	if i := w.Share(p); i.Low != 0 || math.Abs(i.High-3.0/300) > 0.0005 {
		t.Errorf("none of 300: %+v", i)
	}
	if i := w.Share(&w.Part); i.High != 1 || math.Abs(1-i.Low-3.0/300) > 0.0005 || i.Effective != 300 {
		t.Errorf("all of 300: %+v", i)
	}
}

// The order of two parts depends on the samples in which they differ, not on those they
// share.
func TestOrderedByDifference(t *testing.T) {
	part := func(in func(int) bool) *Part {
		s := make([]drawn, 6400)
		for i := range s {
			s[i] = drawn{in(i), 1}
		}
		_, p := sums(s)
		return p
	}
	w := &Whole{*part(func(int) bool { return true })}
	most := part(func(i int) bool { return i%10 != 0 })                // 90 %
	less := part(func(i int) bool { return i%10 != 0 && i%64 != 1 })   // all but 1.4 % of it
	other := part(func(i int) bool { return i%10 == 0 || i%10 < 9 })   // 90 %, 80 % of them shared
	shared := part(func(i int) bool { return i%10 != 0 && i%10 != 9 }) // 80 %
	if !w.Ordered(most, less, less) {
		t.Error("a part of another is as large")
	}
	if w.Ordered(most, other, shared) || w.Ordered(other, most, shared) {
		t.Error("two parts of equal weight have an order")
	}
	if w.Ordered(most, most, most) {
		t.Error("a part comes before itself")
	}
	one := part(func(i int) bool { return i < 3 })
	if w.Ordered(one, part(func(int) bool { return false }), part(func(int) bool { return false })) {
		t.Error("three samples come before none beyond noise")
	}
}

package e2e

import (
	"math"
	"testing"
)

// z is the normal quantile of a two-sided chance of 1e-6.
const z = 4.8916

// wantShare fails unless k of n samples agree with a binomial distribution of probability p,
// with an error probability of 1e-6.
func wantShare(t *testing.T, what string, k, n int, p float64) {
	t.Helper()
	if n == 0 {
		t.Errorf("%s: no samples", what)
		return
	}
	if least, most := atMost(k, n, p), atMost(n-k, n, 1-p); min(least, most) < chance/2 {
		t.Errorf("%s: %d of %d samples = %.4f, want %.4f", what, k, n, float64(k)/float64(n), p)
	}
}

// wantShareAbove fails if the true share behind k of n samples is below p, with an error
// probability of 1e-6.
func wantShareAbove(t *testing.T, what string, k, n int, p float64) {
	t.Helper()
	if n == 0 {
		t.Errorf("%s: no samples", what)
		return
	}
	if atMost(k, n, p) < chance {
		t.Errorf("%s: %d of %d samples = %.4f, want at least %.4f", what, k, n, float64(k)/float64(n), p)
	}
}

// chance is that of an error.
const chance = 1e-6

// atMost is the probability that k or fewer of n samples are of a kind that has a share of p. A normal distribution in its place would
// give a hundredth of it where p is near 1 and n is small.
func atMost(k, n int, p float64) (sum float64) {
	if k >= n || p <= 0 {
		return 1
	}
	choose := func(n, k float64) float64 {
		a, _ := math.Lgamma(n + 1)
		b, _ := math.Lgamma(k + 1)
		c, _ := math.Lgamma(n - k + 1)
		return a - b - c
	}
	for i := range k + 1 {
		i, n := float64(i), float64(n)
		sum += math.Exp(choose(n, i) + i*math.Log(p) + (n-i)*math.Log1p(-p))
	}
	return sum
}

// The bounds are those of the distribution: beside its mean nothing is refused, and what is refused comes less than once in a million.
func TestAtMost(t *testing.T) {
	for _, c := range []struct {
		k, n int
		p    float64
		want float64
	}{
		{0, 1, 0.25, 0.75}, {1, 2, 0.5, 0.75}, {5, 5, 0.999, 1}, {9, 10, 0.9, 1 - math.Pow(0.9, 10)}, {50, 100, 0.5, 0.5397946186935895}, {5000, 10000, 0.75, 0},
		{99, 100, 1, 0}, {0, 100, 0, 1},
	} {
		if got := atMost(c.k, c.n, c.p); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d or fewer of %d at %v: %v, want %v", c.k, c.n, c.p, got, c.want)
		}
	}
}

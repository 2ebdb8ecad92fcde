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
	bound := z*math.Sqrt(p*(1-p)/float64(n)) + 0.5/float64(n)
	if got := float64(k) / float64(n); math.Abs(got-p) > bound {
		t.Errorf("%s: %d of %d samples = %.4f, want %.4f ± %.4f", what, k, n, got, p, bound)
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
	bound := z*math.Sqrt(p*(1-p)/float64(n)) + 0.5/float64(n)
	if got := float64(k) / float64(n); got < p-bound {
		t.Errorf("%s: %d of %d samples = %.4f, want at least %.4f", what, k, n, got, p)
	}
}

// Package paired has the statistics of ratios that were measured in turns.
package paired

import (
	"fmt"
	"math"
	"slices"
)

// Median is that of at least one figure.
func Median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Interval prints the median of ratios as a change in percent, with the bounds between which the true
// median is with at least 95 %, by the sign test.
func Interval(ratios []float64) string {
	s := slices.Sorted(slices.Values(ratios))
	k := signRank(len(s))
	percent := func(x float64) float64 { return 100 * (x - 1) }
	return fmt.Sprintf("%+.2f %% [%+.2f, %+.2f]", percent(Median(s)), percent(s[k]), percent(s[len(s)-1-k]))
}

// signRank is the largest k such that the k+1st smallest and the k+1st largest of n
// values enclose the median with at least 95 %.
func signRank(n int) int {
	tail, term := 0.0, math.Pow(0.5, float64(n))
	k := -1
	for i := 0; i < n/2; i++ {
		tail += term
		if 2*tail > 0.05 {
			break
		}
		k = i
		term *= float64(n-i) / float64(i+1)
	}
	return max(k, 0)
}

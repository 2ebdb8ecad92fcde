package closures

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	sure "ccagent/profile/interval"
)

// batches is the number of batches that blocks are cut into, if there are as many.
const batches = 16

// alpha is the probability that an interval does not hold.
const alpha = 0.05

// interval returns the 95 % interval of a ratio of sums over units, of which each has x of its
// weight w. The units are in the order of time. effective is the number of independent samples
// that would say the ratio as exactly.
func interval(x, w []float64) (low, high, effective float64) {
	var sumX, sumW, squares float64
	for i := range w {
		sumX, sumW, squares = sumX+x[i], sumW+w[i], squares+w[i]*w[i]
	}
	if sumW <= 0 {
		return 0, 1, 0
	}
	units := sumW * sumW / squares // of equal weight
	p := sumX / sumW
	if p <= 0 || p >= 1 {
		three := 1 - math.Pow(alpha, 1/units)
		if p <= 0 {
			return 0, three, units
		}
		return 1 - three, 1, units
	}
	var independent float64
	for i := range w {
		e := x[i] - p*w[i]
		independent += e * e
	}
	n := len(w)
	k := min(batches, n)
	if n > 1 {
		independent *= float64(n) / float64(n-1)
	}
	var differences, last float64
	for b := range k {
		sum := 0.0
		for i := n * b / k; i < n*(b+1)/k; i++ {
			sum += x[i] - p*w[i]
		}
		if b > 0 {
			differences += (sum - last) * (sum - last)
		}
		last = sum
	}
	if k > 1 {
		differences *= float64(k) / float64(2*(k-1))
	}
	variance := max(independent, differences) / (sumW * sumW)
	df := max(1, min(float64(n-1), 2*float64(k-1)/3))
	if differences <= independent {
		df = max(1, float64(n-1))
	}
	// Blocks that are all alike tell no more than the closures in them, of which there are a
	// hundred or two in each.
	effective = units * perBlock
	if variance > 0 {
		t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(1 - alpha/2)
		z := distuv.UnitNormal.Quantile(1 - alpha/2)
		effective = min(effective, p*(1-p)/variance*(z/t)*(z/t))
	}
	effective = max(effective, 1)
	low, high = sure.Binomial(p*effective, effective)
	return min(low, p), max(high, p), effective
}

// perBlock is how many independent samples a block counts for at most.
const perBlock = 64

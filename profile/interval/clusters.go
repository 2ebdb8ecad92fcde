package interval

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// fewBatches are the numbers of batches that clusters are cut into.
var fewBatches = [...]int{8, 16, 32}

// Clusters returns the interval of a share of which few clusters of samples may say most: x is what each cluster has of the
// part, w of the whole that the share is of, and size what the cluster stands for in the run, in the order of time. off is a factor by which samples are
// known to misjudge the whole, 1 if they do not: each part may be off by as much.
//
// The variance is that of the linearised ratio (Cochran §6.3), by clusters, and by 8, 16 and 32 batches of consecutive clusters that stand for
// equal stretches, in which work in phases longer than a cluster, or in step with the sampling, is alike; the one is taken that makes the widest interval. Where few clusters
// weigh most, the variance itself is badly known: its degrees of freedom are Satterthwaite's ("An approximate distribution of estimates of
// variance components", Biometrics 2, 1946), (Σe²)²/Σe⁴. The interval is symmetric in the logarithm of the odds,
// as a share near 0 or 1 errs more to the inside.
func Clusters(x, w, size []float64, off float64) Interval {
	var part, whole, run float64
	for i := range w {
		part, whole, run = part+x[i], whole+w[i], run+size[i]
	}
	units := Units(w)
	switch {
	case whole <= 0:
		return Interval{0, 1, 0}
	case part <= 0:
		return Interval{0, min(1, three(units)*max(off, 1/off)), 0}
	case part >= whole:
		return Interval{max(0, 1-three(units)*max(off, 1/off)), 1, units}
	}
	share := part / whole
	half := 0.0
	batches := func(n int, of func(i int) int) {
		e, square, fourth, used := make([]float64, n), 0.0, 0.0, 0
		seen := make([]bool, n)
		for i := range w {
			if w[i] > 0 {
				b := of(i)
				e[b] += (x[i] - share*w[i]) / whole
				if !seen[b] {
					seen[b], used = true, used+1
				}
			}
		}
		for _, r := range e {
			square, fourth = square+sq(r), fourth+sq(sq(r))
		}
		if used < 2 || fourth <= 0 {
			return
		}
		variance := square * float64(used) / float64(used-1)
		df := max(1, min(float64(used-1), sq(square)/fourth))
		half = max(half, distuv.StudentsT{Mu: 0, Sigma: 1, Nu: df}.Quantile(1-alpha/2)*math.Sqrt(variance))
	}
	batches(len(w), func(i int) int { return i })
	for _, n := range fewBatches {
		at := make([]int, len(w))
		before := 0.0
		for i, s := range size {
			at[i] = min(n-1, int((before+s/2)/run*float64(n)))
			before += s
		}
		batches(n, func(i int) int { return at[i] })
	}
	if half == 0 { // a single cluster, or all alike
		n := max(units, 1)
		low, high := Binomial(share*n, n)
		return Interval{min(low, share), max(high, share), min(share*n, units)}
	}
	half = math.Hypot(half/(share*(1-share)), normal*math.Log(off))
	odds := math.Log(share / (1 - share))
	n := share * (1 - share) / sq(half*share*(1-share)/normal)
	return Interval{1 / (1 + math.Exp(half-odds)), 1 / (1 + math.Exp(-half-odds)), share * n}
}

package interval

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"
)

// Batches is the number of batches that samples are cut into, if there are as many.
const Batches = 64

// alpha is the probability that an interval does not hold.
const alpha = 0.05

// Interval is a 95 % confidence interval of a share, in fractions of 1.
type Interval struct {
	Low, High float64
	// Effective is the number of samples of equal weight, independent of each other, that
	// would give the share as exactly: of the row, as a row's number of samples is. It is 0
	// for a share of zero.
	Effective float64
}

// PlusMinus is the distance from a share to the interval's further end.
func (i Interval) PlusMinus(share float64) float64 { return max(i.High-share, share-i.Low, 0) }

// Part is a set of samples, summed up.
type Part struct {
	Samples uint64
	Weight  float64
	Squares float64   // sum of the samples' squared weights
	Batch   []float64 // weight by batch, in the order of time
}

// Reset makes a part empty, with a number of batches.
func (p *Part) Reset(batches int) {
	p.Samples, p.Weight, p.Squares = 0, 0, 0
	if cap(p.Batch) < batches {
		p.Batch = make([]float64, batches)
	}
	p.Batch = p.Batch[:batches]
	clear(p.Batch)
}

// Add adds the samples of another part, which has the same batches and no sample of p.
func (p *Part) Add(q *Part) {
	p.Samples += q.Samples
	p.Weight += q.Weight
	p.Squares += q.Squares
	for i, w := range q.Batch {
		p.Batch[i] += w
	}
}

// Whole is all the samples that shares are of.
type Whole struct{ Part }

// Effective is the number of samples of equal weight that would be worth as much: Kish's
// (Σw)²/Σw². It is at most the number of samples, and as large where all weigh the same.
func (w *Whole) Effective() float64 {
	if w.Squares <= 0 {
		return 0
	}
	return min(w.Weight*w.Weight/w.Squares, float64(w.Samples))
}

// Share returns the interval of a part's share of the whole.
func (w *Whole) Share(p *Part) Interval {
	n := w.Effective()
	switch {
	case n == 0:
		return Interval{0, 1, 0}
	case p.Weight <= 0:
		return Interval{0, three(n), 0}
	case p.Weight >= w.Weight:
		return Interval{1 - three(n), 1, n}
	}
	share := p.Weight / w.Weight
	independent := (sq(1-share)*p.Squares + sq(share)*(w.Squares-p.Squares)) / sq(w.Weight)
	batched := differences(len(w.Batch), func(i int) float64 { return p.Batch[i] - share*w.Batch[i] }) / sq(w.Weight)
	unseen := three(n) // a few samples that weigh little do not bound a share by less than none would
	n = effective(share*(1-share), independent, batched, len(w.Batch))
	low, high := Binomial(share*n, n)
	return Interval{min(low, share), max(high, share, unseen), min(share*n, float64(p.Samples))}
}

// Unseen is the largest share of which no sample may have been seen.
func (w *Whole) Unseen() float64 {
	var none Part
	return w.Share(&none).High
}

// Ratio returns the interval of a ratio of two sums over units that follow each other in time,
// such as blocks of a nursery: each has x of its weight w. A unit counts for perUnit samples at
// most, however alike all are. A single unit says nothing of the others, and counts for one.
func Ratio(x, w []float64, perUnit float64) Interval {
	var part, whole float64
	for i := range w {
		part, whole = part+x[i], whole+w[i]
	}
	units := Units(w)
	if units < 1.5 {
		perUnit = 1
	}
	switch {
	case whole <= 0:
		return Interval{0, 1, 0}
	case part <= 0:
		return Interval{0, three(units), units}
	case part >= whole:
		return Interval{1 - three(units), 1, units}
	}
	share := part / whole
	residual := func(from, to int) (sum, square float64) {
		for i := from; i < to; i++ {
			e := (x[i] - share*w[i]) / whole
			sum, square = sum+e, square+sq(e)
		}
		return sum, square
	}
	n := len(w)
	_, independent := residual(0, n)
	if n > 1 {
		independent *= float64(n) / float64(n-1) / korn(float64(n-1))
	}
	batches := min(unitBatches, n)
	batched := differences(batches, func(b int) float64 {
		sum, _ := residual(n*b/batches, n*(b+1)/batches)
		return sum
	})
	most := max(1, min(units*perUnit, effective(share*(1-share), independent, batched, batches)))
	low, high := Binomial(share*most, most)
	return Interval{min(low, share), max(high, share), most}
}

// Units is the number of units of equal weight that would be worth as much as those of weights w:
// Kish's (Σw)²/Σw².
func Units(w []float64) float64 {
	var whole, squares float64
	for _, x := range w {
		whole, squares = whole+x, squares+sq(x)
	}
	if squares <= 0 {
		return 0
	}
	return sq(whole) / squares
}

// OrderedUnits is [Whole.Ordered] for sums over units, of each of which a has one part and b another:
// it reports whether the sum of a is larger than that of b beyond noise. perUnit is as of
// [Ratio]. Units that have neither say nothing of the order.
func OrderedUnits(a, b []float64, perUnit float64) bool {
	var x, both []float64
	for i := range a {
		if sum := a[i] + b[i]; sum > 0 {
			x, both = append(x, a[i]), append(both, sum)
		}
	}
	return Ratio(x, both, perUnit).Low > 0.5
}

// unitBatches is the number of batches that units are cut into, if there are as many: they are
// fewer than samples.
const unitBatches = 16

// Ordered reports whether a part of the whole is larger than another beyond noise. shared
// is the weight and the squares of the samples that both have; its batches are not needed.
func (w *Whole) Ordered(a, b, shared *Part) bool {
	da, db := max(0, a.Weight-shared.Weight), max(0, b.Weight-shared.Weight)
	differ := da + db
	if differ <= 0 {
		return false // the same samples
	}
	independent := (max(0, a.Squares-shared.Squares) + max(0, b.Squares-shared.Squares)) / sq(differ)
	batched := differences(len(w.Batch), func(i int) float64 { return a.Batch[i] - b.Batch[i] }) / sq(differ)
	// The share of a under the hypothesis that both are equal is one half, and a difference's
	// variance is four times that of the share.
	n := effective(1, independent, batched, len(w.Batch))
	low, _ := Binomial(n*da/differ, n)
	return low > 0.5
}

// differences is the variance of a sum over batches, from the differences of neighbours.
func differences(n int, of func(int) float64) float64 {
	if n < 2 {
		return 0
	}
	sum, last := 0.0, of(0)
	for i := 1; i < n; i++ {
		x := of(i)
		sum += sq(x - last)
		last = x
	}
	return sum * float64(n) / (2 * float64(n-1))
}

// effective returns the number of independent trials with a variance of unit a trial that
// have the larger one of two variances.
func effective(unit, independent, batched float64, batches int) float64 {
	n := math.Inf(1)
	if independent > 0 {
		n = unit / independent
	}
	if batched > independent {
		n = min(n, unit/batched*shrink()[batches])
	}
	return n
}

// korn is Korn and Graubard's factor for a variance that is estimated with few degrees of
// freedom: the squared ratio of the quantiles of the normal and of Student's distribution.
func korn(df float64) float64 {
	return sq(normal / distuv.StudentsT{Mu: 0, Sigma: 1, Nu: max(1, df)}.Quantile(1-alpha/2))
}

// shrink is that factor by number of batches: differences of neighbours have two degrees of
// freedom in three.
var shrink = sync.OnceValue(func() *[Batches + 1]float64 {
	var out [Batches + 1]float64
	for n := range out {
		out[n] = korn(2 * float64(n-1) / 3)
	}
	return &out
})

// normal is the normal distribution's quantile at 1 − alpha/2.
const normal = 1.959963985

// Few returns how far the interval of a share of one half reaches to each side with a number
// of effective samples, and the largest share of which none of them may be a sample.
func Few(effective float64) (half, unseen float64) {
	low, _ := Binomial(effective/2, effective)
	return 0.5 - low, three(effective)
}

// three is the upper bound of a share of which no sample of n has been seen.
func three(n float64) float64 { return 1 - math.Pow(alpha, 1/n) }

// Binomial is Clopper and Pearson's interval for x successes in n trials; neither need be
// whole.
func Binomial(x, n float64) (low, high float64) {
	x = min(max(x, 0), n)
	high = 1
	if x > 0 {
		low = distuv.Beta{Alpha: x, Beta: n - x + 1}.Quantile(alpha / 2)
	}
	if x < n {
		high = distuv.Beta{Alpha: x + 1, Beta: n - x}.Quantile(1 - alpha/2)
	}
	return low, high
}

func sq(x float64) float64 { return x * x }

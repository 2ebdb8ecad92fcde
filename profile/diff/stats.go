package diff

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// normal95 is the 97.5 % quantile of the normal distribution.
const normal95 = 1.959964

func mean(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// estimated is a difference of means with its standard error.
type estimated struct {
	t, se, df float64
}

// estimate computes Welch's statistic, with the noise as a lower bound of the variances.
// The first na runs are on side A.
func estimate(s *series, na int) estimated {
	var in [64]float64
	mask := in[:0]
	for i := range s.value {
		side := 0.0
		if i < na {
			side = 1
		}
		mask = append(mask, side)
	}
	return s.moments().welch(s, mask, na)
}

// moments holds the sums over all runs from which a row's statistic is computed. Values
// are relative to their mean, so that differences are not lost in rounding the squares.
type moments struct {
	center, sum, squares, noise float64
}

func (s *series) moments() moments {
	m := moments{center: mean(s.value)}
	for i, v := range s.value {
		v -= m.center
		m.sum += v
		m.squares += v * v
		m.noise += s.noise[i]
	}
	return m
}

// welch computes the statistic for a dealing: inA is 1 for the runs on side A.
func (m moments) welch(s *series, inA []float64, na int) estimated {
	var sum, squares, noise float64
	for i, w := range inA {
		v := (s.value[i] - m.center) * w
		sum += v
		squares += v * v
		noise += s.noise[i] * w
	}
	a, b := float64(na), float64(len(inA)-na)
	variance := func(n, sum, squares, noise float64) float64 {
		spread := 0.0
		if n > 1 {
			spread = max(0, squares-sum*sum/n) / (n - 1)
		}
		return max(spread, noise/n)
	}
	va := variance(a, sum, squares, noise) / a
	vb := variance(b, m.sum-sum, m.squares-squares, m.noise-noise) / b
	out := estimated{se: math.Sqrt(va + vb)}
	delta := (m.sum-sum)/b - sum/a
	if out.se > 0 {
		out.t = delta / out.se
	}
	// Welch–Satterthwaite. A side with one run adds no degree of freedom.
	den := 0.0
	if a > 1 {
		den += va * va / (a - 1)
	}
	if b > 1 {
		den += vb * vb / (b - 1)
	}
	out.df = a + b - 2
	if den > 0 {
		out.df = max(1, min(out.df, (va+vb)*(va+vb)/den))
	}
	return out
}

// quantile returns the factor from the standard error to half a 95 % interval.
func (e estimated) quantile() float64 {
	if e.df < 1 {
		return normal95
	}
	return distuv.StudentsT{Mu: 0, Sigma: 1, Nu: e.df}.Quantile(0.975)
}

// p returns the two-sided p-value by Student's distribution.
func (e estimated) p() float64 {
	return 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: max(1, e.df)}.Survival(math.Abs(e.t))
}

// Limits of a permutation test: dealings, and figures read in all dealings.
const (
	maxDealings  = 20_000
	minDealings  = 2_000
	dealingsWork = 200_000_000
)

// tested is the result of testing rows.
type tested struct {
	p, adjusted []float64
	// critical is what each row's statistic must exceed for its adjusted p-value to be at
	// most alpha. Verdicts and intervals both follow from it.
	critical []float64
	method   Method
	dealings int
}

// test tests rows. The first na runs are on side A; each side has at least two.
func test(rows []series, na int, alpha float64) tested {
	n := 0
	if len(rows) > 0 {
		n = len(rows[0].value)
	}
	limit := max(minDealings, min(maxDealings, dealingsWork/max(1, len(rows)*n)))
	ways := binomial(n, na, limit+1)
	least := 1 / float64(ways)
	if 2*na == n {
		least *= 2 // a dealing with the sides swapped is as extreme
	}
	switch {
	case len(rows) == 0:
		return tested{method: WelchHolm}
	case least > alpha:
		return welchHolm(rows, na, alpha)
	case ways <= limit:
		t := maxT(rows, na, everyDeal(n, na), alpha)
		t.method, t.dealings = Permutation, ways
		return t
	default:
		t := maxT(rows, na, randomDeals(n, na, limit), alpha)
		t.method, t.dealings = RandomDeal, limit
		return t
	}
}

// binomial returns n choose k, or limit if that is lower.
func binomial(n, k, limit int) int {
	k = min(k, n-k)
	c := 1
	for i := 1; i <= k; i++ {
		if c = c * (n - k + i) / i; c >= limit {
			return limit
		}
	}
	return c
}

// everyDeal yields every way to deal n runs to the sides, the actual one included.
func everyDeal(n, na int) func(yield func([]float64) bool) {
	return func(yield func([]float64) bool) {
		inA := make([]float64, n)
		var deal func(at, left int) bool
		deal = func(at, left int) bool {
			if left == 0 {
				return yield(inA)
			}
			if n-at < left {
				return true
			}
			inA[at] = 1
			ok := deal(at+1, left-1)
			inA[at] = 0
			return ok && deal(at+1, left)
		}
		deal(0, na)
	}
}

// randomDeals yields the actual dealing and then random ones, which are the same in
// every call.
func randomDeals(n, na, count int) func(yield func([]float64) bool) {
	return func(yield func([]float64) bool) {
		rnd := rand.New(rand.NewPCG(1, 1))
		inA := make([]float64, n)
		for i := range na {
			inA[i] = 1
		}
		for range count {
			if !yield(inA) {
				return
			}
			rnd.Shuffle(n, func(i, j int) { inA[i], inA[j] = inA[j], inA[i] })
		}
	}
}

// maxT computes each row's own p-value and its p-value adjusted by the single-step maxT
// procedure: the part of the dealings in which any row's statistic is as large. All rows have
// the same critical value, so that the rows beyond it are those with a verdict, and the
// largest is a test of the whole profile.
func maxT(rows []series, na int, deals func(func([]float64) bool), alpha float64) tested {
	m := len(rows)
	ms := make([]moments, m)
	// Swapped sides give the same statistic except for rounding.
	reach := make([]float64, m)
	for i := range rows {
		ms[i] = rows[i].moments()
		reach[i] = math.Abs(estimate(&rows[i], na).t) * (1 - 1e-9)
	}
	own := make([]int, m)
	var tops []float64
	for inA := range deals {
		top := 0.0
		for i := range rows {
			t := math.Abs(ms[i].welch(&rows[i], inA, na).t)
			if t >= reach[i] {
				own[i]++
			}
			top = max(top, t)
		}
		tops = append(tops, top)
	}
	slices.SortFunc(tops, func(a, b float64) int { return cmp.Compare(b, a) })
	total := float64(len(tops))
	out := tested{p: make([]float64, m), adjusted: make([]float64, m), critical: make([]float64, m)}
	critical := tops[min(int(alpha*total), len(tops)-1)] / (1 - 1e-9)
	for i := range rows {
		joint, _ := slices.BinarySearchFunc(tops, reach[i], func(top, reach float64) int {
			if top >= reach {
				return -1
			}
			return 1
		})
		out.p[i], out.adjusted[i], out.critical[i] = float64(own[i])/total, float64(joint)/total, critical
	}
	return out
}

// welchHolm computes each row's p-value by Student's distribution and its p-value adjusted
// by Holm's step-down procedure.
func welchHolm(rows []series, na int, alpha float64) tested {
	m := len(rows)
	out := tested{p: make([]float64, m), adjusted: make([]float64, m), critical: make([]float64, m), method: WelchHolm}
	es := make([]estimated, m)
	order := make([]int, m)
	for i := range rows {
		es[i], order[i] = estimate(&rows[i], na), i
		out.p[i] = es[i].p()
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(out.p[a], out.p[b]) })
	last, open := 0.0, m // the number of rows that a row's level is divided by
	for k, i := range order {
		last = max(last, min(1, out.p[i]*float64(m-k)))
		out.adjusted[i] = last
		if last <= alpha {
			open = m - k
		} else if k > 0 && out.adjusted[order[k-1]] <= alpha {
			open = m - k
		}
		out.critical[i] = distuv.StudentsT{Mu: 0, Sigma: 1, Nu: max(1, es[i].df)}.Quantile(1 - alpha/float64(2*open))
	}
	return out
}

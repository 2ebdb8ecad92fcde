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

// pValues tests rows. The first na runs are on side A; each side has at least two.
func pValues(rows []series, na int, alpha float64) (p, adjusted []float64, method Method, dealings int) {
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
		return nil, nil, WelchHolm, 0
	case least > alpha:
		p, adjusted = welchHolm(rows, na)
		return p, adjusted, WelchHolm, 0
	case ways <= limit:
		p, adjusted = maxT(rows, na, everyDeal(n, na))
		return p, adjusted, Permutation, ways
	default:
		p, adjusted = maxT(rows, na, randomDeals(n, na, limit))
		return p, adjusted, RandomDeal, limit
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

// maxT returns each row's own p-value and its p-value adjusted by the step-down maxT
// procedure.
func maxT(rows []series, na int, deals func(func([]float64) bool)) (p, adjusted []float64) {
	m := len(rows)
	ms := make([]moments, m)
	actual := make([]float64, m)
	order := make([]int, m) // by falling statistic
	for i := range rows {
		ms[i] = rows[i].moments()
		actual[i] = math.Abs(estimate(&rows[i], na).t)
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(actual[b], actual[a]) })
	own, joint := make([]int, m), make([]int, m)
	total := 0
	for inA := range deals {
		total++
		top := 0.0
		for k := m - 1; k >= 0; k-- {
			i := order[k]
			t := math.Abs(ms[i].welch(&rows[i], inA, na).t)
			// Swapped sides give the same statistic except for rounding.
			reach := actual[i] * (1 - 1e-9)
			if t >= reach {
				own[i]++
			}
			if top = max(top, t); top >= reach {
				joint[i]++
			}
		}
	}
	p, adjusted = make([]float64, m), make([]float64, m)
	last := 0.0
	for _, i := range order {
		p[i] = float64(own[i]) / float64(total)
		last = max(last, float64(joint[i])/float64(total))
		adjusted[i] = last
	}
	return p, adjusted
}

// welchHolm returns each row's p-value by Student's distribution and its p-value
// adjusted by Holm's step-down procedure.
func welchHolm(rows []series, na int) (p, adjusted []float64) {
	m := len(rows)
	p, adjusted = make([]float64, m), make([]float64, m)
	order := make([]int, m)
	for i := range rows {
		p[i], order[i] = estimate(&rows[i], na).p(), i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	last := 0.0
	for k, i := range order {
		last = max(last, min(1, p[i]*float64(m-k)))
		adjusted[i] = last
	}
	return p, adjusted
}

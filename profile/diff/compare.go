package diff

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Normalise determines what the figures are relative to.
type Normalise uint8

// Figures are weights, or fractions of their run's total.
const (
	None Normalise = iota
	Share
)

func (n Normalise) String() string {
	if n == Share {
		return "share"
	}
	return "none"
}

// Options of a comparison. The zero value compares shares' weights at alpha 0.05.
type Options struct {
	Metric    Metric
	Normalise Normalise
	Alpha     float64 // probability of any false verdict; 0 means DefaultAlpha
}

// DefaultAlpha is the accepted probability of one or more false verdicts.
const DefaultAlpha = 0.05

// MinShare is the fraction of all weight below which an element is not tested.
const MinShare = 0.001

// Verdict is the result of a row's test.
type Verdict string

// The verdicts. Faster and Slower are for weights of time, Less and More for others.
const (
	Untested Verdict = "n=1: no test" // a side has one run
	Small    Verdict = "too small"    // below MinShare
	Same     Verdict = "no change shown"
	Faster   Verdict = "faster"
	Slower   Verdict = "slower"
	Less     Verdict = "less"
	More     Verdict = "more"
	// Moved is of a difference that another element of the same caller makes up for: the
	// caller's own cost has not changed nearly as much.
	Moved Verdict = "moved"
)

// Significant reports whether a verdict states a difference.
func (v Verdict) Significant() bool {
	return v == Faster || v == Slower || v == Less || v == More || v == Moved
}

// Side is one group's figures for a row.
type Side struct {
	Mean    float64   // over the runs
	Runs    []float64 // by run
	Samples uint64    // of all runs
}

// Row is an element on both sides. Figures are in the event's unit per run, or fractions
// of the run's total.
type Row struct {
	About
	A, B  Side
	Delta float64 // B − A
	// Ratio is Delta as a fraction of A; infinite if A is zero.
	Ratio float64
	// Low and High are the confidence interval of Delta, of the test that gives the verdict:
	// it excludes 0 if and only if the verdict states a difference, and all intervals of a
	// comparison hold together with a probability of 1 − alpha. For single runs and for rows
	// that are too small to be tested it is of the row alone, at 95 %; for single runs it
	// covers only the sampling noise.
	Low, High float64
	// Caller is the element whose code called this one's, where the verdict is Moved.
	Caller string
	// P is the row's own p-value. Adjusted is the one adjusted for the number of
	// rows, which the verdict uses. They are NaN if there is no test.
	P, Adjusted float64
	Verdict     Verdict
	// InA and InB are set if the element occurs on that side.
	InA, InB bool
}

// Result is a comparison.
type Result struct {
	A, B     []*Run
	Options  Options
	Method   Method
	Dealings int // for a permutation test: number of assignments of runs to sides
	Tested   int // number of rows tested
	// Whole is the p-value of the hypothesis that no element differs; NaN if there is no
	// test. No row has a verdict unless it is at most alpha.
	Whole float64
	// Rows are ordered by verdict, significant ones first, then by the size of the
	// difference.
	Rows  []Row
	Total Row // of all samples, tested separately; always in the event's unit
}

// Method is the way in which p-values were computed.
type Method string

// The methods.
const (
	NoTest      Method = "none: one run a side says nothing about the spread between runs"
	Permutation Method = "permutation"
	RandomDeal  Method = "random permutation"
	WelchHolm   Method = "Welch's t, Holm"
)

// ErrNothing is the error for a side without runs.
var ErrNothing = errors.New("compare runs: each side needs at least one log")

// MismatchError is the error for runs that cannot be compared.
type MismatchError struct {
	What string // "unit"
	A, B *Run
	x, y string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("compare runs: %s has %s %q, %s has %q; choose an event that both have with --event", e.A.Name, e.What, e.x, e.B.Name, e.y)
}

// Compare compares two groups of runs of one level. It does not change the runs.
func Compare(a, b []*Run, o Options) (*Result, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, ErrNothing
	}
	if o.Alpha <= 0 {
		o.Alpha = DefaultAlpha
	}
	all := slices.Concat(a, b)
	for _, r := range all[1:] {
		for _, x := range [][3]string{{"unit", all[0].Unit, r.Unit}, {"level", all[0].Level.String(), r.Level.String()}} {
			if x[1] != x[2] {
				return nil, &MismatchError{x[0], all[0], r, x[1], x[2]}
			}
		}
	}
	res := &Result{A: a, B: b, Options: o}
	c := newComparison(a, b, o)
	res.Rows = c.rows
	res.Method = c.test(res)
	time := all[0].Unit == "ns" || all[0].Unit == "cycles"
	for i := range res.Rows {
		c.judge(&res.Rows[i], &c.table[i], o.Alpha, time && o.Normalise == None)
	}
	c.moves()
	res.total(a, b, time)
	slices.SortStableFunc(res.Rows, func(x, y Row) int {
		sx, sy := x.Verdict.Significant(), y.Verdict.Significant()
		switch {
		case sx && !sy:
			return -1
		case sy && !sx:
			return 1
		}
		return cmp.Or(cmp.Compare(math.Abs(y.Delta), math.Abs(x.Delta)), cmp.Compare(x.Name, y.Name))
	})
	return res, nil
}

// comparison is the table of each run's value for each element.
type comparison struct {
	o     Options
	na    int
	n     int // runs
	rows  []Row
	table []series
	logs  []series // the tested values
	whole float64  // weight of all runs, in the figures' unit
	keys  []string
	runs  []*Run
	under []map[string]float64 // by row: weight by the key of the caller, of all runs
	above []series             // by row: the weights of the samples with it on the stack
}

// series is one row's values: each run's value and its sampling variance.
type series struct {
	value, noise []float64
}

func newComparison(a, b []*Run, o Options) *comparison {
	c := &comparison{o: o, na: len(a), n: len(a) + len(b)}
	same := aliases(a, b)
	index := make(map[string]int)
	runs := slices.Concat(a, b)
	c.runs = runs
	named := func(key string, j int) string {
		if to, ok := same[key]; ok && j >= c.na {
			return to
		}
		return key
	}
	for j, r := range runs {
		c.whole += c.figure(r, r.Total)
		for i := range r.elements {
			f := &r.elements[i]
			key := named(f.key, j)
			at, ok := index[key]
			if !ok {
				at = len(c.rows)
				index[key] = at
				c.rows = append(c.rows, Row{})
				c.keys = append(c.keys, key)
				c.table = append(c.table, newSeries(c.n))
				c.above = append(c.above, newSeries(c.n))
				c.under = append(c.under, make(map[string]float64))
			}
			row := &c.rows[at]
			row.About = f.about // as in the newest build
			if j < c.na {
				row.InA = true
				row.A.Samples += f.samples
			} else {
				row.InB = true
				row.B.Samples += f.samples
			}
			c.table[at].value[j] = c.figure(r, f.weight[o.Metric])
			c.above[at].value[j] = c.figure(r, f.weight[ByInclusive])
			for caller, w := range f.callers {
				c.under[at][named(r.elements[caller].key, j)] += c.figure(r, w)
			}
		}
	}
	one := 0.0
	for _, r := range runs {
		one += c.figure(r, r.each()) / float64(c.n)
	}
	for at := range c.rows {
		s := &c.table[at]
		for j, r := range runs {
			if o.Normalise == Share {
				s.noise[j] = r.shareNoise(s.value[j] * r.Total)
			} else {
				s.noise[j] = r.noise(s.value[j])
			}
		}
		c.rows[at].sides(s, c.na)
		c.logs = append(c.logs, s.logs(one))
	}
	return c
}

func newSeries(n int) series { return series{make([]float64, n), make([]float64, n)} }

// logs returns the logarithms of a series. If a value is zero, at least the weight of one
// sample is added to all.
func (s *series) logs(one float64) series {
	l := series{make([]float64, len(s.value)), make([]float64, len(s.value))}
	for j, v := range s.value {
		if v += one; v > 0 {
			l.value[j], l.noise[j] = math.Log(v), s.noise[j]/(v*v)
		}
	}
	return l
}

// figure returns a weight as the options require it.
func (c *comparison) figure(r *Run, weight float64) float64 {
	switch {
	case c.o.Normalise == None:
		return weight
	case r.Total == 0:
		return 0
	}
	return weight / r.Total
}

// sides computes the figures that need no test.
func (r *Row) sides(s *series, na int) {
	r.A.Runs, r.B.Runs = s.value[:na:na], s.value[na:]
	r.A.Mean, r.B.Mean = mean(r.A.Runs), mean(r.B.Runs)
	r.Delta = r.B.Mean - r.A.Mean
	switch {
	case r.A.Mean != 0:
		r.Ratio = r.Delta / r.A.Mean
	case r.Delta != 0:
		r.Ratio = math.Inf(1)
	}
	r.P, r.Adjusted = math.NaN(), math.NaN()
	est := estimate(s, na)
	half := est.quantile() * est.se
	if na == 1 || len(s.value)-na == 1 {
		half = normal95 * math.Sqrt(mean(s.noise[:na])/float64(na)+mean(s.noise[na:])/float64(len(s.value)-na))
	}
	r.Low, r.High = r.Delta-half, r.Delta+half
}

// judge sets a row's verdict.
func (c *comparison) judge(r *Row, s *series, alpha float64, time bool) {
	single := c.na == 1 || c.n-c.na == 1
	switch {
	case single:
		r.Verdict = Untested
	case !c.worth(s):
		r.Verdict = Small
	case !(r.Adjusted <= alpha) || r.Low <= 0 && r.High >= 0:
		r.Verdict = Same
	case r.Delta < 0:
		r.Verdict = pick(time, Faster, Less)
	default:
		r.Verdict = pick(time, Slower, More)
	}
}

func pick(time bool, a, b Verdict) Verdict {
	if time {
		return a
	}
	return b
}

// worth reports whether a row is large enough to be tested, on both sides together.
func (c *comparison) worth(s *series) bool {
	sum := 0.0
	for _, v := range s.value {
		sum += v
	}
	return c.whole > 0 && sum >= MinShare*c.whole
}

// test computes the p-values of all rows that are large enough, and returns the method.
func (c *comparison) test(res *Result) Method {
	res.Whole = math.NaN()
	if c.na == 1 || c.n-c.na == 1 {
		return NoTest
	}
	var at []int
	var rows []series
	for i := range c.table {
		if c.worth(&c.table[i]) {
			at, rows = append(at, i), append(rows, c.logs[i])
		}
	}
	res.Tested = len(rows)
	t := test(rows, c.na, c.o.Alpha)
	for k, i := range at {
		c.rows[i].P, c.rows[i].Adjusted = t.p[k], t.adjusted[k]
		c.rows[i].interval(&rows[k], c.na, t.critical[k])
		if k == 0 || t.adjusted[k] < res.Whole {
			res.Whole = t.adjusted[k]
		}
	}
	res.Dealings = t.dealings
	return t.method
}

// interval sets a row's interval to what the test, with a critical value of its statistic,
// does not reject. The test is of the logarithms' difference; the logarithmic mean of both
// sides, Delta divided by that, makes it one of weights.
func (r *Row) interval(logs *series, na int, critical float64) {
	est := estimate(logs, na)
	d := est.t * est.se
	scale := (r.A.Mean + r.B.Mean) / 2
	if r.Delta*d > 0 {
		scale = r.Delta / d
	}
	half := scale * critical * est.se
	r.Low, r.High = r.Delta-half, r.Delta+half
	if math.Abs(est.t) <= critical || r.Delta*d < 0 {
		// Means and logarithms of very uneven runs may point in different directions.
		r.Low, r.High = min(r.Low, 0), max(r.High, 0)
	}
}

// total compares the totals. This is a single test, so it needs no adjustment.
func (res *Result) total(a, b []*Run, time bool) {
	s := series{}
	for _, r := range slices.Concat(a, b) {
		s.value, s.noise = append(s.value, r.Total), append(s.noise, r.noise(r.Total))
	}
	t := &res.Total
	t.Name, t.InA, t.InB = "total", true, true
	for _, r := range a {
		t.A.Samples += r.Samples
	}
	for _, r := range b {
		t.B.Samples += r.Samples
	}
	t.sides(&s, len(a))
	if len(a) > 1 && len(b) > 1 {
		logs := s.logs(0)
		x := test([]series{logs}, len(a), res.Options.Alpha)
		t.P, t.Adjusted = x.p[0], x.adjusted[0]
		t.interval(&logs, len(a), x.critical[0])
	}
	c := &comparison{na: len(a), n: len(a) + len(b), whole: 1}
	c.judge(t, &s, res.Options.Alpha, time)
}

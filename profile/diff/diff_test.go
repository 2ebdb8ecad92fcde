package diff

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"ccagent/profile"
)

// program is a simulated program. Each element's cost varies from run to run, and
// sampling adds noise. Elements overlap: every third is a cause of all samples of its two
// successors.
type program struct {
	cost   []float64 // seconds
	spread float64   // coefficient of variation between runs
}

const sampleNs = 1e6

func (p program) run(rnd *rand.Rand) *Run {
	r := &Run{Name: "made up", Event: "cycles", Unit: "ns"}
	load := math.Exp(p.spread * rnd.NormFloat64()) // the machine's other load
	weight := make([]float64, len(p.cost))
	for i, c := range p.cost {
		want := c * 1e9 * load * math.Exp(p.spread*rnd.NormFloat64()) / sampleNs
		n := math.Max(0, math.Round(want+math.Sqrt(want)*rnd.NormFloat64()))
		weight[i] = n * sampleNs
		r.Samples += uint64(n)
		r.Total += weight[i]
	}
	for i := range weight {
		w := weight[i]
		if i%3 == 0 {
			for _, j := range []int{i + 1, i + 2} {
				if j < len(weight) {
					w += weight[j]
				}
			}
		}
		name := fmt.Sprintf("M.f%d", i)
		f := figure{key: name, about: About{Name: name}, weight: [metrics]float64{w, weight[i], w}, samples: uint64(w / sampleNs)}
		r.elements = append(r.elements, f)
	}
	return r
}

func (p program) runs(rnd *rand.Rand, n int) []*Run {
	out := make([]*Run, n)
	for i := range out {
		out[i] = p.run(rnd)
	}
	return out
}

func standard() program {
	p := program{spread: 0.05}
	for i := range 30 {
		p.cost = append(p.cost, 2/float64(1+i))
	}
	return p
}

// alarms returns the number of trials that compare A with A and give a false verdict.
func alarms(t *testing.T, p program, na, nb, trials int, o Options) int {
	t.Helper()
	bad := 0
	for trial := range trials {
		rnd := rand.New(rand.NewPCG(uint64(trial), uint64(100*na+nb)))
		res, err := Compare(p.runs(rnd, na), p.runs(rnd, nb), o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range res.Rows {
			if res.Rows[i].Verdict.Significant() {
				bad++
				break
			}
		}
	}
	return bad
}

// At most 5 % of comparisons of a program with itself report any difference. The bound
// leaves 4.5 standard deviations for chance.
func TestNothingIsSignificantAgainstItself(t *testing.T) {
	few := program{cost: []float64{0.02, 0.01, 0.004, 0.002, 0.001}, spread: 0} // counts below ten
	for _, c := range []struct {
		name   string
		p      program
		na, nb int
		o      Options
		trials int
	}{
		{"5+5", standard(), 5, 5, Options{}, 200},
		{"4+6", standard(), 4, 6, Options{}, 200},
		{"3+3", standard(), 3, 3, Options{}, 400},
		{"2+2", standard(), 2, 2, Options{}, 400},
		{"10+10", standard(), 10, 10, Options{}, 40},
		{"5+5 shares", standard(), 5, 5, Options{Normalise: Share}, 200},
		{"3+3 shares", standard(), 3, 3, Options{Normalise: Share}, 400},
		{"2+2 hardly any samples", few, 2, 2, Options{}, 400},
		{"5+5 hardly any samples", few, 5, 5, Options{Metric: ByOnly}, 200},
	} {
		got := alarms(t, c.p, c.na, c.nb, c.trials, c.o)
		n := float64(c.trials)
		limit := int(n*DefaultAlpha + 4.5*math.Sqrt(n*DefaultAlpha*(1-DefaultAlpha)))
		if got > limit {
			t.Errorf("%s: %d of %d comparisons of a program with itself find a difference, %d at most are due to chance", c.name, got, c.trials, limit)
		}
	}
}

// A planted change is found, with its sign and size, and almost nothing else is reported.
func TestPlantedChangeIsFound(t *testing.T) {
	const trials = 60
	for _, c := range []struct {
		na, nb int
		factor float64
	}{{5, 5, 1.4}, {5, 5, 0.6}, {3, 3, 4}, {8, 8, 1.25}, {4, 4, 0}} {
		found, others, covered := 0, 0, 0
		for trial := range trials {
			rnd := rand.New(rand.NewPCG(uint64(trial), 7))
			before, after := standard(), standard()
			after.cost[1] *= c.factor // f1 overlaps with f0
			truth := (after.cost[1] - before.cost[1]) * 1e9 * math.Exp(before.spread*before.spread)
			res, err := Compare(before.runs(rnd, c.na), after.runs(rnd, c.nb), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range res.Rows {
				switch r := &res.Rows[i]; {
				case r.Name == "M.f1":
					if r.Low <= truth && truth <= r.High {
						covered++
					}
					want := Slower
					if c.factor < 1 {
						want = Faster
					}
					if r.Verdict == want {
						found++
					}
				case r.Name != "M.f0" && r.Verdict.Significant():
					others++
				}
			}
		}
		if found < trials*9/10 {
			t.Errorf("%d+%d runs, f1 × %.2f: found in %d of %d", c.na, c.nb, c.factor, found, trials)
		}
		if others > trials/5 {
			t.Errorf("%d+%d runs, f1 × %.2f: %d other verdicts in %d comparisons", c.na, c.nb, c.factor, others, trials)
		}
		if covered < trials*5/6 {
			t.Errorf("%d+%d runs, f1 × %.2f: %d of %d intervals hold the truth", c.na, c.nb, c.factor, covered, trials)
		}
	}
}

// With a single run on a side there is no verdict and no p-value, but an interval for the
// sampling noise.
func TestSingleRunsAreNotTested(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	p := standard()
	for _, n := range [][2]int{{1, 1}, {1, 6}, {6, 1}} {
		res, err := Compare(p.runs(rnd, n[0]), p.runs(rnd, n[1]), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if res.Method != NoTest || res.Tested != 0 {
			t.Errorf("%v runs: method %q, %d tested", n, res.Method, res.Tested)
		}
		for _, r := range append(res.Rows, res.Total) {
			if r.Verdict != Untested || !math.IsNaN(r.P) || !math.IsNaN(r.Adjusted) {
				t.Errorf("%v runs: %s has verdict %q, p %v", n, r.Name, r.Verdict, r.P)
			}
			if !(r.Low < r.Delta && r.Delta < r.High) {
				t.Errorf("%v runs: %s has no interval: %v %v %v", n, r.Name, r.Low, r.Delta, r.High)
			}
		}
	}
}

// The interval for one run per side covers the sampling noise, the difference of two
// Poisson counts.
func TestNoiseOfSingleRuns(t *testing.T) {
	one := func(n, of uint64) []*Run {
		return []*Run{{Unit: "ns", Samples: of, Total: float64(of) * sampleNs, elements: []figure{
			{key: "f", about: About{Name: "f"}, weight: [metrics]float64{float64(n) * sampleNs}}}}}
	}
	res, err := Compare(one(400, 1000), one(500, 1000), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := 1.959964 * math.Sqrt(400+500) * sampleNs
	if got := (res.Rows[0].High - res.Rows[0].Low) / 2; math.Abs(got-want) > 1e-6*want {
		t.Errorf("half the interval is %v, want %v", got, want)
	}
	res, err = Compare(one(400, 1000), one(500, 1000), Options{Normalise: Share})
	if err != nil {
		t.Fatal(err)
	}
	want = 1.959964 * math.Sqrt(0.4*0.6/1000+0.5*0.5/1000)
	if got := (res.Rows[0].High - res.Rows[0].Low) / 2; math.Abs(got-want) > 1e-9 {
		t.Errorf("half the interval of shares is %v, want %v", got, want)
	}
}

// Swapping the sides reverses the signs and changes nothing else.
func TestSwappingSides(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	p, q := standard(), standard()
	q.cost[4] *= 1.5
	for _, n := range [][2]int{{5, 5}, {4, 7}, {2, 3}, {1, 4}} {
		a, b := p.runs(rnd, n[0]), q.runs(rnd, n[1])
		there, err1 := Compare(a, b, Options{})
		back, err2 := Compare(b, a, Options{})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		by := make(map[string]*Row)
		for i := range back.Rows {
			by[back.Rows[i].Name] = &back.Rows[i]
		}
		near := func(x, y float64) bool {
			return math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) <= 1e-9*math.Max(math.Abs(x), math.Abs(y))
		}
		for i := range there.Rows {
			x := &there.Rows[i]
			y := by[x.Name]
			if y == nil || !near(x.Delta, -y.Delta) || !near(x.P, y.P) || !near(x.Adjusted, y.Adjusted) || !near(x.Low, -y.High) ||
				x.Verdict.Significant() != y.Verdict.Significant() {
				t.Errorf("%v runs: %+v against %+v", n, x, y)
			}
		}
	}
}

// Welch's statistic equals values computed by hand, and p equals the tables of Student's
// distribution: t = 2.571 at 5 degrees of freedom has p = 0.05.
func TestWelch(t *testing.T) {
	s := series{value: []float64{1, 2, 3, 7, 9}, noise: make([]float64, 5)}
	e := estimate(&s, 3)
	// means 2 and 8, variances 1 and 2: se² = 1/3 + 2/2, df = (4/3)² / ((1/3)²/2 + 1²/1)
	if want := 6 / math.Sqrt(4.0/3); math.Abs(e.t-want) > 1e-12 {
		t.Errorf("t = %v, want %v", e.t, want)
	}
	if want := (16.0 / 9) / (1.0/18 + 1); math.Abs(e.df-want) > 1e-12 {
		t.Errorf("df = %v, want %v", e.df, want)
	}
	if p := (estimated{t: 2.570582, df: 5}).p(); math.Abs(p-0.05) > 1e-6 {
		t.Errorf("p = %v, want 0.05", p)
	}
	if q := (estimated{df: 5}).quantile(); math.Abs(q-2.570582) > 1e-5 {
		t.Errorf("quantile = %v", q)
	}
	s.noise = []float64{4, 4, 4, 4, 4}
	if e := estimate(&s, 3); math.Abs(e.se-math.Sqrt(4.0/3+2)) > 1e-12 {
		t.Errorf("noise does not bound the variance from below: se %v", e.se)
	}
}

// With five separated runs per side, 2 of 252 dealings are as extreme as the actual one.
func TestPermutationCounts(t *testing.T) {
	rows := []series{{value: []float64{1, 2, 3, 4, 5, 11, 12, 13, 14, 15}, noise: make([]float64, 10)}}
	got := test(rows, 5, 0.05)
	if want := 2.0 / 252; got.method != Permutation || got.dealings != 252 || got.p[0] != want || got.adjusted[0] != want {
		t.Errorf("%+v", got)
	}
	if n := binomial(20, 10, 1<<30); n != 184756 {
		t.Errorf("20 choose 10 is %d", n)
	}
	if got := test([]series{{value: make([]float64, 24), noise: make([]float64, 24)}}, 12, 0.05); got.method != RandomDeal || got.dealings != maxDealings {
		t.Errorf("12+12 runs: %q with %d", got.method, got.dealings)
	}
}

// Comparing no runs, different units or different levels is refused with a typed error.
func TestRefusals(t *testing.T) {
	ns, bytes := &Run{Name: "a", Unit: "ns"}, &Run{Name: "b", Unit: "bytes"}
	if _, err := Compare(nil, []*Run{ns}, Options{}); !errors.Is(err, ErrNothing) {
		t.Errorf("no runs: %v", err)
	}
	var mismatch *MismatchError
	if _, err := Compare([]*Run{ns}, []*Run{bytes}, Options{}); !errors.As(err, &mismatch) {
		t.Errorf("units differ: %v", err)
	}
	if _, err := Compare([]*Run{ns}, []*Run{{Unit: "ns", Level: profile.LevelFile}}, Options{}); !errors.As(err, &mismatch) {
		t.Errorf("levels differ: %v", err)
	}
	// Runs without samples can be compared and give no verdict.
	res, err := Compare([]*Run{ns, ns}, []*Run{ns, ns}, Options{})
	if err != nil || len(res.Rows) != 0 || res.Total.Verdict.Significant() {
		t.Errorf("empty runs: %+v, %v", res, err)
	}
}

// In every comparison, a row has a verdict if and only if its interval excludes 0, and none
// has one unless the test of the whole profile says that anything differs.
func TestIntervalsAndVerdictsAgree(t *testing.T) {
	for _, n := range [][2]int{{2, 2}, {3, 3}, {4, 4}, {5, 5}, {3, 6}} {
		for trial := range 12 {
			rnd := rand.New(rand.NewPCG(uint64(trial), uint64(n[0])))
			before, after := standard(), standard()
			for i := range after.cost {
				if trial%2 == 1 && i%7 == 1 {
					after.cost[i] *= 1 + 0.1*float64(trial)
				}
			}
			for _, o := range []Options{{}, {Normalise: Share}, {Metric: ByOnly, Alpha: 0.2}} {
				res, err := Compare(before.runs(rnd, n[0]), after.runs(rnd, n[1]), o)
				if err != nil {
					t.Fatal(err)
				}
				any := false
				for _, r := range append(res.Rows, res.Total) {
					if r.Verdict == Small {
						continue
					}
					if excludes := r.Low > 0 || r.High < 0; excludes != r.Verdict.Significant() {
						t.Errorf("%v runs: %s is %q, %v from %v to %v, p %v", n, r.Name, r.Verdict, r.Delta, r.Low, r.High, r.Adjusted)
					}
					if !(r.Low <= r.Delta && r.Delta <= r.High) {
						t.Errorf("%v runs: %s: %v is not from %v to %v", n, r.Name, r.Delta, r.Low, r.High)
					}
					any = any || r.Verdict.Significant() && r.Name != "total"
				}
				if any != (res.Whole <= res.Options.Alpha) {
					t.Errorf("%v runs: whole p %v, any row %v", n, res.Whole, any)
				}
			}
		}
	}
}

// Cost that goes from one element to another of the same caller has moved; the same changes
// under different callers are a regression and an improvement.
func TestMovedIsNoRegression(t *testing.T) {
	for _, together := range []bool{true, false} {
		runs := func(seed uint64, f, g float64) []*Run {
			var out []*Run
			for k := range 5 {
				rnd := rand.New(rand.NewPCG(seed, uint64(k)))
				r := program{cost: []float64{f, 0, 0, g}, spread: 0.01}.run(rnd)
				caller, other := len(r.elements), len(r.elements)+1
				if together {
					other = caller
				}
				w, v := r.elements[0].weight[ByOnly], r.elements[3].weight[ByOnly]
				r.elements[0].callers = map[int]float64{caller: w}
				r.elements[3].callers = map[int]float64{other: v}
				sum := [2]float64{w, v}
				if together {
					sum = [2]float64{w + v, 0}
				}
				for i, name := range []string{"M.caller", "M.other"} {
					r.elements = append(r.elements, figure{key: name, about: About{Name: name}, weight: [metrics]float64{0, 0, sum[i]}})
				}
				out = append(out, r)
			}
			return out
		}
		res, err := Compare(runs(1, 1, 2), runs(2, 1.5, 1.5), Options{Metric: ByOnly})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]Verdict{"M.f0": Slower, "M.f3": Faster}
		if together {
			want = map[string]Verdict{"M.f0": Moved, "M.f3": Moved}
		}
		for i := range res.Rows {
			r := &res.Rows[i]
			if v, ok := want[r.Name]; ok && (r.Verdict != v || (v == Moved) != (r.Caller == "M.caller")) {
				t.Errorf("one caller %v: %s is %q of %q, want %q", together, r.Name, r.Verdict, r.Caller, v)
			}
		}
	}
}

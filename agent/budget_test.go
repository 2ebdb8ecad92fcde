package agent

import (
	"math/rand/v2"
	"testing"

	"ccagent/perf"
)

// measuredRun is what samples of a simulated target took.
type measuredRun struct {
	part    float64 // of its time
	changes int     // of the rate
	taken   float64
}

// simulate runs a target under a budget for some seconds, a twentieth of a second at
// a time. Of what an overflow costs, part is the interrupt's.
func simulate(b *budget, seconds int, hz, each, part float64, rng *rand.Rand) (r measuredRun) {
	s := b.last
	var cost float64
	for range 20 * seconds {
		s.target += 50e6
		overflows := hz / 20 * b.part
		c := overflows * each * (1 - part) * (0.5 + rng.Float64())
		n := uint64(overflows + rng.Float64())
		s.eventN += n
		s.taken += n
		s.events += uint64(c)
		s.interrupts += uint64(overflows * each * part)
		s.walk = uint64(each)
		cost += c + overflows*each*part
		r.taken += overflows
		before := b.part
		b.pass(s, 2)
		if b.part != before {
			r.changes++
		}
	}
	r.part = cost / (float64(seconds) * 1e9)
	return r
}

func TestBudgetHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ asked, hz, each, part float64 }{
		{0.01, 997, 3000, 0}, {0.01, 997, 30000, 0}, {0.005, 997, 10000, 0}, {0.002, 10000, 5000, 0}, {0.05, 50000, 4000, 0},
		{0.01, 997, 30000, 0.9}, {0.005, 997, 30000, 0.9}, {0.01, 997, 5000, 0.4},
	} {
		allowed, free := c.asked*eventsPart, c.hz*c.each/1e9
		for _, seconds := range []int{10, 60} {
			b := newBudget(c.asked)
			r := simulate(b, seconds, c.hz, c.each, c.part, rng)
			if r.part > 1.05*allowed {
				t.Errorf("%+v, %d s: samples took %.5f, allowed %.5f", c, seconds, r.part, allowed)
			}
			if free < 0.9*allowed && b.part < 1 {
				t.Errorf("%+v, %d s: only %.3f are sampled, though all would take %.5f", c, seconds, b.part, free)
			}
			if free > allowed && r.part < 0.7*allowed {
				t.Errorf("%+v, %d s: samples took %.5f, though %.5f is allowed", c, seconds, r.part, allowed)
			}
			if r.changes > 4+seconds/4 {
				t.Errorf("%+v, %d s: the rate was changed %d times", c, seconds, r.changes)
			}
		}
	}
}

// A short program has samples, however dear they are.
func TestBudgetGrace(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct{ each, want float64 }{{3000, 990}, {10000, 990}, {30000, 500}} {
		b := newBudget(0.01)
		if r := simulate(b, 1, 997, c.each, 0.9, rng); r.taken < c.want {
			t.Errorf("%.0f ns each: %.0f samples in the first second, want %.0f", c.each, r.taken, c.want)
		}
	}
}

// When samples become cheap again, all are taken again.
func TestBudgetRecovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	b := newBudget(0.01)
	simulate(b, 5, 997, 50000, 0, rng)
	if b.part > 0.5 {
		t.Fatalf("%.3f are sampled at 50 µs each", b.part)
	}
	simulate(b, 30, 997, 3000, 0, rng)
	if b.part != 1 {
		t.Errorf("%.3f are sampled at 3 µs each", b.part)
	}
}

func TestBudgetUnlimited(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	b := newBudget(0)
	simulate(b, 5, 50000, 50000, 0.9, rng)
	if b.part != 1 {
		t.Errorf("%.3f are sampled without a limit", b.part)
	}
}

// A cost that turns out less than it was taken for is no debt.
func TestBudgetTakesBack(t *testing.T) {
	b := newBudget(0.01)
	b.pass(spent{target: 1e9, interrupts: 2e6, alloc: 2e6}, 2)
	b.pass(spent{target: 2e9, interrupts: 1e6, alloc: 1e6}, 2)
	if b.events.left() < 0 || b.alloc.level < 0 {
		t.Errorf("%.0f left of events, %.0f of allocation", b.events.left(), b.alloc.level)
	}
}

func TestReduced(t *testing.T) {
	for _, c := range []struct {
		asked perf.Rate
		part  float64
		want  perf.Rate
	}{
		{perf.Rate{Frequency: 997}, 1, perf.Rate{Frequency: 997}},
		{perf.Rate{Frequency: 1000}, 1, perf.Rate{Frequency: 1000}},
		{perf.Rate{Frequency: 997}, 0.2, perf.Rate{Frequency: 199}},
		{perf.Rate{Frequency: 997}, 0.001, perf.Rate{Frequency: 2}},
		{perf.Rate{Frequency: 1}, 0.5, perf.Rate{Frequency: 1}},
		{perf.Rate{Period: 1000}, 0.3, perf.Rate{Period: 3334}},
		{perf.Rate{Period: 1 << 62}, 0.01, perf.Rate{Period: 1 << 62}},
	} {
		if got := reduced(c.asked, c.part); got != c.want {
			t.Errorf("%+v, %v: %+v, want %+v", c.asked, c.part, got, c.want)
		}
	}
}

package overhead

import (
	"math/rand/v2"
	"testing"
)

// measuredRun is what samples of a simulated target took.
type measuredRun struct {
	part    float64 // of its time
	changes int     // of the rate
	taken   float64
}

// simulate runs a target under a budget for some seconds, a twentieth of a second at
// a time. Of what an overflow costs, part is the interrupt's.
func simulate(b *Sampling, seconds int, hz, each, part float64, rng *rand.Rand) (r measuredRun) {
	s := b.last
	var cost float64
	for range 20 * seconds {
		s.Target += 50e6
		overflows := hz / 20 * b.part
		c := overflows * each * (1 - part) * (0.5 + rng.Float64())
		n := uint64(overflows + rng.Float64())
		s.Overflows += n
		s.Taken += n
		s.BPF += uint64(c)
		s.Interrupts += uint64(overflows * each * part)
		s.Walk = uint64(each)
		cost += c + overflows*each*part
		r.taken += overflows
		before := b.part
		b.Pass(s, 0)
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
		allowed, free := c.asked*EventsPart, c.hz*c.each/1e9
		for _, seconds := range []int{10, 60} {
			b := newSampling(c.asked * EventsPart)
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
		b := newSampling(0.01 * EventsPart)
		if r := simulate(b, 1, 997, c.each, 0.9, rng); r.taken < c.want {
			t.Errorf("%.0f ns each: %.0f samples in the first second, want %.0f", c.each, r.taken, c.want)
		}
	}
}

// When samples become cheap again, all are taken again.
func TestBudgetRecovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	b := newSampling(0.01 * EventsPart)
	simulate(b, 5, 997, 50000, 0, rng)
	if b.part > 0.5 {
		t.Fatalf("%.3f are sampled at 50 µs each", b.part)
	}
	simulate(b, 30, 997, 3000, 0, rng)
	if b.part != 1 {
		t.Errorf("%.3f are sampled at 3 µs each", b.part)
	}
}

// A cost that comes at once, as that of reading a program's tables, is paid back without giving up samples for it.
func TestBudgetPaysBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	const allowed, hz, each = 0.01 * EventsPart, 241, 30000.0
	b := newSampling(allowed)
	simulate(b, 20, hz, each, 0.7, rng)
	steady := min(allowed/(hz*each/1e9), 1)
	spike := 40e6
	b.Pass(b.last, spike)
	spent := spike
	for range 60 {
		r := simulate(b, 1, hz, each, 0.7, rng)
		spent += r.part * 1e9
		if b.part < 0.25*steady {
			t.Fatalf("%.4f of the rate is left, %.4f is what the budget allows", b.part, steady)
		}
	}
	if spent > 1.1*60e9*allowed {
		t.Errorf("in a minute samples and the spike took %.1f ms, %.1f are allowed", spent/1e6, 60e3*allowed)
	}
}

// Costs that come again and again are kept within the budget, as far as samples can make up for them.
func TestBudgetPaysBackAgainAndAgain(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const allowed, hz, each = 0.01 * EventsPart, 241, 30000.0
	b := newSampling(allowed)
	const spikes, apart, spike = 60, 5, 0.9 * allowed * 5e9
	spent := 0.0
	for range spikes {
		b.Pass(b.last, spike)
		spent += spike + simulate(b, apart, hz, each, 0.7, rng).part*apart*1e9
	}
	if most := 1.15 * allowed * spikes * apart * 1e9; spent > most {
		t.Errorf("in %d s samples and spikes took %.1f ms, %.1f are allowed", spikes*apart, spent/1e6, most/1e6)
	}
}

func TestBudgetUnlimited(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	b := newSampling(0)
	simulate(b, 5, 50000, 50000, 0.9, rng)
	if b.part != 1 {
		t.Errorf("%.3f are sampled without a limit", b.part)
	}
}

// A cost that turns out less than it was taken for is no debt.
func TestBudgetTakesBack(t *testing.T) {
	b, alloc := newSampling(0.01*EventsPart), NewBudget(0.01).Alloc()
	b.Pass(Use{Target: 1e9, Interrupts: 2e6}, 0)
	alloc.Pass(1e9, 2e6)
	b.Pass(Use{Target: 2e9, Interrupts: 1e6}, 0)
	alloc.Pass(1e9, -1e6)
	if b.bucket.Level() < 0 || alloc.Level() < 0 {
		t.Errorf("%.0f left of events, %.0f of allocation", b.bucket.Level(), alloc.Level())
	}
}

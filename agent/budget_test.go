package agent

import (
	"math/rand/v2"
	"testing"
)

// simulate runs a target under a budget for some seconds, a twentieth of a second at
// a time, and gives what its samples cost as a part of its time.
func simulate(b *budget, seconds int, hz, each float64, rng *rand.Rand) float64 {
	s := b.last
	var cost, target float64
	for range 20 * seconds {
		s.target += 50e6
		overflows := hz / 20
		taken := overflows * b.keep
		c := taken*each*(0.5+rng.Float64()) + (overflows-taken)*60
		s.eventN += uint64(overflows)
		s.taken += uint64(taken + rng.Float64())
		s.events += uint64(c)
		s.walk = uint64(each)
		cost, target = cost+c, target+50e6
		b.pass(s, 2)
	}
	return cost / target
}

func TestBudgetHolds(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ asked, hz, each float64 }{
		{0.01, 997, 3000}, {0.01, 997, 30000}, {0.005, 997, 10000}, {0.002, 10000, 5000}, {0.05, 50000, 4000},
	} {
		b := newBudget(c.asked)
		if got, allowed := simulate(b, 60, c.hz, c.each, rng), c.asked*eventsPart; got > 1.02*allowed+0.001*allowed {
			t.Errorf("%+v: samples took %.5f, allowed %.5f", c, got, allowed)
		} else if free := c.hz * c.each / 1e9; free < 0.9*allowed && b.keep < 1 {
			t.Errorf("%+v: only %.3f are sampled, though all would take %.5f", c, b.keep, free)
		} else if free > allowed && got < allowed/2 {
			t.Errorf("%+v: samples took %.5f, though %.5f is allowed", c, got, allowed)
		}
	}
}

// When samples become cheap again, all are taken again.
func TestBudgetRecovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	b := newBudget(0.01)
	simulate(b, 5, 997, 50000, rng)
	if b.keep > 0.5 {
		t.Fatalf("%.3f are sampled at 50 µs each", b.keep)
	}
	simulate(b, 20, 997, 3000, rng)
	if b.keep != 1 {
		t.Errorf("%.3f are sampled at 3 µs each", b.keep)
	}
}

func TestBudgetUnlimited(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	b := newBudget(0)
	simulate(b, 5, 50000, 50000, rng)
	if b.keep != 1 {
		t.Errorf("%.3f are sampled without a limit", b.keep)
	}
}

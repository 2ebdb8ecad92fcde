package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ccagent/bpf"
	"ccagent/eventlog"
)

const tickHz = 250

// stretch is what a program does until a time, s: code runs, or none if that is 0. age is the
// CPU time that its thread had used at its beginning, since it slept last.
type stretch struct {
	until, age float64
	code       uint64
}

// plan is the course of a program of one thread.
type plan []stretch

func (p *plan) add(length float64, code uint64) {
	last := stretch{}
	if n := len(*p); n > 0 {
		last = (*p)[n-1]
		if n > 1 && last.code != 0 {
			last.age += last.until - (*p)[n-2].until
		}
	}
	next := stretch{until: last.until + length, code: code, age: last.age}
	if code == 0 {
		next.age = 0
	}
	*p = append(*p, next)
}

// at gives what runs at a time, and for how long its thread has.
func (p plan) at(t float64) (code uint64, age float64, sleeps int) {
	i, _ := slices.BinarySearchFunc(p, t, func(s stretch, t float64) int {
		if s.until <= t {
			return -1
		}
		return 1
	})
	begin := 0.0
	if i > 0 {
		begin = p[i-1].until
	}
	return p[i].code, p[i].age + t - begin, i
}

// busy is the time in which code runs, of a stretch of time.
func (p plan) busy(from, to float64) (sum float64) {
	begin := 0.0
	for _, s := range p {
		if s.code != 0 {
			sum += max(0, min(s.until, to)-max(begin, from))
		}
		if begin = s.until; begin > to {
			break
		}
	}
	return sum
}

// simulate samples a program, and gives after how many seconds it was found to be in step with the
// tick, 0 if it was not.
func simulate(r *rand.Rand, p plan, seconds int) (found int) {
	s := &tick{kernel: bpf.Tick{Period: time.Second / tickHz, Share: 1}, part: 1, processes: map[uint32]*comparison{}}
	w := newWindow(0)
	next := r.Float64() / checkRate
	for second := range seconds {
		from, to := float64(second), float64(second+1)
		sample := func(t float64, onTick bool) {
			if code, age, sleeps := p.at(t); code != 0 {
				w.held = append(w.held, held{sample: &eventlog.Sample{PID: 1, TID: 1, Weight: 1}, tick: onTick,
					code: [3]uint64{code}, age: uint64(age * 1e9), slept: uint64(sleeps)})
			}
		}
		for i := range tickHz {
			sample(from+float64(i)/tickHz, true)
		}
		for ; next < to; next += 1.0 / checkRate {
			sample(next, false)
		}
		s.weigh(w, map[thread]uint64{{1, 1}: uint64(p.busy(from, to) * 1e9)}, checkRate)
		w.held = w.held[:0]
		if s.of(1).inStep {
			return second + 1
		}
	}
	return 0
}

// Programs whose work has nothing to do with the tick are not taken to be in step with it: of
// 200 such programs, of two minutes each, none was.
func TestNotInStep(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const programs, seconds = 30, 40
	for range programs {
		codes, length, busy := 2+r.IntN(300), math.Pow(10, -3.5+2.5*r.Float64()), 0.1+0.9*r.Float64()
		var p plan
		for len(p) == 0 || p[len(p)-1].until < seconds+1 {
			code := uint64(0)
			if r.Float64() < busy {
				code = 1 + uint64(float64(codes)*math.Pow(r.Float64(), 3))
			}
			p.add(r.ExpFloat64()*length, code)
		}
		if n := simulate(r, p, seconds); n > 0 {
			t.Errorf("%d pieces of code, %.2g s at a time, %.0f %% of the time: in step after %d s", codes, length, 100*busy, n)
		}
	}
}

// Programs that work when timers of whole milliseconds wake them are in step with the tick, which
// is found before their samples say much.
func TestInStep(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const seconds = 10
	for _, period := range []float64{1e-3, 4e-3, 5e-3, 10e-3} {
		for _, busy := range []float64{0.075, 0.33, 0.6} {
			for range 3 {
				var p plan
				p.add(r.Float64()*period, 0)
				begin := p[0].until
				for n := 0.0; p[len(p)-1].until < seconds+1; n++ {
					p.add(max(begin+n*period-p[len(p)-1].until, 0), 0)
					p.add((20+30*r.ExpFloat64())*1e-6, 0) // until it runs
					length := (1 + 0.02*r.NormFloat64()) * period * busy
					p.add(length*0.42, 1)
					p.add(length*0.58, 2)
				}
				if simulate(r, p, seconds) == 0 {
					t.Errorf("%.0f %% of each %g s: not found in %d s", 100*busy, period, seconds)
				}
			}
		}
	}
}

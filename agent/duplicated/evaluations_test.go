package duplicated

import (
	"math"
	"math/rand/v2"
	"testing"

	"ccagent/bpf"
)

// looksAt returns a look at a thread that evaluates thunks in a state.
func looksAt(thread, time uint64, state bpf.ThunkState, addresses ...uint64) look {
	l := look{thread: thread, time: time}
	for _, a := range addresses {
		l.thunks = append(l.thunks, thunk{a, state})
	}
	return l
}

func TestAgain(t *testing.T) {
	const x, y = 0x1000, 0x2000
	unmarked := func(thread, time uint64, addresses ...uint64) look {
		return looksAt(thread, time, bpf.ThunkUnmarked, addresses...)
	}
	for _, c := range []struct {
		name  string
		looks []look
		at    int // of which of them
		want  float64
	}{
		{"alone", []look{unmarked(1, 10, x), unmarked(2, 11, y)}, 0, 0},
		{"nothing", []look{unmarked(1, 10)}, 0, 0},
		{"it has its value", []look{looksAt(1, 10, bpf.ThunkEvaluated, x)}, 0, 1},
		{"taken by one not seen", []look{looksAt(1, 10, bpf.ThunkTaken, x)}, 0, 0.5},
		{"not readable", []look{looksAt(1, 10, bpf.ThunkUnreadable, x)}, 0, 0},
		{"two at once", []look{unmarked(1, 10, x), unmarked(2, 11, x), unmarked(1, 20, x), unmarked(2, 21, x)}, 2, 0.5},
		{"three at once", []look{unmarked(1, 10, x), unmarked(2, 11, x), unmarked(3, 12, x), unmarked(1, 20, x)}, 3, 2. / 3},
		{"one is ahead", []look{unmarked(1, 10, x), unmarked(1, 20, x), unmarked(1, 30, x), unmarked(1, 40, x), unmarked(2, 41, x)}, 4, 1},
		{"ahead of one", []look{unmarked(1, 10, x), unmarked(1, 20, x), unmarked(2, 25, x), unmarked(1, 30, x), unmarked(1, 40, x)}, 4, 0},
		{"the other has given up", []look{unmarked(1, 10, x), unmarked(2, 11, x), unmarked(2, 21), unmarked(1, 22, x)}, 3, 0},
		{"it was not looked at again", []look{unmarked(1, 10, x), unmarked(2, 11, x), unmarked(1, 20, x)}, 2, 0.5},
		// It has begun at some time of 10 to 20: at 14 with a chance of 0.4.
		{"begun since", []look{unmarked(2, 10), unmarked(1, 14, x), unmarked(2, 20, x)}, 1, 0.4 / 1.4},
		{"begun later", []look{unmarked(1, 9, x), unmarked(2, 10), unmarked(2, 20, x)}, 0, 0},
		{"an inner one", []look{unmarked(1, 10, y, x), unmarked(2, 11, x)}, 0, 0},
		{"of several the worst", []look{unmarked(2, 9, x), unmarked(1, 10, y, x), unmarked(2, 11, x)}, 1, 0.5},
	} {
		e := newEvaluations()
		for _, l := range c.looks {
			e.add(l)
		}
		if got := e.again(c.looks[c.at]); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %.3f, not %.3f", c.name, got, c.want)
		}
	}
}

// Samples of two threads that evaluate the same thunks, each beginning at a random time, add up to the work that is done again:
// all that the one does which began later.
func TestAgainAddsUp(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const period, rounds = 1000, 2000
	for _, length := range []float64{2 * period, 5 * period, 30 * period} {
		var again, work float64
		for range rounds {
			e := newEvaluations()
			phase := [2]float64{random.Float64() * period, random.Float64() * period}
			begin := [2]float64{10 * period, 10*period + random.Float64()*length}
			var looks []look
			for i := range 100 {
				for thread := range 2 {
					now := phase[thread] + float64(i)*period
					l := look{thread: uint64(thread), time: uint64(now)}
					if now >= begin[thread] && now < begin[thread]+length {
						state := bpf.ThunkUnmarked
						if now >= begin[0]+length {
							state = bpf.ThunkEvaluated
						}
						l.thunks = []thunk{{0x1000, state}}
					}
					looks = append(looks, l)
				}
			}
			for _, l := range looks {
				e.add(l)
			}
			for _, l := range looks {
				again += period * e.again(l)
			}
			work += length
		}
		// The standard deviation of a round's sum is less than its length, and of a thousand's a thirtieth of that.
		if off := again/work - 1; math.Abs(off) > 0.12 {
			t.Errorf("evaluations of %.0f samples: %.3f of the work that is done again was found", length/period, again/work)
		} else {
			t.Logf("evaluations of %.0f samples: %.3f of the work that is done again was found", length/period, again/work)
		}
	}
}

func TestSorted(t *testing.T) {
	got := sorted([]thunk{{3, bpf.ThunkMarked}, {1, bpf.ThunkUnmarked}, {3, bpf.ThunkUnmarked}})
	if len(got) != 2 || got[0].address != 1 || got[1].state != bpf.ThunkMarked {
		t.Errorf("sorted: %v", got)
	}
}

// What is kept between two collections is bounded.
func TestEvaluationsAreBounded(t *testing.T) {
	e := newEvaluations()
	var address uint64
	for time := range uint64(mostKept/64 + 100) {
		l := look{thread: time % 3, time: time}
		for range 64 {
			address += 8
			l.thunks = append(l.thunks, thunk{address, bpf.ThunkUnmarked})
		}
		e.add(l)
	}
	if e.number > mostKept {
		t.Errorf("%d looks are kept, of at most %d", e.number, mostKept)
	}
}

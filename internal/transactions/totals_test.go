package transactions

import (
	"math"
	"math/rand/v2"
	"testing"

	"ccagent/eventlog"
)

// Where windows stand for no more than themselves, counts are exact.
func TestExact(t *testing.T) {
	var totals Totals
	for range 5 {
		totals.Add(&eventlog.TransactionWindow{LengthNs: 100, StandsNs: 100, Ends: [eventlog.TransactionEnds]uint64{3, 2, 1, 0}})
	}
	if e := totals.Started(); !totals.Exact() || e != (Estimate{30, 30, 30}) {
		t.Errorf("started %v, exact: %v", e, totals.Exact())
	}
	if _, known := totals.CPUShare(eventlog.TransactionFailed); known {
		t.Error("a share of CPU time is known without samples")
	}
}

// The intervals of counts and of shares of CPU time hold the truth about 95 times in 100, of a process whose rate and share
// change, sampled in windows at random.
func TestCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const runs, windows, length, cycle = 400, 60, 1e6, 5e7
	counts, shares := 0, 0
	for range runs {
		var totals Totals
		truth, failed, all := 0.0, 0.0, 0.0
		rate, share := 1e-4, 0.5
		for range windows {
			rate = math.Max(1e-5, rate*math.Exp(0.3*rng.NormFloat64()))
			share = math.Min(math.Max(share+0.05*rng.NormFloat64(), 0.1), 0.9)
			truth += rate * cycle
			failed, all = failed+share, all+1
			w := eventlog.TransactionWindow{LengthNs: length, StandsNs: cycle}
			w.Ends[eventlog.TransactionCommitted] = poisson(rng, rate*length)
			for range 5 {
				w.Noted++
				if rng.Float64() < share {
					w.Sampled[eventlog.TransactionFailed]++
				} else {
					w.Sampled[eventlog.TransactionCommitted]++
				}
			}
			totals.Add(&w)
		}
		if e := totals.Started(); e.Low <= truth && truth <= e.High {
			counts++
		}
		if e, known := totals.CPUShare(eventlog.TransactionFailed); known && e.Low <= failed/all && failed/all <= e.High {
			shares++
		}
	}
	// 1 in 1e6 is beyond, if 95 in 100 hold.
	if least := runs * 89 / 100; counts < least || shares < least {
		t.Errorf("of %d intervals %d hold the count and %d the share", runs, counts, shares)
	}
}

func poisson(rng *rand.Rand, mean float64) (n uint64) {
	for t := rng.ExpFloat64(); t < mean; t += rng.ExpFloat64() {
		n++
	}
	return n
}

// Samples whose attempt was not seen to end widen the interval by as much.
func TestUnknown(t *testing.T) {
	totals := Totals{}
	totals.Add(&eventlog.TransactionWindow{LengthNs: 1, StandsNs: 1, Noted: 2000, Sampled: [eventlog.TransactionEnds]uint64{500, 500, 0, 0}})
	e, known := totals.CPUShare(eventlog.TransactionFailed)
	if !known || e.Low > 0.25 || e.Low < 0.2 || e.High < 0.75 || e.High > 0.8 || totals.Unknown() != 0.5 {
		t.Errorf("%v, unknown %v", e, totals.Unknown())
	}
}

// Where hits take much of a window, they may change how attempts end: the interval holds a change of three tenths of that part.
func TestHitsMayChangeEnds(t *testing.T) {
	var slow, fast Totals
	for range 100 {
		w := eventlog.TransactionWindow{LengthNs: 1e6, StandsNs: 1e8, Begun: 1000, BegunStands: 1e5, Ends: [eventlog.TransactionEnds]uint64{500, 500, 0, 0}}
		fast.Add(&w)
		w.SlowedNs = 5e5
		slow.Add(&w)
	}
	a, b := fast.Attempts(eventlog.TransactionFailed), slow.Attempts(eventlog.TransactionFailed)
	if want := 0.15 * a.Value; a.Value != b.Value || math.Abs(a.Low-b.Low-want) > 1 || math.Abs(b.High-a.High-want) > 1 {
		t.Errorf("without hits %v, with hits for half of the time %v: want %.0f more to either side", a, b, want)
	}
	if all := slow.Started(); all != fast.Started() {
		t.Errorf("of all attempts %v", all)
	}
}

// A long attempt in a window leaves few to begin in it: what CPU time stands for does not follow from that.
func TestCPUTimeOfLongAttempts(t *testing.T) {
	var totals Totals
	for n := range 100 {
		w := eventlog.TransactionWindow{LengthNs: 1e6, StandsNs: 1e8, Begun: 1000, BegunStands: 1e5, Noted: 10}
		w.Sampled[eventlog.TransactionCommitted] = 10
		if n%2 == 0 {
			w.Begun, w.Sampled = 1, [eventlog.TransactionEnds]uint64{eventlog.TransactionFailed: 10}
		}
		totals.Add(&w)
	}
	if e, known := totals.CPUShare(eventlog.TransactionFailed); !known || e.Value != 0.5 {
		t.Errorf("failed attempts have %v of the CPU time, want a half", e)
	}
}

// Figures that no program has do no harm.
func TestHostile(t *testing.T) {
	var totals Totals
	totals.Add(&eventlog.TransactionWindow{LengthNs: 1, StandsNs: math.MaxUint64, Noted: math.MaxUint64})
	totals.Add(&eventlog.TransactionWindow{LengthNs: 0, Ends: [eventlog.TransactionEnds]uint64{1}})
	if totals.Windows != 0 || totals.Started().Value != 0 {
		t.Errorf("%+v", totals)
	}
}

package columns

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Threads run at a rate that changes with the program's phases, and each watch ends after 300 runs: the
// interval of the number of runs holds it about as often as it says, and the estimate is not
// several times off, though busy phases are watched for less time.
func TestEstimatedRuns(t *testing.T) {
	const trials = 300
	for _, c := range []struct {
		name    string
		watches int
		spread  float64 // of the logarithm of the rate, between phases
		least   float64 // of the intervals that hold
	}{{"alike", 20, 0.1, 0.9}, {"phases", 20, 1, 0.8}, {"few", 6, 0.7, 0.8}} {
		rng := rand.New(rand.NewPCG(3, uint64(c.watches)))
		hold, bias := 0, 0.0
		for range trials {
			const ns, phases = 10e9, 100
			rates, truth := make([]float64, phases), 0.0
			for i := range rates {
				rates[i] = math.Exp(math.Log(5e-5)+c.spread*rng.NormFloat64()) / math.Exp(c.spread*c.spread/2)
				truth += rates[i] * ns / phases
			}
			l := &Log{Duration: ns}
			l.RTSLog.FirstRun = 1
			for i := range c.watches {
				at := ns / float64(c.watches) * (float64(i) + 0.8*rng.Float64())
				w := Watch{From: uint64(at)}
				for w.Runs < 300 && at < ns {
					at += rng.ExpFloat64() / rates[min(int(at/ns*phases), phases-1)]
					w.Runs++
				}
				w.To = uint64(at)
				l.RTSLog.Watches = map[string][]Watch{"threads": append(l.RTSLog.Watches["threads"], w)}
			}
			e := l.EstimatedRuns()
			if e.Low <= truth && truth <= e.High {
				hold++
			}
			bias += e.Value / truth / trials
		}
		t.Logf("%s: %d of %d intervals hold, estimates are %.2f of the truth", c.name, hold, trials, bias)
		if float64(hold) < c.least*trials || bias < 0.85 || bias > 1.2 {
			t.Errorf("%s: %d of %d intervals hold, estimates are %.2f of the truth", c.name, hold, trials, bias)
		}
	}
}

// Without watches, or with hostile ones, there is nothing and no panic.
func TestEstimatedRunsOfNothing(t *testing.T) {
	for _, ws := range [][]Watch{nil, {{From: 5, To: 5, Runs: 9}}, {{From: 9, To: 20}, {From: 10, To: 12, Runs: 1}, {From: 30, To: 31}, {From: 1 << 60, To: 1 << 61, Runs: 1 << 60}}} {
		l := &Log{Duration: 25}
		l.RTSLog.Watches = map[string][]Watch{"threads": ws}
		if e := l.EstimatedRuns(); math.IsNaN(e.Value) || e.Value < 0 || e.Low > e.High || e.High > 0 && e.Low > e.Value && e.Low > e.High {
			t.Errorf("%v: %+v", ws, e)
		}
	}
}

package e2e

import (
	"testing"

	"ccagent/internal/testprog"
)

// If samples cost more than the budget, events are sampled at a lower rate on existing and
// new threads, and the weights still add up to the count.
func TestRateComesDown(t *testing.T) {
	exe := testprog.Build(t, "threads100", testprog.Options{Threaded: true})
	log, r := record(t, []string{"-e", "cpu-clock", "-F", "4999", "--max-overhead", "0.5"}, exe, "10000", "4", "2", "+RTS", "-N2")
	wantLine(t, r.stderr, "cpu-clock", "4999 Hz asked", "--max-overhead 0")
	var info struct {
		Events []struct {
			Weight, Counted float64
			Samples         uint64
			Rates           []struct {
				Since float64 `json:"since_seconds"`
				Rate  float64
			}
		}
		Agent struct {
			Budget struct{ Measured, Interrupts float64 }
		}
	}
	view(t, &info, "info", log)
	e := info.Events[0]
	if len(e.Rates) == 0 || e.Rates[0].Rate >= 4999 {
		t.Fatalf("the rate became %v", e.Rates)
	}
	t.Logf("rates %v, measured %.3f %%, %.0f of %.0f ns are in weights", e.Rates, 100*info.Agent.Budget.Measured, e.Weight, e.Counted)
	// A late clock skips overflows; none may be counted twice.
	if e.Weight < 0.8*e.Counted || e.Weight > 1.02*e.Counted {
		t.Errorf("samples weigh %.0f ns, %.0f were counted", e.Weight, e.Counted)
	}
	if info.Agent.Budget.Interrupts <= 0 || info.Agent.Budget.Interrupts >= info.Agent.Budget.Measured {
		t.Errorf("interrupts took %v of %v", info.Agent.Budget.Interrupts, info.Agent.Budget.Measured)
	}
	l := readLog(t, log)
	sampled := map[uint64]int{}
	for _, s := range l.samples[l.atFullRate:] {
		sampled[s.TSO]++
	}
	for tso, th := range parseThreads(t, r.stdout) {
		if sampled[tso] == 0 {
			t.Errorf("thread %d (bound: %v) has no sample at a lower rate", tso, th.bound)
		}
	}
}

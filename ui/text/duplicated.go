package text

import (
	"ccagent/internal/format"
	"ccagent/internal/transactions"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
)

// DuplicatedEvaluation is which part of so much CPU time, in so many samples, went into evaluating what another thread evaluates too; false
// if there was none to be part of. The interval is of what sampling leaves out; that work shorter than the time between two samples is missed in
// part is not in it.
func DuplicatedEvaluation(duplicated, cpu, samples uint64) (transactions.Estimate, bool) {
	if cpu == 0 || samples == 0 {
		return transactions.Estimate{}, false
	}
	share, n := min(format.Ratio(duplicated, cpu), 1), float64(samples)
	low, high := interval.Binomial(share*n, n)
	return transactions.Estimate{Value: share, Low: low, High: high}, true
}

// Duplicated says the same in words.
func Duplicated(e transactions.Estimate) string {
	s := format.Percent(e.Value) + " " + plusMinus(e) + " of the CPU time went into evaluating what another thread had evaluated, or evaluated at the same time (estimated)"
	if e.Low > worthMarking {
		s += "; -feager-blackholing has threads mark what they evaluate, and wait for each other"
	}
	return s
}

// worthMarking is the part from which on it is worth trying to have thunks marked when they are entered, which costs a little each time.
const worthMarking = 0.01

// duplicatedOf is DuplicatedEvaluation of a log; false if that was not measured.
func duplicatedOf(p *profile.Profile) (transactions.Estimate, bool) {
	var part, all *columns.Event
	for i := range p.Events {
		switch e := &p.Events[i]; {
		case e.Granted == columns.Duplicated:
			part = e
		case all == nil && e.CPU():
			all = e
		}
	}
	if part == nil || all == nil {
		return transactions.Estimate{}, false
	}
	return DuplicatedEvaluation(part.Weight, all.Weight, all.Samples)
}

func (p out) duplicated(pr *profile.Profile) {
	if e, ok := duplicatedOf(pr); ok {
		p.field("duplicated", Duplicated(e))
	}
}

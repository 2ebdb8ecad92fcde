package activity

import (
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
)

// DuplicatedShare is which part of so much CPU time, in so many samples, went into evaluating what another thread evaluates too; false
// if there was none to be part of. The interval is of what sampling leaves out; that work shorter than the time between two samples is missed in
// part is not in it.
func DuplicatedShare(duplicated, cpu, samples uint64) (share Share, ok bool) {
	if cpu == 0 || samples == 0 {
		return share, false
	}
	n := float64(samples)
	share.Of = min(format.Ratio(duplicated, cpu), 1)
	share.Low, share.High = interval.Binomial(share.Of*n, n)
	return share, true
}

// DuplicatedOf is DuplicatedShare of a log; false if that was not measured.
func DuplicatedOf(p *profile.Profile) (Share, bool) {
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
		return Share{}, false
	}
	return DuplicatedShare(part.Weight, all.Weight, all.Samples)
}

// Duplicated says in words which part of the CPU time that is, and what follows from it: empty if nothing does.
func Duplicated(s Share) (line, advice string) {
	line = format.Percent(s.Of) + " " + format.PlusMinus(s.Of, s.PlusMinus(s.Of)) +
		" of the CPU time was evaluation that another thread had done, or did too (estimated)"
	if s.Low > worthMarking {
		advice = "-feager-blackholing has threads mark what they evaluate, and wait for each other"
	}
	return line, advice
}

// worthMarking is the part from which on it is worth trying to have thunks marked when they are entered, which costs a little each time.
const worthMarking = 0.01

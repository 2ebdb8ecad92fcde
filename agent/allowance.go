package agent

import "math"

// allowance is what samples of events may take of the target's CPU time. At a
// capture's start they may take more, so that a short one has samples; that is paid
// back until the capture has settled. From then on it is a part of the time.
type allowance struct {
	rate  float64 // part of the target's CPU time; infinite for no limit
	grace float64 // ns, what may be taken at once
	used  float64 // CPU time of the target, ns
	spent float64 // ns of it
}

const (
	// settled is the target's CPU time, in ns, from which on no more than the part is
	// taken.
	settled = 10e9
	// graceOf is the CPU time whose part may be taken at once, ns, if that is
	// usualRate; less where it is less, since that will be meant. mostGrace is the most
	// of it: some hundred interrupts where they are dearest.
	graceOf   = settled / 4
	usualRate = defaultOverhead * eventsPart
	mostGrace = 25e6
)

func newAllowance(rate float64) allowance {
	if rate <= 0 {
		return allowance{rate: math.Inf(1)}
	}
	return allowance{rate: rate, grace: min(mostGrace, rate*graceOf*min(rate/usualRate, 1))}
}

func (a *allowance) unlimited() bool { return math.IsInf(a.rate, 1) }

// at is what may have been spent when the target has used some CPU time, ns.
func (a *allowance) at(used float64) float64 {
	return a.rate*used + a.grace*(1-min(used/settled, 1))
}

// left is what may be spent now, ns; negative is debt.
func (a *allowance) left() float64 { return a.at(a.used) - a.spent }

// pass lets the target have used some CPU time, of which samples took cost. What is
// not spent is not saved up for long.
func (a *allowance) pass(target, cost float64) {
	if a.unlimited() {
		return
	}
	a.used += target
	a.spent = max(a.spent+cost, a.at(a.used)-a.most())
}

// most is the most that is saved up.
func (a *allowance) most() float64 { return max(a.grace*(1-min(a.used/settled, 1)), a.rate*burst) }

// spending is the part of the target's time that is allowed for what comes next, and
// that with which nothing is left, or owed, when it has used as much time as horizon.
func (a *allowance) spending(horizon float64) (allowed, evened float64) {
	allowed = (a.at(a.used+horizon) - a.at(a.used)) / horizon
	return allowed, max(allowed+a.left()/horizon, 0)
}

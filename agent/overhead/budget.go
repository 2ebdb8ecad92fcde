package overhead

import (
	"math"

	"ccagent/perf"
)

// Default is the part of the target's CPU time that measuring may take unless the user asks
// for another.
const Default = 0.01

// The parts of the budget that kinds of measuring have. RTSPart is that of each group of
// probes in the run-time system, which may also have what the other kinds leave.
const (
	EventsPart  = 0.55
	AllocPart   = 0.2
	NurseryPart = 0.05
	RTSPart     = 0.1
)

// burst is for how much CPU time of the target, in ns, a bucket saves up.
const burst = 2e9

// Clock returns the time, in ns; it is monotonic.
type Clock func() uint64

// Budget is what all measuring of a capture may cost.
type Budget struct {
	Asked float64 // part of the target's CPU time; 0 for no limit
	Costs *Costs
	Clock Clock
	// KeepRates leaves the rates of sampled events as they were asked for, whatever it costs.
	KeepRates bool

	spare spare
}

// NewBudget makes the budget of a capture whose measuring may take a part of the target's CPU
// time. Its clock is CLOCK_MONOTONIC.
func NewBudget(asked float64) *Budget {
	return &Budget{Asked: asked, Costs: NewCosts(), Clock: perf.Monotonic, spare: spare{most: asked * burst}}
}

// leaving makes a bucket leave what does not fit it to others.
func (b *Budget) leaving(t Terms) *Bucket {
	bucket := NewBucket(t)
	bucket.excess = &b.spare
	return bucket
}

// Sampling is the budget of sampled events.
func (b *Budget) Sampling() *Sampling {
	if b.KeepRates {
		return newSampling(0)
	}
	s := newSampling(b.Asked * EventsPart)
	s.bucket.excess = &b.spare
	return s
}

// allocLoan is what allocation probes may cost ahead of their budget, at the default one.
const allocLoan = 4e6

// Alloc is the bucket of allocation probes; it fills with the target's CPU time.
func (b *Budget) Alloc() *Bucket {
	rate := b.Asked * AllocPart
	return b.leaving(Terms{Rate: rate, Depth: rate * burst, Level: rate * burst / 4, Loan: allocLoan * b.Asked / Default, Term: settled})
}

// Nursery is the bucket of what is allocated by closure; it fills with the target's CPU time. A
// capture's start may take more, so that a short one has some blocks; that is paid back.
func (b *Budget) Nursery() *Bucket {
	rate := b.Asked * NurseryPart
	return b.leaving(Terms{Rate: rate, Depth: rate * burst, Loan: rate * settled / 4, Term: settled})
}

// rtsBurst is what a group of probes in the run-time system may cost at once beyond its
// budget, so that a short burst of collections or runs is seen whole.
const rtsBurst = 4e6

// RTS is the bucket of one group of probes in the run-time system; it fills with the time
// that passes, and saves up without end. A burst's cost is made up for from what the other kinds
// of measuring leave.
func (b *Budget) RTS() *Bucket {
	bucket := NewBucket(Terms{Rate: b.Asked * RTSPart, Depth: math.Inf(1), Level: rtsBurst})
	bucket.supply = &b.spare
	return bucket
}

package overhead

import (
	"math"
	"sync"
)

// Terms describes a bucket. Amounts are in ns.
type Terms struct {
	Rate  float64 // what may be spent, as a part of the time that passes; 0 for no limit
	Depth float64 // what is saved up at the most
	Level float64 // what is there at the start
	// Loan may be spent at the start in addition, and is paid back evenly while a time
	// of Term passes: so a short capture has samples, and a long one keeps to its rate.
	Loan, Term float64
}

// Bucket is a token bucket: time fills it, and the cost of measuring is taken from it. Sources
// measure less while it is in debt.
type Bucket struct {
	terms  Terms
	level  float64
	passed float64 // of the time that fills it
	// What does not fit goes to excess, if that is set. If supply is set, what is missing up to
	// Terms.Level comes from there.
	excess, supply *spare
	// within is this process's account in the budget of many; nil if there is none. Nothing may be spent
	// while either is in debt.
	within *Bucket
	// all is the bucket of all measuring of a capture: costs are taken from it too, and nothing may be spent
	// while it is in debt. Budget.Pass fills it. Nil if there is none.
	all *shared
	// charged is like all, but nothing waits for its debt: sampled events come first.
	charged *shared
}

// shared is a bucket that several goroutines use.
type shared struct {
	mu sync.Mutex
	*Bucket
}

func (s *shared) pass(time, cost float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Pass(time, cost)
}

func (s *shared) current() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// spare holds what some kinds of measuring leave of their parts of a budget, until others take
// it. It may be used by several goroutines.
type spare struct {
	mu    sync.Mutex
	level float64 // ns
	most  float64
}

func (s *spare) put(ns float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = min(s.level+ns, s.most)
}

// take takes what is wanted, or what there is if that is less. Debts that were left may have to be made up for first.
func (s *spare) take(wanted float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := max(min(s.level, wanted), 0)
	s.level -= taken
	return taken
}

// NewBucket makes a bucket.
func NewBucket(t Terms) *Bucket {
	if t.Rate <= 0 {
		inf := math.Inf(1)
		return &Bucket{terms: Terms{Rate: inf, Depth: inf}, level: inf}
	}
	return &Bucket{terms: t, level: t.Level + t.Loan}
}

// Unlimited reports whether anything may be spent.
func (b *Bucket) Unlimited() bool { return math.IsInf(b.terms.Rate, 1) }

// Rate is what may be spent, as a part of the time that passes; infinite without a limit.
func (b *Bucket) Rate() float64 { return b.terms.Rate }

// Depth is what is saved up at the most, once a loan is paid back.
func (b *Bucket) Depth() float64 { return b.terms.Depth }

// Most is the highest level that there is, once a loan is paid back: of one bucket of many that of all may be lower than its own.
func (b *Bucket) Most() float64 {
	most := b.terms.Depth
	if b.within != nil {
		most = min(most, b.within.terms.Depth)
	}
	return most
}

// Level is what may be spent now; negative is debt.
func (b *Bucket) Level() float64 {
	level := b.level
	if b.within != nil {
		level = min(level, b.within.level)
	}
	if b.all != nil {
		level = min(level, b.all.current())
	}
	return level
}

// Passed is how much of the time that fills it has passed.
func (b *Bucket) Passed() float64 { return b.passed }

// Loan returns the part of the loan that is not yet due at a time.
func (b *Bucket) loan(at float64) float64 {
	if b.terms.Loan == 0 {
		return 0
	}
	return b.terms.Loan * (1 - min(at/b.terms.Term, 1))
}

// gains returns what the bucket gains in some time from now on, less repayments of the loan.
func (b *Bucket) gains(time float64) float64 {
	return b.terms.Rate*time + b.loan(b.passed+time) - b.loan(b.passed)
}

// Pass fills the bucket for the time that has passed, and takes the cost of measuring from it. A
// negative cost corrects an earlier estimate that was too high.
func (b *Bucket) Pass(time, cost float64) {
	if b.within != nil {
		b.within.Pass(time, cost)
	}
	for _, all := range [...]*shared{b.all, b.charged} {
		if all != nil {
			all.pass(0, cost)
		}
	}
	if b.Unlimited() {
		return
	}
	b.level += b.gains(time) - cost
	b.passed += time
	if over := b.level - max(b.loan(b.passed), b.terms.Depth); over > 0 {
		b.level -= over
		if b.excess != nil {
			b.excess.put(over)
		}
	}
	if missing := b.terms.Level - b.level; missing > 0 && b.supply != nil {
		b.level += b.supply.take(missing)
	}
}

// End leaves what the process of a bucket has in the budget of many, or owes, to the others. The bucket is not used any more.
func (b *Bucket) End() {
	if of := b.within; of != nil {
		of.excess.put(of.level)
		of.level = 0
	}
}

// Spending is the part of the coming time that may be spent, and that with which nothing is
// left, and no debt, when so much time as horizon has passed.
func (b *Bucket) Spending(horizon float64) (allowed, evened float64) {
	allowed = b.gains(horizon) / horizon
	return allowed, max(allowed+b.Level()/horizon, 0)
}

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
	// STMPart is that of probes at transactions; where there are some, sampled events have as much less.
	STMPart = 0.2
	// SearchPart is that of probes at choices of functional-logic programs, likewise.
	SearchPart = 0.2
	RTSPart    = 0.1
	// WaitsPart is that of waits, if they are asked for, likewise. Alone they have all.
	WaitsPart = 0.2
	// leastEvents is what sampled events have in any case.
	leastEvents = 0.1
	// HeapPart is that of censuses of the heap, if they are asked for; the others divide the rest.
	HeapPart = 0.3
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

	heap  float64 // the part that censuses of the heap have
	spare spare
	stm   bool // transactions are measured
	// search is set if choices of functional-logic programs are counted.
	search bool
	waits  bool    // waits are looked at
	given  float64 // the parts that others than waits have
	all    *shared // what all measuring but censuses of the heap may cost; nil until a bucket is asked for
	// alloc and rts hold what processes leave of their parts of this budget for others, where each has a budget of its own; nil
	// without a limit.
	alloc, rts *spare
	within     *Budget // of all processes; nil if this is that
	rtsPart    float64
}

// NewBudget makes the budget of a capture whose measuring may take a part of the target's CPU
// time. Its clock is CLOCK_MONOTONIC.
func NewBudget(asked float64) *Budget {
	return &Budget{Asked: asked, Costs: NewCosts(), Clock: perf.Monotonic, spare: spare{most: asked * burst}, rtsPart: RTSPart}
}

// Process makes the budget of one process of those that this one is of. Its measuring may take a
// part of its CPU time, as long as it keeps within the budget of all besides: that is as much of its own CPU time as all may take of
// theirs, and what other processes leave of that. So all together keep to it, and none pays for another. The clock is the
// process's CPU time, ns.
func (b *Budget) Process(part float64, clock Clock) *Budget {
	if b.Asked > 0 && b.alloc == nil {
		b.rtsPart = ownRTSPart
		alloc, rts := b.allocTerms(), b.rtsTerms(0)
		b.alloc = &spare{level: alloc.Level + alloc.Loan, most: b.Asked * burst}
		b.rts = &spare{level: rts.Level, most: b.Asked * burst}
	}
	return &Budget{Asked: part, Costs: b.Costs, Clock: clock, spare: spare{most: part * burst}, within: b, rtsPart: ownRTSPart}
}

// account is the part of a process in the budget of all, within which its own bucket is.
func (b *Budget) account(t Terms, depth float64, left *spare) *Bucket {
	if left == nil {
		return nil
	}
	a := NewBucket(Terms{Rate: t.Rate, Depth: depth, Level: depth})
	a.level = left.take(t.Level + t.Loan)
	a.excess, a.supply = left, left
	return a
}

// part is the part of the target's CPU time that a kind of measuring may take.
func (b *Budget) part(of float64) float64 { return b.Asked * (1 - b.heap) * of }

// heapLoan is what censuses of the heap may cost ahead of their budget, at the default one: a short
// capture has some.
const heapLoan = 10e6

// Heap is the bucket of censuses of the heap; it fills with the target's CPU time. It is made before the
// others, which have less then.
func (b *Budget) Heap() *Bucket {
	b.heap = HeapPart
	rate := b.Asked * HeapPart
	bucket := NewBucket(Terms{Rate: rate, Depth: rate * burst, Loan: heapLoan * b.Asked / Default, Term: settled})
	bucket.supply = &b.spare
	return bucket
}

// A capture of one target may cost, whatever is measured, Asked of the CPU time that the target has used, and before
// that is there startCredit, at the default budget: a program of a second has something, and collections and threads of one of three seconds
// are drawn for half of it. The credit is paid back until the capture has settled; from then on all measuring together has cost no more than it may. Sampled events
// have their own loan (Sampling), and come first: what they take is taken from what the others may spend.
const startCredit = 25e6

// whole returns the bucket of all measuring but censuses of the heap, nil where each process has a budget of its own.
func (b *Budget) whole() *shared {
	if b.within != nil {
		return nil
	}
	if b.all == nil {
		rate := b.part(1)
		b.all = &shared{Bucket: NewBucket(Terms{Rate: rate, Depth: rate * burst, Loan: startCredit * (1 - b.heap) * b.Asked / Default, Term: settled})}
	}
	return b.all
}

// Pass fills the bucket of all measuring for CPU time that the target has used, ns.
func (b *Budget) Pass(used float64) {
	if whole := b.whole(); whole != nil {
		whole.pass(used, 0)
	}
}

// Censuses is the bucket of censuses of one process, or of all together, where each has a budget of its own; it fills with their
// CPU time. What others may take is not less for it.
func (b *Budget) Censuses() *Bucket {
	rate := b.Asked * HeapPart
	return NewBucket(Terms{Rate: rate, Depth: rate * burst})
}

// leaving makes a bucket leave what does not fit it to others.
func (b *Budget) leaving(t Terms) *Bucket {
	bucket := NewBucket(t)
	bucket.excess, bucket.all = &b.spare, b.whole()
	return bucket
}

// Sampling is the budget of sampled events.
func (b *Budget) Sampling() *Sampling {
	if b.KeepRates {
		return newSampling(0)
	}
	part := EventsPart
	if b.stm {
		part -= STMPart
	}
	if b.search {
		part -= SearchPart
	}
	if b.waits {
		part -= WaitsPart
	}
	part = max(part, leastEvents)
	b.given += part
	s := newSampling(b.part(part))
	s.bucket.excess, s.bucket.charged = &b.spare, b.whole()
	return s
}

// Boost is the budget of events that are sampled more often in one process for a while: a part of its CPU
// time, beside what other measuring of it takes; 0 for no limit.
func Boost(part float64) *Sampling { return newSampling(part) }

// allocLoan is what allocation probes may cost ahead of their budget, at the default one.
const allocLoan = 4e6

// Alloc is the bucket of allocation probes; it fills with the target's CPU time.
func (b *Budget) Alloc() *Bucket {
	b.given += AllocPart
	bucket := b.leaving(b.allocTerms())
	if of := b.within; of != nil {
		t := of.allocTerms()
		bucket.within = of.account(t, t.Depth, of.alloc)
	}
	return bucket
}

func (b *Budget) allocTerms() Terms {
	rate := b.part(AllocPart)
	return Terms{Rate: rate, Depth: rate * burst, Level: rate * burst / 4, Loan: allocLoan * b.Asked / Default, Term: settled}
}

// Nursery is the bucket of what is allocated by closure; it fills with the target's CPU time. A
// capture's start may take more, so that a short one has some blocks; that is paid back.
func (b *Budget) Nursery() *Bucket {
	b.given += NurseryPart
	rate := b.part(NurseryPart)
	return b.leaving(Terms{Rate: rate, Depth: rate * burst, Loan: rate * settled / 4, Term: settled})
}

// STM is the bucket of probes at transactions; it fills with the target's CPU time. It is asked for before
// Sampling. At the start it has what half a second of CPU time brings, and no loan: on a busy machine that is more than what a program uses in a
// capture of a second or two, which a loan would exceed the budget of.
func (b *Budget) STM() *Bucket {
	b.stm = true
	b.given += STMPart
	rate := b.part(STMPart)
	return b.leaving(Terms{Rate: rate, Depth: rate * burst, Level: rate * burst / 4})
}

// Search is the bucket of probes at choices of functional-logic programs; it fills with the target's CPU time. It is asked for before
// Sampling.
func (b *Budget) Search() *Bucket {
	b.search = true
	b.given += SearchPart
	rate := b.part(SearchPart)
	return b.leaving(Terms{Rate: rate, Depth: rate * burst, Level: rate * burst / 4, Loan: allocLoan * b.Asked / Default, Term: settled})
}

// NeedWaits keeps a part of the budget for waits. It is called before Sampling.
func (b *Budget) NeedWaits() { b.waits = true }

// waitsLoan is what looking at waits may cost ahead of its budget, at the default one: a short capture has some.
const waitsLoan = 4e6

// Waits is the bucket of waits, which is asked for after all others: what these have no use for is its own. It fills with the target's CPU time.
func (b *Budget) Waits() *Bucket {
	rate := b.part(max(1-b.given, WaitsPart))
	return NewBucket(Terms{Rate: rate, Depth: rate * burst, Loan: waitsLoan * b.Asked / Default, Term: settled})
}

// ownRTSPart is RTSPart where each process has a budget of its own: neither nurseries nor, as a
// rule, both groups are measured there.
const ownRTSPart = NurseryPart + 2*RTSPart

// rtsBurst is what a group of probes in the run-time system may cost at once beyond its
// budget, so that a short burst of collections or runs is seen whole.
const rtsBurst = 4e6

// RTS is the bucket of one group of probes in the run-time system; it fills with the CPU time of
// the process. That of a capture saves up without end, that of one process of many does not.
// A burst's cost is made up for from what the other kinds of measuring leave.
func (b *Budget) RTS() *Bucket {
	b.given += RTSPart
	depth := math.Inf(1)
	if b.within != nil {
		depth = b.rtsDepth()
	}
	bucket := NewBucket(b.rtsTerms(depth))
	bucket.supply, bucket.all = &b.spare, b.whole()
	if of := b.within; of != nil {
		bucket.within = of.account(of.rtsTerms(0), of.rtsDepth(), of.rts)
	}
	return bucket
}

func (b *Budget) rtsTerms(depth float64) Terms {
	return Terms{Rate: b.part(b.rtsPart), Depth: depth, Level: rtsBurst}
}

func (b *Budget) rtsDepth() float64 { return max(b.Asked*b.rtsPart*burst, rtsBurst) }

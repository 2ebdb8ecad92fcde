package overhead

import (
	"math"
	"testing"
)

// A bucket fills at its rate up to its depth, and a cost that exceeds it is debt.
func TestBucketFills(t *testing.T) {
	b := NewBucket(Terms{Rate: 0.1, Depth: 50, Level: 10})
	for _, step := range []struct{ time, cost, want float64 }{
		{100, 0, 20}, {0, 5, 15}, {1000, 0, 50}, {0, 80, -30}, {100, -10, -10},
	} {
		b.Pass(step.time, step.cost)
		if math.Abs(b.Level()-step.want) > 1e-9 {
			t.Errorf("after %+v the level is %v", step, b.Level())
		}
	}
	if b.Passed() != 1200 {
		t.Errorf("%v has passed", b.Passed())
	}
}

// A process pays for itself: within its own budget, and within as much of its CPU time as all may take of theirs. What one leaves
// of that another may have, and all together spend no more than all may.
func TestProcessesShareABudget(t *testing.T) {
	const second = 1e9
	host := NewBudget(0.01)
	clock := func() uint64 { return 0 }
	one, other := host.Process(0.1, clock).RTS(), host.Process(0.1, clock).RTS()
	levels := func(what string, wantOne, wantOther float64) {
		t.Helper()
		if a, b := one.within.level, other.within.level; math.Abs(a-wantOne) > 1e-3 || math.Abs(b-wantOther) > 1e-3 {
			t.Errorf("%s: %v and %v, want %v and %v", what, a, b, wantOne, wantOther)
		}
	}
	if one.Rate() != 0.1*ownRTSPart {
		t.Errorf("one may spend %v", one.Rate())
	}
	levels("at the start", rtsBurst, 0) // who comes first has what all together may spend then
	one.Pass(0, 10*rtsBurst)
	levels("one has spent ten times that", -9*rtsBurst, 0)
	const rate, depth = 0.01 * ownRTSPart, 0.01 * ownRTSPart * burst
	if one.Level() != -9*rtsBurst || other.Level() != 0 {
		t.Errorf("they may spend %v and %v", one.Level(), other.Level())
	}
	other.Pass(second, 0)
	levels("the other has run", -9*rtsBurst, rate*second)
	other.Pass(10*second, 0) // more than it may keep
	levels("the other has run for long", -9*rtsBurst, depth)
	left := min(11*rate*second-depth, 0.01*burst)
	one.Pass(0, 0)
	levels("the other has left one what it did not need", -9*rtsBurst+left, depth)

	// One ends in debt, and nobody has anything of others before that is made up for.
	one.End()
	third := host.Process(0.1, clock).RTS()
	if third.Level() != 0 {
		t.Errorf("a new one may spend %v", third.Level())
	}
	third.Pass(second, 0)
	levels("a third has run", 0, depth)
	if got := third.Level(); math.Abs(got-rate*second) > 1e-3 {
		t.Errorf("a third may spend %v, want %v", got, rate*second)
	}
	other.End() // with what it has
	if owed := 9*rtsBurst - left - depth; math.Abs(host.rts.level+owed) > 1e-3 {
		t.Errorf("all have %v, want %v", host.rts.level, -owed)
	}
}

// Whatever processes do that want to spend all that they may, together they spend what all may, and no more.
func TestProcessesSpendTogetherWhatAllMay(t *testing.T) {
	const second, turns, processes = 1e9, 200, 20
	host := NewBudget(0.01)
	clock := func() uint64 { return 0 }
	var buckets [processes]*Bucket
	for i := range buckets {
		buckets[i] = host.Process(1, clock).Alloc()
	}
	start := host.alloc.level
	for _, b := range buckets {
		start += b.within.level
	}
	spent, used := 0.0, 0.0
	for turn := range turns {
		for i, b := range buckets {
			cost := 0.0
			if i < 3 { // some want much, the others nothing
				cost = max(b.Level(), 0)
			}
			time := float64(1+i+turn%7) * second / 100
			b.Pass(time, cost)
			spent, used = spent+cost, used+time
		}
	}
	left := host.alloc.level
	for _, b := range buckets {
		left += b.within.level
	}
	if may := start + 0.01*AllocPart*used; spent > may || spent < 0.95*(may-left) {
		t.Errorf("%.0f ns were spent of %.0f that all may, %.0f are left", spent, may, left)
	}
}

// Without a limit of all, each process has its own.
func TestProcessAlone(t *testing.T) {
	clock := func() uint64 { return 0 }
	alone := NewBudget(0).Process(0.1, clock).Alloc()
	alone.Pass(0, 1e12)
	if alone.Unlimited() || alone.Level() > 0 {
		t.Error("a process has no limit where all together have none")
	}
}

// A loan can be spent at once, and over its term no more is spent than the rate allows.
func TestLoanIsPaidBack(t *testing.T) {
	b := NewBucket(Terms{Rate: 0.01, Depth: 20, Loan: 25, Term: 10_000})
	spent := 0.0
	for range 1000 {
		cost := max(b.Level(), 0)
		spent += cost
		b.Pass(10, cost)
	}
	if early := NewBucket(Terms{Rate: 0.01, Depth: 20, Loan: 25, Term: 10_000}).Level(); early != 25 {
		t.Errorf("%v can be spent at once, want 25", early)
	}
	if allowed := 0.01 * 10_000; spent > allowed+1 || spent < allowed-1 {
		t.Errorf("%v was spent over the term, allowed are %v", spent, allowed)
	}
}

// What may be spent in the time to come takes the debt into account.
func TestSpending(t *testing.T) {
	b := NewBucket(Terms{Rate: 0.1, Depth: 100})
	b.Pass(0, 50)
	if allowed, even := b.Spending(1000); allowed != 0.1 || math.Abs(even-0.05) > 1e-9 {
		t.Errorf("in debt: %v, %v", allowed, even)
	}
	if _, even := b.Spending(10); even != 0 {
		t.Errorf("deep in debt: %v", even)
	}
}

// What events and allocation leave of their parts serves the probes in the run-time system, once
// and no more. The levels are those that each has beside what all together may spend.
func TestWhatIsLeftServesOthers(t *testing.T) {
	const second = 1e9
	b := NewBudget(0.01)
	alloc, gc, threads := b.Alloc(), b.RTS(), b.RTS()
	alloc.Pass(100*second, 0) // it fills up, and leaves more than may be kept for others
	gc.Pass(0, 10e6)
	if want := rtsBurst; gc.level != want {
		t.Errorf("after 10 ms were spent %v are left, want %v", gc.level, want)
	}
	threads.Pass(0, 50e6)
	if want := rtsBurst - 50e6 + 0.01*burst - 10e6; math.Abs(threads.level-want) > 1 {
		t.Errorf("after 50 ms were spent %v are left, want %v", threads.level, want)
	}
	// A rate that is the most allowed leaves nothing.
	events := b.Sampling()
	for range 100 {
		events.bucket.Pass(second, 0.01*EventsPart*second)
	}
	if gc.Pass(0, 1e6); math.Abs(gc.level-(rtsBurst-1e6)) > 1 {
		t.Errorf("%v are left, want %v", gc.level, rtsBurst-1e6)
	}
}

// Without a rate anything may be spent, at any time.
func TestUnlimitedBucket(t *testing.T) {
	for _, b := range []*Bucket{NewBucket(Terms{}), NewBudget(0).Alloc(), NewBudget(0).RTS()} {
		b.Pass(1, 1e18)
		if !b.Unlimited() || !math.IsInf(b.Level(), 1) {
			t.Errorf("%+v has a limit", b)
		}
	}
}

// The parts of a budget do not add up to more than it: there are two groups of probes in the
// run-time system.
func TestPartsAreOfOneBudget(t *testing.T) {
	if sum := EventsPart + AllocPart + 2*RTSPart; sum > 1+1e-9 {
		t.Errorf("all together may take %v of the budget", sum)
	}
}

// Whatever kinds of measuring spend as soon as they may, all together have cost no more than the part that was asked for
// once the capture has settled, and at any moment before no more than startCredit beyond it. Sampled events,
// which do not wait for the others, may be ahead by what they have not paid back of their loan.
func TestShortCapturesKeepWithinTheBudget(t *testing.T) {
	const step, asked = 10e6, 0.01
	b := NewBudget(asked)
	events, others := b.Sampling(), []*Bucket{b.Alloc(), b.Nursery(), b.RTS(), b.RTS()}
	spent := 0.0
	spend := func(bucket *Bucket) {
		cost := max(bucket.Level(), 0)
		spent += cost
		bucket.Pass(0, cost)
	}
	for used := step; used <= 2*settled; used += step {
		b.Pass(step)
		for _, bucket := range append([]*Bucket{events.bucket}, others...) {
			bucket.Pass(step, 0)
			spend(bucket)
		}
		allowed := asked*used + startCredit
		if used >= settled {
			allowed = asked * used
		}
		allowed += max(events.bucket.loan(used), 0)
		if spent > allowed+1 {
			t.Fatalf("after %v s of CPU time %.1f ms were spent, at most %.1f may be", used/1e9, spent/1e6, allowed/1e6)
		}
	}
	if spent < 0.95*asked*2*settled {
		t.Errorf("of %v ms that may be spent only %.1f were", asked*2*settled/1e6, spent/1e6)
	}
	if heap := b.Heap(); heap.Level() != heapLoan {
		t.Errorf("censuses may cost %v, want a loan of their own", heap.Level())
	}
}

// Waits have all of a budget that nothing else has, and a fifth of it beside the others, which together take no more than there is.
func TestWaitsTakeWhatIsLeft(t *testing.T) {
	alone := NewBudget(0.01)
	alone.NeedWaits()
	if rate := alone.Waits().Rate(); rate != 0.01 {
		t.Errorf("alone %v", rate)
	}
	b := NewBudget(0.01)
	b.NeedWaits()
	sum := b.Alloc().Rate() + b.Nursery().Rate() + b.RTS().Rate() + b.RTS().Rate() + b.Sampling().bucket.Rate() + b.Waits().Rate()
	if math.Abs(sum-0.01) > 1e-9 {
		t.Errorf("all together %v", sum)
	}
	if !NewBudget(0).Waits().Unlimited() {
		t.Error("no bound is one")
	}
}

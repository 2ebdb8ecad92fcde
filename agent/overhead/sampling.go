package overhead

// Sampling chooses the part of the asked rate at which events are sampled, so that they keep
// within their budget. At a capture's start samples may take more, so that a short one has
// some; that is paid back until the capture has settled.
type Sampling struct {
	bucket  *Bucket
	grace   float64 // what may be taken at once
	part    float64
	each    float64 // ns, what an overflow costs
	watched watched // since part was last thought about
	changed float64 // CPU time of the target at the last change of part, ns
	last    Use
}

// watched is what has passed since something was decided: CPU time of the target and of
// samples, in ns, and how many overflows there were.
type watched struct{ target, cost, overflows float64 }

const (
	// settled is the target's CPU time, in ns, from which on no more than the part is
	// taken.
	settled = 10e9
	// graceOf is the CPU time whose part may be taken at once, ns, at usualRate. At a lower
	// rate it is less than in proportion, since a low rate is asked for on purpose. mostGrace
	// bounds it: some hundred interrupts where they are most expensive.
	graceOf   = settled / 4
	usualRate = Default * EventsPart
	mostGrace = 25e6
)

func newSampling(rate float64) *Sampling {
	grace := 0.0
	if rate > 0 {
		grace = min(mostGrace, rate*graceOf*min(rate/usualRate, 1))
	}
	return &Sampling{bucket: NewBucket(Terms{Rate: rate, Depth: rate * burst, Loan: grace, Term: settled}), grace: grace, part: 1}
}

// Use is what the target and the samples of events have used so far, in ns.
type Use struct {
	Target     uint64 // CPU time
	BPF        uint64 // of the walker at overflows
	Interrupts uint64 // that brought the overflows
	Overflows  uint64 // a number
	Taken      uint64 // a number, of samples
	Walk       uint64 // what a sample takes in the walker, the rarest left out
}

// Part is the part of the asked rate at which events are to be sampled.
func (s *Sampling) Part() float64 { return s.part }

// Each is what an overflow costs, ns; 0 until it is known.
func (s *Sampling) Each() float64 { return s.each }

// Pass charges what was used since the last time, and handling, which the agent spent on
// samples in the target's place. It chooses the part anew.
func (s *Sampling) Pass(u Use, handling float64) {
	target := float64(u.Target - min(s.last.Target, u.Target))
	overflows, taken := float64(u.Overflows-s.last.Overflows), float64(u.Taken-s.last.Taken)
	cost := plausible(float64(u.BPF-s.last.BPF), taken, overflows, float64(u.Walk)) + handling
	// Less than before if hits were found to be others'.
	cost += float64(int64(u.Interrupts - s.last.Interrupts))
	s.last = u
	s.bucket.Pass(target, cost)
	s.adapt(target, cost, overflows)
}

// Begin takes what was used before samples are charged for.
func (s *Sampling) Begin(u Use) { s.last = u }

// plausible leaves out of a cost what a virtual machine's host took meanwhile: the
// kernel counts time, not CPU time, in BPF.
func plausible(cost, taken, overflows, walk float64) float64 {
	const (
		passedOver = 500 // ns, an overflow that is not sampled, generously
		record     = 3000
	)
	return min(cost, taken*(2*walk+record)+overflows*passedOver)
}

// adapt chooses the part of the asked rate at which events are sampled. Every change opens the
// events anew, so changes are rare: down when the budget is spent, up when tokens have long
// been left.
func (s *Sampling) adapt(target, cost, overflows float64) {
	const (
		least = 0.01
		// enough is the CPU time of the target, in ns, from which its cost is known; less
		// suffices if the cost is high. The kernel counts in steps of ten milliseconds.
		enough = 100e6
		little = 30e6
		// horizon is the CPU time in which a debt is to be paid back, ns.
		horizon = 3e9
		// leastPayback is the part of the steady rate that is kept while a debt is paid back: few samples that stand for much
		// each would be worth less than the debt. Of a debt beyond what is allowed in lastingDebt, ns of CPU time, less is kept: it
		// comes again and again.
		leastPayback = 0.3
		lastingDebt  = 10e9
		// patience is that between a change and one to more.
		patience = 2e9
	)
	w := &s.watched
	w.target += target
	w.cost += cost
	w.overflows += overflows
	if s.bucket.Unlimited() || w.target < little || w.target < enough && w.cost < s.grace/2 {
		return
	}
	if w.overflows >= 1 {
		each := w.cost / w.overflows
		if s.each == 0 {
			s.each = each
		}
		// What comes once, as reading a program's tables, is not what each costs; what lasts is believed soon.
		s.each += (min(each, 2*s.each) - s.each) / 4
	}
	rate, soon := w.overflows/w.target, w.cost
	*w = watched{}
	steady, evened := 1.0, 1.0
	if s.each > 0 && rate > 0 {
		allowed, even := s.bucket.Spending(horizon)
		full := rate * s.each / s.part // what the asked rate takes
		steady = min(allowed/full, 1)
		kept := min(leastPayback, leastPayback*allowed*lastingDebt/max(-s.bucket.Level(), 1))
		evened = max(min(even/full, 1), steady*kept)
	}
	switch {
	case evened < 0.8*s.part && s.bucket.Level() < max(s.grace/8, soon):
		s.part = max(evened, least)
	case (steady > 1.25*s.part || steady == 1 && s.part < 1) && s.bucket.Level() >= 0 && s.bucket.Passed()-s.changed > patience:
		s.part = steady
	default:
		return
	}
	s.changed = s.bucket.Passed()
}

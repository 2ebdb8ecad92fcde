// Package transactions adds up windows in which attempts to run STM transactions were counted
// (eventlog.TransactionWindow), and says how sure the sums are.
//
// A window's counts stand for a longer time than it lasted. What that leaves open is estimated from how much the
// rates of windows that follow each other differ (Wolter, "Introduction to Variance Estimation", 2nd
// ed. 2007, §8.2, estimator v2). Where windows stand for no more than themselves, counts are exact.
//
// Where the run-time system counts itself how many transactions begin (eventlog.TransactionWindow.Begun), windows only say how
// those end: an estimate is that count times a ratio of two sums over windows, whatever probes do to the program's pace.
//
// Shares of CPU time are ratios of two sums over windows, with the variance of the linearised ratio (Cochran,
// "Sampling Techniques", 3rd ed. 1977, §6.3), but at least that of as many independent samples; intervals are Wilson's (1927).
package transactions

import (
	"math"
	"slices"

	"ccagent/eventlog"
)

// plausible bounds the figures of a window; in what claims more nothing is to be trusted, and sums of them would overflow.
const plausible = 1 << 50

// mostSlowed bounds the part of a window that hits are taken to have taken, and hitDoubt is by what part it is taken to be off.
const (
	mostSlowed = 0.95
	hitDoubt   = 0.3
)

// Totals are sums over windows. The zero value is ready to use.
type Totals struct {
	Windows int
	// Counted are the attempts that were counted, by how they ended.
	Counted [eventlog.TransactionEnds]uint64
	// LengthNs is the time that was counted in, StandsNs that it stands for.
	LengthNs, StandsNs uint64
	// Noted are samples of CPU time inside of transactions, Sampled those of which it is known how the attempt has ended.
	Noted   uint64
	Sampled [eventlog.TransactionEnds]uint64

	// What the run-time system has counted itself: transactions that began in windows, and in all, and how many windows
	// there were with some; sums of products with those that ended, for the variance.
	begun, begunStands, begunWindows float64
	slowed                           float64 // of LengthNs, what hits took
	begunBegun                       float64
	endEnd, endBegun                 [eventlog.TransactionEnds + 1]float64 // the last are of all ends

	estimate, variance [eventlog.TransactionEnds]float64
	last               [eventlog.TransactionEnds]float64 // rates of the window before
	doubt              [eventlog.TransactionEnds]float64 // how far estimates may be off, since it is not known exactly how hits slow
	// Sums of the weighted samples of each end and of all ends of a window, and of their products.
	of, ofOf, ofAll [eventlog.TransactionEnds]float64
	all, allAll     float64
}

// Add adds a window.
func (t *Totals) Add(w *eventlog.TransactionWindow) {
	if max(w.LengthNs, w.StandsNs, w.Begun, w.BegunStands, w.Noted, slices.Max(w.Ends[:]), slices.Max(w.Sampled[:])) > plausible {
		return
	}
	t.begunStands += float64(max(w.BegunStands, w.Begun))
	if w.LengthNs == 0 {
		t.gap(w.StandsNs)
		return
	}
	t.Windows++
	t.LengthNs += w.LengthNs
	stands := max(w.StandsNs, w.LengthNs)
	t.StandsNs += stands
	t.Noted += w.Noted
	rest, length, doubt := extrapolated(w)
	factor, cpu := Factor(w), CPUFactor(w)
	t.slowed += float64(w.LengthNs) - own(w)
	if b := float64(w.Begun); b > 0 {
		t.begun, t.begunWindows, t.begunBegun = t.begun+b, t.begunWindows+1, t.begunBegun+b*b
		ended := 0.0
		for i, n := range w.Ends {
			t.endEnd[i] += float64(n) * float64(n)
			t.endBegun[i] += float64(n) * b
			ended += float64(n)
		}
		t.endEnd[eventlog.TransactionEnds] += ended * ended
		t.endBegun[eventlog.TransactionEnds] += ended * b
	}
	all := 0.0
	for i, n := range w.Ends {
		rate := float64(n) / length
		t.doubt[i] += rest * rate * doubt
		t.Counted[i] += n
		t.Sampled[i] += w.Sampled[i]
		t.estimate[i] += float64(n) * factor
		if t.Windows > 1 {
			d := rest * (rate - t.last[i])
			t.variance[i] += d * d / 2
		} else {
			d := rest * rate
			t.variance[i] += d * d
		}
		t.last[i] = rate
		all += cpu * float64(w.Sampled[i])
	}
	for i, n := range w.Sampled {
		x := cpu * float64(n)
		t.of[i] += x
		t.ofOf[i] += x * x
		t.ofAll[i] += x * all
	}
	t.all += all
	t.allAll += all * all
}

// gap adds a time for which nothing was counted, and nothing that was stands: the rate before is taken for it, and no
// other is excluded up to twice that.
func (t *Totals) gap(ns uint64) {
	if t.StandsNs > 0 {
		for i, n := range t.estimate {
			missing := n / float64(t.StandsNs) * float64(ns)
			t.estimate[i] += missing
			t.doubt[i] += missing
		}
	}
	t.StandsNs += ns
}

// Factor is what an attempt that was counted in a window stands for.
func Factor(w *eventlog.TransactionWindow) float64 {
	rest, length, _ := extrapolated(w)
	return 1 + rest/length
}

// CPUFactor is what CPU time that was sampled in a window stands for. It does not follow the number of transactions that begin: where
// they take long, few begin in a window, and no less CPU time is sampled.
func CPUFactor(w *eventlog.TransactionWindow) float64 {
	return float64(max(w.StandsNs, w.LengthNs)) / float64(max(w.LengthNs, 1))
}

// extrapolated returns for how much more than its own length a window stands, and by what part that may be off. Where the
// run-time system counts transactions that begin, the length is their number: probes cannot make them fewer
// for the same work. Else it is CPU time without what hits took, which is not known exactly.
func extrapolated(w *eventlog.TransactionWindow) (rest, length, doubt float64) {
	if w.Begun > 0 && w.BegunStands > 0 {
		return float64(max(w.BegunStands, w.Begun) - w.Begun), float64(w.Begun), 0
	}
	length = own(w)
	return float64(max(w.StandsNs, w.LengthNs) - w.LengthNs), length, hitDoubt * (float64(w.LengthNs) - length) / length
}

// own is how much of a window was the program's own. Hits slow it down, and so make themselves rarer.
func own(w *eventlog.TransactionWindow) float64 {
	length := float64(w.LengthNs)
	return max(length-float64(w.SlowedNs), (1-mostSlowed)*length)
}

// Estimate is a figure with its 95 % interval.
type Estimate struct{ Value, Low, High float64 }

// Exact reports whether attempts were counted all the time.
func (t *Totals) Exact() bool { return t.StandsNs == t.LengthNs }

// ofBegun estimates how many of the transactions that have begun are of a kind of which n were counted, given the
// sums over windows of squares of the kind's counts and of their products with what began: a ratio of
// two sums (see the package's documentation). Attempts that end are at most those that begin.
func (t *Totals) ofBegun(n, squares, products float64) Estimate {
	p := min(n/t.begun, 1)
	trials := t.begun
	if residuals := max(squares-2*p*products+p*p*t.begunBegun, 0); residuals > 0 && p > 0 && p < 1 {
		trials = min(trials, p*(1-p)*t.begun*t.begun/residuals)
	}
	// A few windows do not show how much they differ.
	const few = 4
	trials = max(min(trials, few*t.begunWindows*t.begunWindows), 1)
	low, high := wilson(p, trials)
	return Estimate{p * t.begunStands, max(low*t.begunStands, n), max(high*t.begunStands, n)}
}

// counts reports whether estimates follow from the run-time system's own count of what began.
func (t *Totals) counts() bool { return t.begun > 0 && t.begunStands > t.begun }

// Attempts estimates how many attempts have ended so.
func (t *Totals) Attempts(end eventlog.TransactionEnd) Estimate {
	if t.counts() {
		e := t.ofBegun(float64(t.Counted[end]), t.endEnd[end], t.endBegun[end])
		// Hits slow the program down, and so may change how attempts end: threads that are slower find more, or less, to wait for.
		doubt := hitDoubt * t.slowed / float64(max(t.LengthNs, 1))
		return Estimate{e.Value, max(e.Low-doubt*e.Value, float64(t.Counted[end])), min(e.High+doubt*e.Value, max(t.begunStands, e.High))}
	}
	return count(t.estimate[end], z*math.Sqrt(t.variance[end])+t.doubt[end], t.Counted[end])
}

// Started estimates how many attempts there were, however they ended.
func (t *Totals) Started() Estimate {
	if t.counts() {
		ended := 0.0
		for _, n := range t.Counted {
			ended += float64(n)
		}
		return t.ofBegun(ended, t.endEnd[eventlog.TransactionEnds], t.endBegun[eventlog.TransactionEnds])
	}
	var value, half float64
	var counted uint64
	for i := range t.estimate {
		value += t.estimate[i]
		half += z*math.Sqrt(t.variance[i]) + t.doubt[i]
		counted += t.Counted[i]
	}
	return count(value, half, counted)
}

func count(value, half float64, counted uint64) Estimate {
	return Estimate{value, max(value-half, float64(counted)), value + half}
}

// z is the quantile of the normal distribution for 95 %.
const z = 1.959964

// CPUShare estimates which part of the CPU time inside of transactions is in attempts that end so; false if no
// such time was sampled. What is not known of some samples is in the interval.
func (t *Totals) CPUShare(end eventlog.TransactionEnd) (Estimate, bool) {
	if t.all == 0 {
		return Estimate{}, false
	}
	p := t.of[end] / t.all
	known := 0.0
	for _, n := range t.Sampled {
		known += float64(n)
	}
	// As many independent samples as there are at most.
	n := min(known, t.all*t.all/max(t.allAll, 1)*max(known/float64(t.Windows), 1))
	if t.Windows > 1 {
		residuals := max(t.ofOf[end]-2*p*t.ofAll[end]+p*p*t.allAll, 0)
		if variance := residuals / (t.all * t.all); variance > 0 && p > 0 && p < 1 {
			n = min(n, p*(1-p)/variance)
		}
	}
	low, high := wilson(p, max(n, 1))
	unknown := float64(t.Noted-min(t.Noted, uint64(known))) / max(float64(t.Noted), known)
	return Estimate{p, low * (1 - unknown), high*(1-unknown) + unknown}, true
}

// Unknown is the part of the samples of CPU time inside of transactions of which it is not known how the attempt has ended.
func (t *Totals) Unknown() float64 {
	known := uint64(0)
	for _, n := range t.Sampled {
		known += n
	}
	if t.Noted == 0 {
		return 0
	}
	return float64(t.Noted-min(known, t.Noted)) / float64(t.Noted)
}

// wilson is Wilson's interval of a share of n trials.
func wilson(p, n float64) (low, high float64) {
	centre := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(centre-half, 0), min(centre+half, 1)
}

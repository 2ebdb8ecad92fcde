package cpu

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// comparison compares the samples of a process that were taken at the kernel's tick with those of
// an event that is not in step with it. Work that is in step with the tick, since it begins at
// timers of whole milliseconds, is hit by the tick always at the same points, or never. Then
//
//   - threads have far more or fewer ticks than their CPU time would have,
//   - threads that sleep have, at ticks, always run for the same time since they woke, which is
//     seen sooner than its consequence, that
//   - shares of code and of Haskell threads are not those that the event finds.
type comparison struct {
	codes    map[code]*pair
	haskell  map[uint64]*pair // by Haskell thread
	ages     map[uint64]*pair // by how long threads that sleep had run
	threads  map[uint32]*balance
	all      pair
	looked   float64 // events when it was looked at last
	inStep   bool
	inStepNs uint64 // CPU time in which it was
	aside    uint64 // samples at ticks that were left out
}

// code is where a sample hit: its first frames.
type code [3]uint64

// pair are numbers of samples of the same.
type pair struct{ ticks, events float64 }

const (
	// maxCodes and maxThreads bound what of a process is distinguished.
	maxCodes, maxThreads = 1 << 13, 1 << 13
	// leastEvents is from how many samples of the event on it is compared, and lookAgain by how
	// many more than the last time they have to be: each look may be wrong.
	leastEvents, lookAgain = 16, 1.25
	// renewed is after how many samples of the event a comparison begins anew, so that work that
	// falls into step is noticed. acquitted is after how many without a difference a process is
	// no longer taken to be in step.
	renewed, acquitted = 20_000, 4000
	// The ticks of a thread are not those of its time if they are off by surely standard
	// deviations of independent ones and by the part offBy: late ticks of a virtual machine are lost.
	// It matters if such threads have the part matters of the process's ticks.
	surely, offBy, matters = 4.5, 0.25, 0.05
	// different is from how many standard deviations on shares differ: one look in thirty
	// thousand is wrong.
	different = 4
	mostBins  = 8
	// A thread sleeps that does so that often in a second of its CPU time. Ages are distinguished by
	// this part of a tick, and longer ones than so many ticks are not. One that is a multiple of
	// a tick, but for that part of it, says nothing: threads that compete for a CPU are switched at ticks.
	sleepy, ageParts, oldest, nearTick = 10, 64, 16, 0.06
)

func newComparison() *comparison {
	return &comparison{codes: map[code]*pair{}, haskell: map[uint64]*pair{}, ages: map[uint64]*pair{}, threads: map[uint32]*balance{}}
}

// add counts a sample.
func (c *comparison) add(h *held) {
	h.count(&c.all)
	h.count(counted(c.codes, h.code, maxCodes))
	h.count(counted(c.haskell, h.sample.TSO, maxThreads))
	if b := c.thread(h.sample.TID); b != nil && h.tick {
		b.samples++
	}
}

// addAge counts how long the thread of a sample, which sleeps, has run. A tick has so many ns.
func (c *comparison) addAge(h *held, tick float64) {
	age := min(float64(h.age)/tick, oldest)
	if off := math.Abs(age - math.Round(age)); age > 0.5 && age < oldest && off < nearTick {
		return
	}
	h.count(counted(c.ages, uint64(age*ageParts), math.MaxInt))
}

func (h *held) count(to *pair) {
	switch {
	case to == nil:
	case h.tick:
		to.ticks++
	default:
		to.events++
	}
}

func counted[K comparable](in map[K]*pair, key K, most int) *pair {
	p := in[key]
	if p == nil && len(in) < most {
		p = &pair{}
		in[key] = p
	}
	return p
}

func (c *comparison) thread(tid uint32) *balance {
	b := c.threads[tid]
	if b == nil && len(c.threads) < maxThreads {
		b = &balance{}
		c.threads[tid] = b
	}
	return b
}

// spend adds the CPU time of a thread, ns, in which so many ticks a second would be sampled.
func (c *comparison) spend(tid uint32, ns uint64, rate float64) {
	if b := c.thread(tid); b != nil {
		b.expected += float64(ns) / 1e9 * rate
	}
}

// decide decides whether the process is in step with the tick.
func (c *comparison) decide() {
	if c.all.events < leastEvents || c.all.events < c.looked*lookAgain {
		return
	}
	c.looked = c.all.events
	switch {
	case c.miscounted() || differ(sorted(c.codes, func(a, b code) int { return slices.Compare(a[:], b[:]) })) ||
		differ(sorted(c.haskell, cmp.Compare[uint64])) || differ(sorted(c.ages, cmp.Compare[uint64])):
		c.begin(true)
	case c.inStep && c.all.events >= acquitted:
		c.begin(false)
	case c.all.events >= renewed:
		c.begin(c.inStep)
	}
}

// begin begins the comparison anew.
func (c *comparison) begin(inStep bool) {
	fresh := newComparison()
	fresh.inStep, fresh.inStepNs, fresh.aside = inStep, c.inStepNs, c.aside
	*c = *fresh
}

// miscounted reports whether threads have other numbers of ticks than their CPU time would have.
// Those with little time are taken together.
func (c *comparison) miscounted() bool {
	var off, all float64
	var small balance
	add := func(b *balance) {
		if d := math.Abs(b.samples - b.expected); d > surely*math.Sqrt(max(b.expected, 1)) && d > offBy*b.expected {
			off += max(b.samples, b.expected)
		}
	}
	for _, b := range c.threads {
		all += max(b.samples, b.expected)
		if b.expected < own && b.samples < own {
			small.samples += b.samples
			small.expected += b.expected
			continue
		}
		add(b)
	}
	add(&small)
	return off > matters*all
}

// sorted lists the pairs of a map in the order of their keys, so that what lies together is
// together.
func sorted[K comparable](in map[K]*pair, compare func(a, b K) int) []pair {
	list := make([]pair, 0, len(in))
	for _, key := range slices.SortedFunc(maps.Keys(in), compare) {
		list = append(list, *in[key])
	}
	return list
}

// differ decides by a G-test whether ticks and events are distributed differently over pairs that
// are in order. They are put into bins of about as many samples each.
func differ(pairs []pair) bool {
	var all pair
	for _, p := range pairs {
		all.ticks += p.ticks
		all.events += p.events
	}
	const leastBin = 8 // samples of each kind, about
	n := all.ticks + all.events
	bins := math.Floor(min(all.ticks/leastBin, all.events/leastBin, mostBins))
	if bins < 2 {
		return false
	}
	var bin pair
	var g, seen float64
	count := 0.0
	for i, p := range pairs {
		bin.ticks += p.ticks
		bin.events += p.events
		if seen += p.ticks + p.events; i < len(pairs)-1 && (bin.ticks+bin.events < n/bins || n-seen < n/bins/2) {
			continue
		}
		size := bin.ticks + bin.events
		g += 2 * (surprise(bin.ticks, size*all.ticks/n) + surprise(bin.events, size*all.events/n))
		bin = pair{}
		count++
	}
	return count > 1 && deviation(g, count-1) > different
}

func surprise(found, expected float64) float64 {
	if found == 0 {
		return 0
	}
	return found * math.Log(found/expected)
}

// deviation gives the standard normal deviate of a chi-square one (Wilson and Hilferty, "The
// distribution of chi-square", 1931).
func deviation(chi2, degrees float64) float64 {
	v := 2 / (9 * degrees)
	return (math.Cbrt(chi2/degrees) - (1 - v)) / math.Sqrt(v)
}

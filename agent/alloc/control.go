package alloc

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"ccagent/agent/overhead"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/internal/ghc"
	"ccagent/perf"
)

// Parameters of the duty cycle that the package documentation describes.
const (
	// samplesPerSecond is the target rate of samples of a continuous probe, and maxThin the
	// most hits per sample, to which thinning reduces more frequent hits.
	samplesPerSecond = 500
	maxThin          = 64
	// firstLargeThin is the initial distance between samples of large objects, in blocks.
	firstLargeThin = 512
	// minCycle is the least time from window to window, ns. A random time of up to as much is
	// added, so that windows do not fall into step with the program.
	minCycle = 60e6
)

// windowLength is the least length of a window of each site's probe. If the budget allows it, a
// window is up to maxStretch times as long. A window should catch several hits, and blocks
// are hit most often.
var windowLength = [bpf.AllocSites]time.Duration{
	bpf.SiteNursery: time.Millisecond,
	bpf.SiteBlock:   250 * time.Microsecond,
	bpf.SiteLarge:   time.Millisecond,
}

// samplesInWindow is the target number of samples in a window. Samples of blocks in one window
// are close in time and so resemble each other: a few are enough. Large objects need many,
// since a pattern in their allocation would bias a thinned choice.
var samplesInWindow = [bpf.AllocSites]float64{
	bpf.SiteNursery: 64,
	bpf.SiteBlock:   12,
	bpf.SiteLarge:   64,
}

// minObserved is the least time in place, ns, from which a probe's hit rate is computed.
const minObserved = 200e3

const maxStretch = 100

// maxOverspend is the factor by which a window may exceed its planned cost before it is ended
// early; it does if its probe is hit more often than before.
const maxOverspend = 3

// countedHit is what a hit costs that is not sampled, ns. Samples of full nurseries, and surveys,
// each take at most one of samplingParts of the budget.
const (
	countedHit    = 1000
	samplingParts = 2
)

// maxContinuousShare is the share of the budget that continuous probes may take together, and
// maxWindowShare the share of the bucket's depth that one window may.
const (
	maxContinuousShare = 0.7
	maxWindowShare     = 1.0 / 16
)

// windowSites are the sites whose probes may be in place for windows, in order of preference.
var windowSites = [...]bpf.AllocSite{bpf.SiteBlock, bpf.SiteLarge, bpf.SiteNursery}

// parallelism measures on how many CPUs the target runs, at least 1.
type parallelism struct {
	time, target uint64
	cpus         float64
}

// update updates the measurement by the CPU time that the target has used by a time, both ns.
func (b *parallelism) update(time, target uint64) {
	const enough = 100e6
	if b.time == 0 || time < b.time || target < b.target {
		b.time, b.target = time, target
	}
	if time-b.time < enough {
		return
	}
	b.cpus = max(float64(target-b.target)/float64(time-b.time), 1)
	b.time, b.target = time, target
}

// Throttle charges the probes' cost to the bucket, and places and removes probes accordingly.
func (a *allocation) Throttle(u source.Use) error {
	if a.host.OwnLogs {
		return a.throttleEach(u)
	}
	charged := u.Cost.Probes.Ns + u.Cost.ProbeNs
	cost := float64(int64(charged - a.charged))
	a.bucket.Pass(float64(u.Target-min(a.target, u.Target)), cost+u.Handling)
	a.charged, a.target = charged, u.Target
	a.parallelism.update(u.Time, u.Target)
	return a.control(a.bucket.Bucket)
}

// Intervals at which Throttle runs: startInterval during startPeriod, while it is unknown how
// much the target allocates, and expensiveInterval while probes are expensive.
const (
	startPeriod       = 100 * time.Millisecond
	startInterval     = 2 * time.Millisecond
	expensiveInterval = 50 * time.Millisecond
)

// Pace returns the time to the next Throttle: short at the start and while probes are expensive.
func (a *allocation) Pace(since time.Duration) time.Duration {
	switch {
	case since < startPeriod:
		return startInterval
	case a.expensive(a.bucket.Bucket):
		return expensiveInterval
	}
	return source.Never
}

// expensive reports whether a continuous probe takes more than a sixteenth of the budget and
// may suddenly cost many times as much. Probes at full nurseries are never hit that often.
func (a *allocation) expensive(b *overhead.Bucket) bool {
	const worth = 1. / 16
	for _, ai := range a.images {
		for _, site := range [...]bpf.AllocSite{bpf.SiteBlock, bpf.SiteLarge} {
			if p := ai.probes[site]; p.continuous() && a.costOf(p) > worth*b.Rate() {
				return true
			}
		}
	}
	return false
}

// Cost returns what the probes have cost, and for how long they have been in place.
func (a *allocation) Cost() (c source.Cost, err error) {
	trap := a.host.Budget.Costs.Trap()
	if c.Probes, err = a.probeCosts(trap); err != nil {
		return c, err
	}
	c.ProbeNs, c.Handled = a.traps.Count(c.Probes.Runs, trap), c.Probes.Runs
	now := perf.Monotonic()
	in := a.ended
	for _, ai := range a.images {
		for site, p := range ai.probes {
			in[site] = max(in[site], p.timeInPlace(now))
		}
	}
	c.InPlace = source.InPlace{Nursery: in[bpf.SiteNursery], Blocks: in[bpf.SiteBlock], Large: in[bpf.SiteLarge]}
	return c, nil
}

// control updates hit rates and thinning, and places or removes probes by the level of b.
func (a *allocation) control(b *overhead.Bucket) error {
	for _, ai := range a.images {
		if _, err := a.observe(ai); err != nil {
			return err
		}
		if err := a.setThinning(ai); err != nil {
			return err
		}
		if b.Unlimited() {
			if p := ai.probes[bpf.SiteBlock]; p != nil && !p.continuous() && p.place(perf.Monotonic()) != nil {
				ai.probes[bpf.SiteBlock] = nil
			}
			continue
		}
		if b.Level() < 0 {
			a.removeExpensive(ai, b)
		} else {
			a.placeNext(ai, b)
		}
	}
	return nil
}

// observe updates the ledger by what is counted, and hit rates by what the image's probes have
// counted and the windows that have ended.
func (a *allocation) observe(ai *image) (reading, error) {
	r, err := a.read(ai)
	if err != nil {
		return r, err
	}
	ai.poll(&r)
	c := r.counts()
	ai.ledger.update(ai.allocated(), &c)
	for site, p := range ai.probes {
		switch {
		case p == nil:
		case p.continuous():
			p.inPlace += r.at - min(p.inPlaceAt, r.at)
			p.inPlaceAt = r.at
			if p.lastCounts == nil {
				p.lastCounts = &r.counting
			}
			if r.at-p.lastCounts.at < minObserved {
				continue
			}
			ai.counted(bpf.AllocSite(site), p.lastCounts, &r.counting)
			p.lastCounts = &r.counting
		case p.window != nil:
			select {
			case w := <-p.window:
				if p.windowEnded(&w) {
					ai.counted(bpf.AllocSite(site), &w.before, &w.after)
				}
			default:
			}
		}
	}
	return r, nil
}

// counted updates a probe's hit rate by what was counted while it was in place.
func (ai *image) counted(site bpf.AllocSite, before, after *counting) {
	p := ai.probes[site]
	seconds := float64(after.at-before.at) / 1e9
	if seconds <= 0 {
		return
	}
	p.hitRate = movingAverage(p.hitRate, float64(after.hits(site)-before.hits(site))/seconds)
	if site == bpf.SiteLarge {
		ai.largeRate = movingAverage(ai.largeRate, float64(after.account.Large-before.account.Large)/seconds)
	}
}

// movingAverage returns the mean of the average before and the new value; the value if there
// was none.
func movingAverage(before, now float64) float64 {
	if before == 0 {
		return now
	}
	return (before + now) / 2
}

// setThinning sets, in the walker's layout of the process, one in how many hits is sampled.
func (a *allocation) setThinning(ai *image) error {
	changed := false
	for site, p := range ai.probes {
		if p == nil || p.site == bpf.SiteEnd {
			continue
		}
		perSecond := float64(samplesPerSecond)
		if !p.continuous() {
			perSecond = samplesInWindow[site] / max(p.length, windowLength[site]).Seconds()
		}
		want := uint32(min(max(p.hitRate/perSecond, 1), maxThin))
		if p.site == bpf.SiteLarge {
			want = 0
			if p.hitRate > perSecond {
				want = uint32(min(ai.largeRate/perSecond/ghc.BlockBytes, math.MaxUint32))
			}
		}
		// Small changes are left out, because each one costs an update of a BPF map.
		if have := ai.im.Layout.Thin[site]; want > have+have/4 || want < have-have/4 {
			ai.im.Layout.Thin[site] = want
			changed = true
		}
	}
	if !changed {
		return nil
	}
	if err := a.host.Walker.SetLayout(ai.im.PID, ai.im.Layout); err != nil {
		return fmt.Errorf("thin allocation samples: %w", err)
	}
	return nil
}

// removeExpensive removes the most expensive continuous probes until the others fit the budget.
func (a *allocation) removeExpensive(ai *image, b *overhead.Bucket) {
	for {
		var worst *probe
		sum, most := 0.0, 0.0
		for site, p := range ai.probes {
			if !p.continuous() {
				continue
			}
			cost := a.costOf(p)
			sum += cost
			// A probe with few hits stays: it cannot be the cause, since its samples limit
			// themselves.
			if cost >= most && (p.hitRate*countedHit/1e9 > a.allowed(ai, b)/4 || site == int(bpf.SiteBlock)) {
				worst, most = p, cost
			}
		}
		if worst == nil {
			return
		}
		worst.remove(&a.background)
		worst.notBefore = perf.Monotonic() + minCycle
		if sum-most < maxContinuousShare*a.allowed(ai, b) {
			return
		}
	}
}

// allowed is what the probes of an image may take, as a share of a CPU.
func (a *allocation) allowed(ai *image, b *overhead.Bucket) float64 {
	if !a.host.OwnLogs || b.Unlimited() {
		return b.Rate()
	}
	return a.rateOf(b) * max(ai.share, leastShare)
}

// costOf returns the share of a CPU that a probe takes while it is in place.
func (a *allocation) costOf(p *probe) float64 { return p.hitRate * a.perHit[p.site] / 1e9 }

// estimateBlockCost estimates the cost of the probe of blocks before it has been in place, as a
// share of a CPU: the hits slow the program down, and so make themselves rarer.
func (a *allocation) estimateBlockCost(ai *image) float64 {
	undisturbed := max(ai.byteRate-ai.largeRate, ai.byteRate/8) / ghc.BlockBytes * a.perHit[bpf.SiteBlock] / 1e9
	return undisturbed / (1 + undisturbed/a.parallelism.cpus)
}

// placeNext places at most one probe: continuously if the budget allows that, else for a window
// of the probe whose last window is the longest ago.
func (a *allocation) placeNext(ai *image, b *overhead.Bucket) {
	now := perf.Monotonic()
	var next *probe
	var nextCost, inPlace float64
	for _, p := range ai.probes {
		if p.continuous() {
			inPlace += a.costOf(p)
		}
	}
	for _, site := range windowSites {
		p := ai.probes[site]
		if p == nil || p.awaitsUnwind || p.continuous() || p.window != nil {
			continue
		}
		cost := a.costOf(p)
		if site == bpf.SiteBlock {
			if ai.polls < 3 {
				continue // the rate of allocation is unknown yet
			}
			if p.hitRate == 0 {
				cost = a.estimateBlockCost(ai)
			}
		}
		if a.mayStay(ai, p, cost+inPlace, b) && b.Level() > b.Most()/2 && now >= p.notBefore {
			if p.place(now) != nil {
				ai.probes[site] = nil
			}
			return
		}
		if site == bpf.SiteBlock && !a.blockWindowsPay(ai) {
			continue
		}
		// If the bucket's level is too low for the probe whose turn it is, the others wait too.
		if now >= p.notBefore && windowMinimum(site, cost, b) < b.Depth() && (next == nil || p.lastBegin < next.lastBegin) {
			next, nextCost = p, cost
		}
	}
	if next == nil || b.Level() < windowMinimum(next.site, nextCost, b) {
		return
	}
	spend := min(b.Level()/2, maxWindowShare*b.Depth())
	stretch := spend / (max(nextCost, a.allowed(ai, b)) * float64(windowLength[next.site]))
	// At most 4 times the last length, in case the probe is hit more often by now.
	stretch = min(stretch, 4*float64(next.length)/float64(windowLength[next.site]), maxStretch)
	if a.host.OwnLogs {
		stretch = min(stretch, ownStretch)
	}
	next.maxHits = maxOverspend * max(spend, nextCost*float64(windowLength[next.site])) / a.perHit[next.site]
	a.openWindow(ai, next, now, max(stretch, 1))
	next.notBefore += uint64(minCycle * (1/max(ai.shareOfBytes(next.site), 1.0/8) - 1))
}

// shareOfBytes returns the share of all allocated bytes that samples of a site's windows stand
// for, 1 while it is unknown. The smaller it is, the rarer the windows are.
func (ai *image) shareOfBytes(site bpf.AllocSite) float64 {
	shares := ai.ledger.split.shares()
	switch {
	case site == bpf.SiteLarge && ai.ledger.split.countsLarge():
		return shares[largeStratum] + shares[chunkStratum]
	case site == bpf.SiteBlock && ai.ledger.split.countsLarge():
		return shares[heapStratum]
	case site == bpf.SiteNursery && ai.ledger.nurseriesMisattribute():
		return 1.0 / 2 // these windows serve to count
	}
	return 1
}

// blockWindowsPay reports whether windows at blocks are worth their cost. If heap checks fill
// the nurseries, samples of full nurseries suffice, and are better spread over time.
func (a *allocation) blockWindowsPay(ai *image) bool {
	l := ai.ledger
	return l.nurseriesMisattribute() || l.recent[heapStratum].n == 0
}

// windowMinimum returns the bucket level, ns, from which on a site may have its shortest window.
func windowMinimum(site bpf.AllocSite, cost float64, b *overhead.Bucket) float64 {
	return max(cost*float64(windowLength[site]), 0.01*b.Depth())
}

// openWindow opens a window of a probe, stretch times windowLength long.
func (a *allocation) openWindow(ai *image, p *probe, now uint64, stretch float64) {
	p.length = time.Duration(stretch * float64(windowLength[p.site]))
	if p.overrun == 0 {
		p.overrun = 1
	}
	// The time since the last window stands for the time to the next.
	cycle := 2 * float64(minCycle)
	if p.lastBegin != 0 {
		cycle = float64(now - p.lastBegin)
	} else if p.inPlaceAt != 0 {
		cycle = float64(now - p.inPlaceAt)
	}
	p.open(math.Max(cycle/(float64(p.length)*p.overrun), 1), p.length, a, ai)
	cycleMin := uint64(minCycle)
	if a.host.OwnLogs {
		cycleMin = ownCycleOf(p.length, a.inWindows())
	}
	p.notBefore = now + cycleMin + rand.Uint64N(cycleMin)
}

// probeCosts returns the runs of the probes' programs and their time in BPF, and updates the
// average cost of a hit of each site, which includes trap ns outside of BPF.
func (a *allocation) probeCosts(trap float64) (sum bpf.RunStats, err error) {
	for site, program := range a.programs {
		cost, err := bpf.RunStatsOf(program)
		if err != nil {
			return sum, err
		}
		sum.Runs += cost.Runs
		sum.Ns += cost.Ns
		if runs := float64(cost.Runs - a.cost[site].Runs); runs >= 1 {
			a.perHit[site] += (float64(cost.Ns-a.cost[site].Ns)/runs + trap - a.perHit[site]) / 4
			a.cost[site] = cost
		}
	}
	return sum, nil
}

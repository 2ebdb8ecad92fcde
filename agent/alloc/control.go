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

// How allocation probes keep within their budget. Each is either in place until
// further notice or, where that would cost too much, for windows of time, as often
// as the budget allows. Of frequent hits only a part is sampled.
const (
	// samplesPerSecond is as many samples as an always-on probe is to give; more
	// hits are thinned to about that.
	samplesPerSecond = 500
	maxThin          = 64
	// firstLargeThin is the distance at first, in blocks, of samples of large objects.
	firstLargeThin = 512
	// minCycle is the least time from window to window, ns; a random part of
	// as much again is added, so that windows fall into step with nothing.
	minCycle = 60e6
)

// windowLength is how long a window of each site's probe is at least; where the budget
// has enough for it, it is up to maxStretch times as long. A window ought to catch some
// hits; those of blocks are many.
var windowLength = [bpf.AllocSites]time.Duration{
	bpf.SiteNursery: time.Millisecond,
	bpf.SiteBlock:   250 * time.Microsecond,
	bpf.SiteLarge:   time.Millisecond,
}

// samplesInWindow is as many samples as a window is to have, about. Those of blocks are of
// one moment, of which a few tell as much as many. Of large objects that come in a pattern
// the few that are sampled can be more often of one kind than its bytes are.
var samplesInWindow = [bpf.AllocSites]float64{
	bpf.SiteNursery: 64,
	bpf.SiteBlock:   12,
	bpf.SiteLarge:   64,
}

// leastObserved is the time in place, ns, that tells how often a probe is hit.
const leastObserved = 200e3

const maxStretch = 100

// mostOverspent is how many times what a window is to take it may, if its probe is hit more
// often than it was; then it ends before its time.
const mostOverspent = 3

// mostInPlace is the part of the budget that probes in place until further notice may
// take together, and windowPart that of what is saved up which a window may.
const (
	mostInPlace = 0.7
	windowPart  = 1.0 / 16
)

// windowSites are the sites that can do with windows, the most wanted first.
var windowSites = [...]bpf.AllocSite{bpf.SiteBlock, bpf.SiteLarge, bpf.SiteNursery}

// busy tells on how many CPUs the target runs.
type busy struct {
	time, target uint64
	cpus         float64
}

// pass takes in the CPU time that the target has used by a time, ns.
func (b *busy) pass(time, target uint64) {
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

// Throttle charges what the probes have cost, and places them so that the budget keeps.
func (a *allocation) Throttle(u source.Use) error {
	charged := u.Cost.Probes.Ns + u.Cost.ProbeNs
	// It is less than before where a hit has been found to cost less than it was taken for.
	cost := float64(int64(charged - a.charged))
	a.bucket.Pass(float64(u.Target-min(a.target, u.Target)), cost+u.Handling)
	a.charged, a.target = charged, u.Target
	a.busy.pass(u.Time, u.Target)
	return a.control(a.bucket)
}

// At a capture's start nothing is known of how much the target allocates, so the cost is
// looked at often.
const (
	startPeriod   = 100 * time.Millisecond
	startInterval = 2 * time.Millisecond
	dearInterval  = 50 * time.Millisecond
)

// Pace asks for a turn often at first, and while probes are dear.
func (a *allocation) Pace(since time.Duration) time.Duration {
	switch {
	case since < startPeriod:
		return startInterval
	case a.dear(a.bucket):
		return dearInterval
	}
	return source.Never
}

// dear reports whether probes in place take a part of their budget that is worth
// watching. They are those that more allocation would make many times as dear at once:
// full nurseries are never that many.
func (a *allocation) dear(b *overhead.Bucket) bool {
	const worth = 1. / 16
	for _, ai := range a.images {
		for _, site := range [...]bpf.AllocSite{bpf.SiteBlock, bpf.SiteLarge} {
			if p := ai.probes[site]; p.continuous() && a.costs(p) > worth*b.Rate() {
				return true
			}
		}
	}
	return false
}

// Cost is what the probes have cost, and for how long they have been in place.
func (a *allocation) Cost() (c source.Cost, err error) {
	trap := a.host.Budget.Costs.Trap()
	if c.Probes, err = a.took(trap); err != nil {
		return c, err
	}
	c.ProbeNs, c.Handled = uint64(float64(c.Probes.Runs)*trap), c.Probes.Runs
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

// control places probes so that b keeps. It is called again and again.
func (a *allocation) control(b *overhead.Bucket) error {
	for _, ai := range a.images {
		if err := a.observe(ai); err != nil {
			return err
		}
		if err := a.thin(ai); err != nil {
			return err
		}
		if b.Unlimited() {
			if p := ai.probes[bpf.SiteBlock]; p != nil && !p.continuous() && p.place(perf.Monotonic()) != nil {
				ai.probes[bpf.SiteBlock] = nil
			}
			continue
		}
		if b.Level() < 0 {
			a.retreat(ai, b)
		} else {
			a.advance(ai, b)
		}
	}
	return nil
}

// observe takes in what the image's probes have counted, and the windows that have
// ended.
func (a *allocation) observe(ai *image) error {
	r, err := a.read(ai)
	if err != nil {
		return err
	}
	ai.poll(&r)
	for site, p := range ai.probes {
		switch {
		case p == nil:
		case p.continuous():
			p.inPlace += r.at - min(p.inPlaceAt, r.at)
			p.inPlaceAt = r.at
			if p.since == nil {
				p.since = &r
			}
			if r.at-p.since.at < leastObserved {
				continue
			}
			ai.counted(bpf.AllocSite(site), p.since, &r)
			p.since = &r
		case p.window != nil:
			select {
			case w := <-p.window:
				if p.ended(&w) {
					ai.counted(bpf.AllocSite(site), &w.before, &w.after)
				}
			default:
			}
		}
	}
	return nil
}

// counted takes in what a probe has counted while it was in place.
func (ai *image) counted(site bpf.AllocSite, before, after *reading) {
	p := ai.probes[site]
	seconds := float64(after.at-before.at) / 1e9
	if seconds <= 0 {
		return
	}
	n := after.since(before, site)
	p.hitRate = lately(p.hitRate, float64(after.account.Hits[site]-before.account.Hits[site])/seconds)
	if site == bpf.SiteLarge {
		ai.large = lately(ai.large, float64(after.account.Large-before.account.Large)/seconds)
	}
	ai.ledger.observe(site, n)
}

// lately follows what is measured.
func lately(before, now float64) float64 {
	if before == 0 {
		return now
	}
	return (before + now) / 2
}

// thin tells the walker which part of the hits to sample.
func (a *allocation) thin(ai *image) error {
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
				want = uint32(min(ai.large/perSecond/ghc.BlockBytes, math.MaxUint32))
			}
		}
		// Not for a little: every change is told to the kernel.
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

// retreat takes probes out until what is left can stay.
func (a *allocation) retreat(ai *image, b *overhead.Bucket) {
	for {
		var worst *probe
		sum, most := 0.0, 0.0
		for site, p := range ai.probes {
			if !p.continuous() {
				continue
			}
			cost := a.costs(p)
			sum += cost
			// A rare one is not to blame.
			if cost >= most && (p.hitRate >= 10 || site == int(bpf.SiteBlock)) {
				worst, most = p, cost
			}
		}
		if worst == nil {
			return
		}
		worst.remove(&a.background)
		worst.due = perf.Monotonic() + minCycle
		if sum-most < mostInPlace*b.Rate() {
			return
		}
	}
}

// costs is the part of a CPU's time that a probe takes while it is in place.
func (a *allocation) costs(p *probe) float64 { return p.hitRate * a.perHit[p.site] / 1e9 }

// wouldCost is what the probe of blocks takes, if it has not been in place: it is hit the
// less often the longer that takes.
func (a *allocation) wouldCost(ai *image) float64 {
	undisturbed := max(ai.rate-ai.large, ai.rate/8) / ghc.BlockBytes * a.perHit[bpf.SiteBlock] / 1e9
	return undisturbed / (1 + undisturbed/a.busy.cpus)
}

// advance puts a probe in place that the budget has come to allow: of those that
// may have a window, the one that has waited longest.
func (a *allocation) advance(ai *image, b *overhead.Bucket) {
	now := perf.Monotonic()
	var next *probe
	var nextCost, inPlace float64
	for _, p := range ai.probes {
		if p.continuous() {
			inPlace += a.costs(p)
		}
	}
	for _, site := range windowSites {
		p := ai.probes[site]
		if p == nil || p.waits || p.continuous() || p.window != nil {
			continue
		}
		cost := a.costs(p)
		if site == bpf.SiteBlock {
			if ai.polls < 3 {
				continue // it is not known yet
			}
			if p.hitRate == 0 {
				cost = a.wouldCost(ai)
			}
		}
		if cost+inPlace < mostInPlace*b.Rate() && b.Level() > b.Depth()/2 && now >= p.due {
			if p.place(now) != nil {
				ai.probes[site] = nil
			}
			return
		}
		if site == bpf.SiteBlock && !a.wantsBlocks(ai) {
			continue
		}
		// The one whose turn it is may have to wait until there is enough for it;
		// then the others wait as well.
		if now >= p.due && windowNeeds(site, cost, b) < b.Depth() && (next == nil || p.lastBegin < next.lastBegin) {
			next, nextCost = p, cost
		}
	}
	if next == nil || b.Level() < windowNeeds(next.site, nextCost, b) {
		return
	}
	spend := min(b.Level()/2, windowPart*b.Depth())
	stretch := spend / (max(nextCost, b.Rate()) * float64(windowLength[next.site]))
	// Not much longer than the last: it may be hit more often than it was.
	stretch = min(stretch, 4*float64(next.length)/float64(windowLength[next.site]), maxStretch)
	next.most = mostOverspent * max(spend, nextCost*float64(windowLength[next.site])) / a.perHit[next.site]
	a.openWindow(ai, next, now, max(stretch, 1))
	next.due += uint64(minCycle * (1/max(ai.tells(next.site), 1.0/8) - 1))
}

// tells is the part of what is allocated that the samples of a site's windows tell of. The
// less that is, the rarer they are.
func (ai *image) tells(site bpf.AllocSite) float64 {
	large := ai.ledger.large.of()
	switch {
	case site == bpf.SiteLarge && ai.ledger.large.known():
		return large
	case site == bpf.SiteBlock && ai.ledger.heap.known():
		return 1 - large
	case site == bpf.SiteNursery && ai.ledger.mixed():
		return 0 // but for how mixed it is
	}
	return 1
}

// wantsBlocks tells whether windows at blocks are worth what they take. Where heap checks
// fill the nursery, samples of full nurseries are, which have each a moment of their own.
func (a *allocation) wantsBlocks(ai *image) bool {
	return ai.probes[bpf.SiteNursery].continuous() || ai.ledger.primitives >= somePrimitives
}

// somePrimitives is the part of full nurseries, found by primitive operations, from which
// on it has to be told what those have allocated themselves.
const somePrimitives = 1.0 / 16

// windowNeeds is the level of the budget, ns, from which on a site may have its shortest
// window.
func windowNeeds(site bpf.AllocSite, cost float64, b *overhead.Bucket) float64 {
	return max(cost*float64(windowLength[site]), 0.01*b.Depth())
}

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
	p.due = now + minCycle + rand.Uint64N(minCycle)
}

// took takes in what the hits of each site's probe have cost so far: time in BPF, and trap
// ns each.
func (a *allocation) took(trap float64) (sum bpf.RunStats, err error) {
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

package agent

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"ccagent/bpf"
)

// How allocation probes keep within their budget. Each is either in place until
// further notice or, where that would cost too much, for windows of time, as often
// as the budget allows. Of frequent hits only a part is sampled.
const (
	// defaultHitCost is what a hit is taken to cost before it has been measured,
	// ns: a trap into the kernel and a stack walk.
	defaultHitCost = 4000
	// samplesPerSecond is as many samples as an always-on probe is to give; more
	// hits are thinned to about that.
	samplesPerSecond = 500
	maxThin          = 64
	// firstLargeThin is the distance at first, in blocks, of samples of large objects.
	firstLargeThin = 512
	windowDensity  = 10
	blockBytes     = 4096
	// minCycle is the least time from window to window, ns; a random part of
	// as much again is added, so that windows fall into step with nothing.
	minCycle = 150e6
)

// windowLength is how long a window of each site's probe is at least; where the budget
// has enough for it, it is up to maxStretch times as long. A window ought to catch some
// hits; those of blocks are many.
var windowLength = [bpf.AllocSites]time.Duration{
	bpf.SiteNursery: 5 * time.Millisecond,
	bpf.SiteBlock:   250 * time.Microsecond,
	bpf.SiteLarge:   5 * time.Millisecond,
}

// leastObserved is the time in place, ns, that tells how often a probe is hit.
const leastObserved = 200e3

const maxStretch = 8

// mostInPlace is the part of the budget that probes in place until further notice may
// take together.
const mostInPlace = 0.7

// windowSites are the sites that can do with windows, the most wanted first.
var windowSites = [...]bpf.AllocSite{bpf.SiteNursery, bpf.SiteLarge, bpf.SiteBlock}

// control places probes so that b keeps. It is called again and again.
func (a *allocProbes) control(b *bucket) error {
	if a == nil {
		return nil
	}
	for _, ai := range a.images {
		if err := a.observe(ai); err != nil {
			return err
		}
		if err := a.thin(ai); err != nil {
			return err
		}
		if b.unlimited() {
			if p := ai.probes[bpf.SiteBlock]; p != nil && !p.continuous() && p.place(monotonic()) != nil {
				ai.probes[bpf.SiteBlock] = nil
			}
			continue
		}
		if b.level < 0 {
			a.retreat(ai)
		} else {
			a.advance(ai, b)
		}
	}
	return nil
}

// observe takes in what the image's probes have counted, and the windows that have
// ended.
func (a *allocProbes) observe(ai *allocImage) error {
	ai.poll()
	account, err := a.sampler.Account(ai.im.Generation)
	if err != nil {
		return err
	}
	now := monotonic()
	for site, p := range ai.probes {
		if p == nil {
			continue
		}
		if p.continuous() {
			p.inPlace += now - p.inPlaceAt
			p.inPlaceAt = now
		}
		if p.window != nil {
			select {
			case w := <-p.window:
				p.window = nil
				if w.err != nil {
					continue // the process has ended, or is about to
				}
				p.inPlace += w.close - w.open
				p.overrun += (float64(w.close-w.open)/float64(p.length) - p.overrun) / 4
			default:
				continue // its hits are counted with its time
			}
		}
		elapsed := float64(p.inPlace - p.observed)
		if elapsed < leastObserved {
			continue
		}
		p.observed = p.inPlace
		rate := float64(account.Hits[site]-p.hits) * 1e9 / elapsed
		p.hitRate += (rate - p.hitRate) / 2
		p.hits = account.Hits[site]
		if site == int(bpf.SiteLarge) {
			bytes := float64(account.Large-ai.account.Large) * 1e9 / elapsed
			ai.large += (bytes - ai.large) / 2
			ai.account.Large = account.Large
		}
	}
	return nil
}

// thin tells the walker which part of the hits to sample.
func (a *allocProbes) thin(ai *allocImage) error {
	changed := false
	for site, p := range ai.probes {
		if p == nil {
			continue
		}
		perSecond := samplesPerSecond
		if !p.continuous() {
			// In a window most of the cost is that of being hit at all.
			perSecond *= windowDensity
		}
		want := uint32(min(max(p.hitRate/float64(perSecond), 1), maxThin))
		if p.site == bpf.SiteLarge {
			want = 0
			if p.hitRate > float64(perSecond) {
				want = uint32(min(ai.large/float64(perSecond)/blockBytes, math.MaxUint32))
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
	if err := a.sampler.SetLayout(ai.im.PID, ai.im.Layout); err != nil {
		return fmt.Errorf("thin allocation samples: %w", err)
	}
	return nil
}

// retreat takes the probe out that costs most.
func (a *allocProbes) retreat(ai *allocImage) {
	if p := ai.probes[bpf.SiteBlock]; p.continuous() {
		p.remove(&a.background)
		return
	}
	var worst *probe
	for _, site := range [...]bpf.AllocSite{bpf.SiteNursery, bpf.SiteLarge} {
		if p := ai.probes[site]; p.continuous() && (worst == nil || p.hitRate > worst.hitRate) {
			worst = p
		}
	}
	// A rare one is not to blame.
	if worst != nil && worst.hitRate >= 10 {
		worst.remove(&a.background)
		worst.due = monotonic() + minCycle
	}
}

// advance puts a probe in place that the budget has come to allow: of those that
// may have a window, the one that has waited longest.
func (a *allocProbes) advance(ai *allocImage, b *bucket) {
	now := monotonic()
	var next *probe
	var nextCost, inPlace float64
	for _, p := range ai.probes {
		if p.continuous() {
			inPlace += p.hitRate * a.perHit / 1e9
		}
	}
	for _, site := range windowSites {
		p := ai.probes[site]
		if p == nil || p.waits || p.continuous() || p.window != nil {
			continue
		}
		rate := p.hitRate
		if site == bpf.SiteBlock {
			if ai.polls < 3 {
				continue // it is not known yet
			}
			rate = max((ai.rate-ai.large)/blockBytes, rate/16)
		}
		cost := rate * a.perHit / 1e9
		if cost+inPlace < mostInPlace*b.rate && b.level > b.depth()/2 {
			if p.place(now) != nil {
				ai.probes[site] = nil
			}
			return
		}
		// Blocks wait until the others need no windows, unless full nurseries do
		// not tell who filled them.
		if n := ai.probes[bpf.SiteNursery]; site == bpf.SiteBlock && !n.continuous() && ai.ledger.primitives < manyPrimitives {
			continue
		}
		// The one whose turn it is may have to wait until there is enough for it;
		// then the others wait as well.
		if now >= p.due && windowNeeds(site, cost, b) < b.depth() && (next == nil || p.lastBegin < next.lastBegin) {
			next, nextCost = p, cost
		}
	}
	if next != nil && b.level > windowNeeds(next.site, nextCost, b) {
		// Half of what is there, so that other sites have their windows too.
		stretch := b.level / 2 / (nextCost * float64(windowLength[next.site]))
		a.openWindow(next, now, min(max(stretch, 1), maxStretch))
	}
}

// windowNeeds is the level of the budget, ns, from which on a site may have its shortest
// window.
func windowNeeds(site bpf.AllocSite, cost float64, b *bucket) float64 {
	return cost*float64(windowLength[site]) + 0.05*b.depth()
}

func (a *allocProbes) openWindow(p *probe, now uint64, stretch float64) {
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
	p.open(math.Max(cycle/(float64(p.length)*p.overrun), 1), p.length, a)
	p.due = now + minCycle + rand.Uint64N(minCycle)
}

// took takes in what hits have cost so far: time in BPF, and trap ns each.
func (a *allocProbes) took(probes bpf.RunStats, trap float64) {
	runs := float64(probes.Runs - a.cost.Runs)
	if runs < 1 {
		return
	}
	a.perHit += (float64(probes.Ns-a.cost.Ns)/runs + trap - a.perHit) / 4
	a.cost = probes
}

package nursery

import (
	"math"
	"time"

	"ccagent/agent/source"
)

// firstPerBlock is what copying and walking a block is taken to cost before it was measured, ns.
const firstPerBlock = 6000

// leastChance is the least part of the collections that have a block copied while the probes are
// in place. With a smaller one most of the cost would be that of the probe's hits.
const leastChance = 1.0 / 8

// Probes that are out come back when the bucket has enoughBack of its depth.
const enoughBack = 1.0 / 8

// Throttle charges the probes' cost to the bucket, and takes probes out and puts them in.
func (n *nursery) Throttle(u source.Use) error {
	if n.program == nil {
		return nil
	}
	spent := u.Cost.Probes.Ns + u.Cost.ProbeNs
	passed := float64(u.Target - min(n.target, u.Target))
	n.bucket.Pass(passed, float64(int64(spent-n.charged))+u.Handling)
	n.charged, n.target = spent, u.Target
	counts, err := n.program.Counts()
	if err != nil || n.bucket.Unlimited() {
		return err
	}
	trap := n.host.Budget.Costs.Trap()
	hits, chosen := float64(counts.Hits-n.counted.Hits), float64(counts.Chosen-n.counted.Chosen)
	if chosen >= 1 {
		each := (float64(u.Cost.Probes.Ns-n.ran.Ns) + u.Handling) / chosen
		n.perBlock += (each - n.perBlock) / 4
	}
	n.counted, n.ran = counts, u.Cost.Probes
	if n.bucket.Level() < 0 {
		for _, ni := range n.images {
			n.remove(ni)
		}
		return nil
	}
	if hits > 0 && passed > 0 {
		// What hits alone cost is not to be saved but by taking the probes out.
		allowed, _ := n.bucket.Spending(passed)
		want := (allowed*passed - hits*trap) / (hits * n.perBlock)
		if err := n.setChances(math.Min(math.Max(want, leastChance), 1)); err != nil {
			return err
		}
	}
	if n.bucket.Level() < enoughBack*n.bucket.Depth() {
		return nil
	}
	for _, ni := range n.images {
		if ni.probe == nil && !ni.im.Exited {
			if n.place(ni) != nil {
				return nil // the process may just have ended
			}
		}
	}
	return nil
}

// setChances changes the chance, unless the change is small: each is an update of a BPF map.
func (n *nursery) setChances(chance float64) error {
	if chance > n.chance*0.75 && chance < n.chance*1.25 {
		return nil
	}
	n.chance = chance
	for _, ni := range n.images {
		if err := n.setChance(ni); err != nil {
			return err
		}
	}
	return nil
}

func (n *nursery) setChance(ni *image) error {
	ni.layout.Chance = uint32(math.Min(n.chance*math.MaxUint32, math.MaxUint32))
	return n.program.SetLayout(ni.im.PID, ni.layout)
}

// Intervals at which Throttle runs while probes are in place: startInterval during startPeriod,
// while it is unknown how many collections there are.
const (
	startPeriod   = 100 * time.Millisecond
	startInterval = 4 * time.Millisecond
	inPlace       = 50 * time.Millisecond
)

// Pace returns the time to the next Throttle.
func (n *nursery) Pace(since time.Duration) time.Duration {
	if n.bucket.Unlimited() {
		return source.Never
	}
	for _, ni := range n.images {
		if ni.probe == nil {
			continue
		}
		if since < startPeriod {
			return startInterval
		}
		return inPlace
	}
	return source.Never
}

package rts

import (
	"errors"
	"math"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"ccagent/agent/rtsevents"
	"ccagent/perf"
)

// Amounts of a group's budget, in ns. Probes that are out come back when there is enoughBack;
// a group is looked at again when it has cost leastStep at the soonest.
const (
	enoughBack = 2e6
	leastStep  = 0.25e6
)

// control keeps each group within its budget. It does not poll, since that would wake a CPU and
// several threads of Go's runtime each time: it sleeps until the kernel reports that a group
// has reached its limit of hits, or until a removed group may be placed again.
func (p *Probes) control() {
	p.running.Go(func() {
		var record ringbuf.Record
		for p.spent.ReadInto(&record) == nil { // until it is closed
			p.lookAt()
		}
	})
	p.running.Go(func() {
		back := time.NewTimer(math.MaxInt64)
		defer back.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-p.look:
			case <-back.C:
			}
			next := time.Duration(math.MaxInt64)
			for g := range p.groups {
				if p.wanted[g] && p.problem[g] == nil {
					next = min(next, p.balance(g))
				}
			}
			back.Reset(next)
		}
	})
}

// lookAt wakes control, to charge what the probes have cost.
func (p *Probes) lookAt() {
	select {
	case p.look <- struct{}{}:
	default:
	}
}

// balance removes a group's probes when its bucket is in debt, and places them again when the
// bucket has filled. It returns the time until then.
func (p *Probes) balance(g int) time.Duration {
	const never = math.MaxInt64
	p.mu.Lock()
	group := &p.groups[g]
	err := p.measure(g)
	level, in, failed := group.bucket.Level(), group.outAt == 0, group.failed
	p.mu.Unlock()
	switch {
	case err != nil || failed != nil:
		return never
	case in && level >= 0:
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.setLimit(g) != nil {
			return time.Second
		}
		return never
	case in:
		// Noted first: from now on some are out, and not yet others.
		gap := rtsevents.Gap{Time: perf.Monotonic(), Group: g, Begins: true}
		counts, failed := p.program.Counts(g)
		gap.Dropped = counts.DroppedOn
		p.mu.Lock()
		p.gaps = append(p.gaps, gap)
		p.mu.Unlock()
		err = errors.Join(failed, group.take())
		p.mu.Lock()
		group.outAt, group.failed = p.host.Budget.Clock(), err
		p.mu.Unlock()
	case level >= enoughBack:
		p.mu.Lock()
		err = p.setLimit(g)
		p.mu.Unlock()
		if err == nil {
			err = p.put(group)
		}
		counts, failed := p.program.Counts(g)
		err = errors.Join(err, failed)
		at := perf.Monotonic() // all are in place
		p.mu.Lock()
		defer p.mu.Unlock()
		group.failed = err // the process may just have ended
		if err == nil {
			group.out += p.host.Budget.Clock() - group.outAt
			group.outAt = 0
			p.gaps = append(p.gaps, rtsevents.Gap{Time: at, Group: g, Dropped: counts.DroppedOn})
		}
		return never
	}
	return max(time.Duration((enoughBack-level)/group.bucket.Rate()), time.Millisecond)
}

// setLimit sets the number of hits at which the kernel reports that a group has used its budget.
func (p *Probes) setLimit(g int) error {
	group := &p.groups[g]
	limit := uint64(math.MaxUint64)
	if !group.bucket.Unlimited() {
		left := max(group.bucket.Level(), leastStep)
		limit = group.counts.Hits + uint64(left/max(group.hit, p.host.Budget.Costs.Trap()))
	}
	return p.program.SetLimit(g, limit)
}

// measure reads a group's counts, and charges the estimated cost of the hits to its bucket.
func (p *Probes) measure(g int) error {
	group := &p.groups[g]
	counts, err := p.program.Counts(g)
	if err != nil {
		return err
	}
	group.hit = p.host.Budget.Costs.Trap()
	if runs, ns, err := p.program.RunStats(); err == nil && runs > 0 {
		group.hit += float64(ns) / float64(runs)
	}
	cost := float64(counts.Hits-group.counts.Hits) * group.hit
	now := p.host.Budget.Clock()
	group.bucket.Pass(float64(now-group.at), cost)
	group.at = now
	group.cost += cost
	group.counts = counts
	return nil
}

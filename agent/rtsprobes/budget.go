package rtsprobes

import (
	"math"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"ccagent/perf"
)

const (
	// burst is what a group's probes may cost at once beyond their budget, so that a
	// short burst is seen whole.
	burst = 4 * time.Millisecond
	// leastStep is the cost after which a group is looked at again at the soonest.
	leastStep = burst / 16
	// trap is what a hit of an emulated instruction costs beside the BPF program;
	// measured on a virtual machine, Linux 6.18.
	trap = 500 * time.Nanosecond
)

// gap is where a gap begins or ends.
type gap struct {
	time   uint64
	group  int
	begins bool
}

// control holds each group to its budget. It sleeps until the kernel tells that a group
// has been hit as often as it may for the time being, or one that is out may come back:
// every look wakes a CPU, and several threads of Go's runtime.
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

// lookAt has control look at what the probes have cost.
func (p *Probes) lookAt() {
	select {
	case p.look <- struct{}{}:
	default:
	}
}

// balance takes a group's probes out when they have cost too much, and puts them back
// when time has paid for it. It gives the time until they may be put back.
func (p *Probes) balance(g int) time.Duration {
	const never = math.MaxInt64
	p.mu.Lock()
	group := &p.groups[g]
	err := p.measure(g)
	allowed := p.allowed(group)
	in, failed, cost := group.outAt.IsZero(), group.failed, group.cost
	p.mu.Unlock()
	switch {
	case err != nil || failed != nil:
		return never
	case in && (cost <= allowed || p.budget <= 0):
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.setLimit(g) != nil {
			return time.Second
		}
		return never
	case in:
		err = group.take()
		p.mu.Lock()
		group.outAt, group.failed = time.Now(), err
		p.gaps = append(p.gaps, gap{perf.Monotonic(), g, true})
		p.mu.Unlock()
	case cost+burst/2 <= allowed:
		at := perf.Monotonic()
		p.mu.Lock()
		err = p.setLimit(g)
		p.mu.Unlock()
		if err == nil {
			err = p.put(group)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		group.failed = err // the process may just have ended
		if err == nil {
			group.out += time.Since(group.outAt)
			group.outAt = time.Time{}
			p.gaps = append(p.gaps, gap{at, g, false})
		}
		return never
	}
	return max(time.Duration(float64(cost+burst/2-allowed)/p.budget), time.Millisecond)
}

// allowed is what a group's probes may have cost by now.
func (p *Probes) allowed(g *group) time.Duration {
	return burst + time.Duration(p.budget*float64(time.Since(g.since)))
}

// setLimit has the kernel tell when a group's probes have cost what they may now.
func (p *Probes) setLimit(g int) error {
	group := &p.groups[g]
	limit := uint64(math.MaxUint64)
	if p.budget > 0 {
		left := max(p.allowed(group)-group.cost, leastStep)
		limit = group.counts.Hits + uint64(left/max(group.hit, trap))
	}
	return p.program.SetLimit(g, limit)
}

// measure reads a group's counts, and estimates what the hits have cost.
func (p *Probes) measure(g int) error {
	group := &p.groups[g]
	counts, err := p.program.Counts(g)
	if err != nil {
		return err
	}
	group.hit = trap
	if runs, ns, err := p.program.RunStats(); err == nil && runs > 0 {
		group.hit += time.Duration(ns / runs)
	}
	group.cost += time.Duration(counts.Hits-group.counts.Hits) * group.hit
	group.counts = counts
	return nil
}

package rts

import (
	"errors"
	"math"
	"time"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/rtsevents"
	"ccagent/perf"
)

// Amounts of a group's budget, in ns. Probes that are out come back when there is enoughBack;
// a group is looked at again when it has cost leastStep at the soonest.
const (
	enoughBack = 2e6
	leastStep  = 0.25e6
)

// cpuTime is the CPU time that a process has used, ns; 0 once it is gone.
func cpuTime(im *process.Image) uint64 {
	ns, _ := procfs.ProcessTime(int(im.PID))
	return ns
}

// control keeps each group of a process within its budget. It does not poll, since that would wake a
// CPU and several threads of Go's runtime each time: it sleeps until the kernel reports that a group
// has reached its limit of hits, or until a removed group may be placed again.
func (i *image) control() {
	defer close(i.ended)
	if !i.p.host.OwnLogs { // a thread for each of a host's processes would be too many
		defer overhead.Hasten()()
	}
	back := time.NewTimer(math.MaxInt64)
	defer back.Stop()
	for {
		select {
		case <-i.stop:
			return
		case <-i.look:
		case <-back.C:
		}
		next := time.Duration(math.MaxInt64)
		for g := range i.groups {
			if i.groups[g].bucket != nil {
				next = min(next, i.balance(g))
			}
		}
		back.Reset(next)
	}
}

// lookAt wakes control, to charge what the probes have cost.
func (i *image) lookAt() {
	select {
	case i.look <- struct{}{}:
	default:
	}
}

// balance removes a group's probes when its bucket is in debt, and places them again when the
// bucket has filled. It returns the time until then.
func (i *image) balance(g int) time.Duration {
	const never = math.MaxInt64
	program := i.p.program
	i.mu.Lock()
	group := &i.groups[g]
	err := i.measure(g)
	level, in, failed := group.bucket.Level(), group.outAt == 0, group.failed
	i.mu.Unlock()
	switch {
	case err != nil || failed != nil:
		return never
	case in && level >= 0:
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.setLimit(g) != nil {
			return time.Second
		}
		return never
	case in:
		// Noted first: from now on some are out, and not yet others.
		gap := rtsevents.Gap{Time: perf.Monotonic(), Group: g, Begins: true}
		counts, failed := program.Counts(i.slot, g)
		gap.Dropped = counts.DroppedOn
		i.mu.Lock()
		i.gaps = append(i.gaps, gap)
		i.mu.Unlock()
		err = errors.Join(failed, group.take())
		i.mu.Lock()
		group.outAt, group.failed = i.p.now(), err
		i.mu.Unlock()
	case level >= enoughBack:
		i.mu.Lock()
		err = i.setLimit(g)
		i.mu.Unlock()
		if err == nil {
			err = i.put(group)
		}
		counts, failed := program.Counts(i.slot, g)
		err = errors.Join(err, failed)
		at := perf.Monotonic() // all are in place
		i.mu.Lock()
		defer i.mu.Unlock()
		group.failed = err // the process may just have ended
		if err == nil {
			group.out += i.p.outSince(group.outAt)
			group.outAt, group.wait = 0, 0
			if i.p.host.OwnLogs {
				group.bucket.Pass(0, moveCost)
			}
			i.gaps = append(i.gaps, rtsevents.Gap{Time: at, Group: g, Dropped: counts.DroppedOn})
		}
		return never
	}
	// By then the process has used that much CPU time, unless it has more than one CPU or less than all of one.
	wait := max(time.Duration(min((enoughBack-level)/group.bucket.Rate(), maxWait)), leastWait)
	if i.p.host.OwnLogs {
		group.wait = min(max(2*group.wait, ownWait), maxWait)
		wait = max(wait, group.wait)
	}
	return wait
}

// leastWait and maxWait bound the time to the next look at probes that are out, ns: a process that sleeps brings them no
// nearer to where they are put back. Where many processes share a budget they
// would all look at the moment when it is enough for one, so each looks more rarely the longer it has waited,
// from ownWait on; and what putting probes in and removing them takes the agent, moveCost, ns, is charged, so that the
// next process waits, and the first has something of its turn.
const (
	leastWait = 50 * time.Millisecond
	maxWait   = 60e9
	ownWait   = 4e9
	moveCost  = 0.3e6
)

// setLimit sets the number of hits at which the kernel reports that a group has used its budget.
func (i *image) setLimit(g int) error {
	group := &i.groups[g]
	limit := uint64(math.MaxUint64)
	if !group.bucket.Unlimited() {
		left := max(group.bucket.Level(), leastStep)
		limit = group.counts.Hits + uint64(left/group.hit)
	}
	return i.p.program.SetLimit(i.slot, g, limit)
}

// hitCost is what a hit costs, ns, on average over all processes.
func (i *image) hitCost() float64 {
	const first = 3000 // before any was measured
	inBPF := 0.0
	if i.p.host.Timed {
		inBPF = first
	}
	if runs, ns, err := i.p.program.RunStats(); err == nil && runs > 0 {
		inBPF = float64(ns) / float64(runs)
	}
	return i.budget.Costs.Trap() + inBPF
}

// measure reads a group's counts, and charges the estimated cost of the hits to its bucket.
func (i *image) measure(g int) error {
	group := &i.groups[g]
	counts, err := i.p.program.Counts(i.slot, g)
	if err != nil {
		return err
	}
	group.hit = i.hitCost()
	cost := float64(counts.Hits-group.counts.Hits) * group.hit
	now := max(i.p.used(i.im), group.at)
	group.bucket.Pass(float64(now-group.at), cost)
	group.at = now
	group.cost += cost
	group.counts = counts
	return nil
}

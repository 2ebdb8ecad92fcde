package alloc

import (
	"errors"

	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/bpf"
)

// Where each process has a log and a budget of its own, as in a daemon, it is sampled at full nurseries
// alone: the probes at blocks and large objects need windows, which cost the agent more than many
// processes are worth. What large objects have is known all the same, but not who made them. A log is
// whole: its weights add up to what was allocated while it was written.

const (
	// ownKeeps is how many samples of a stratum are kept of each process, to settle its log.
	ownKeeps = 128
	// steadyInterval is how often a process is looked at whose probes cost little, ns, and begunPeriod
	// for how long a new one is looked at at each turn.
	steadyInterval = 1e9
	begunPeriod    = 1e9
	// ownCycle is the least time from window to window, ns.
	ownCycle = 10 * minCycle
	// ownStretch is maxStretch: the agent wakes every other millisecond of a window.
	ownStretch = 8
)

// errNoRTS is why allocation is not sampled in a process in which no run-time system was seen.
var errNoRTS = errors.New("no Haskell run-time system was seen in the process")

// bucketOf is the bucket from which an image's probes are paid.
func (a *allocation) bucketOf(im *process.Image) *bucket {
	if !a.host.OwnLogs {
		return a.bucket
	}
	b := a.buckets[im.Incarnation]
	if b == nil {
		b = newBucket(a.host.BudgetOf(im))
		a.buckets[im.Incarnation] = b
	}
	return b
}

// Missing returns why an event is not measured in a process, nil if it is.
func (a *allocation) Missing(im *process.Image, event string) error {
	if event != name || a.images[im.Incarnation] != nil {
		return nil
	}
	if err := a.problems[im.Incarnation]; err != nil {
		return err
	}
	if err := a.sites[im.RTS].err; err != nil {
		return err
	}
	if err := a.host.Excluded(im, name); err != nil {
		return err
	}
	return errNoRTS
}

// throttleEach charges each process what its probes have cost, and places and removes them
// accordingly.
func (a *allocation) throttleEach(u source.Use) error {
	if runs := u.Cost.Probes.Runs; runs > a.runs {
		a.handling += (u.Handling/float64(runs-a.runs) - a.handling) / 8
		a.runs = runs
	}
	for _, ai := range a.images {
		if u.Time < ai.next {
			continue
		}
		if err := a.balance(ai, u.Time); err != nil {
			return err
		}
	}
	return nil
}

// balance is throttleEach of one process. One that has not run since is left as it is.
func (a *allocation) balance(ai *image, now uint64) error {
	used := max(a.host.BudgetOf(ai.im).Clock(), ai.used)
	nursery := ai.probes[bpf.SiteNursery]
	if ai.next = now + steadyInterval; used == ai.used && nursery.window == nil {
		return nil
	}
	r, err := a.observe(ai)
	if err != nil {
		return err
	}
	hits, took := r.hits(bpf.SiteNursery), r.account.Took
	cost := float64(hits-ai.hits)*(a.host.Budget.Costs.Trap()+countedHit+a.handling) + float64(took-ai.took)
	ai.bucket.Pass(float64(used-ai.used), cost)
	ai.hits, ai.took, ai.used = hits, took, used
	if err := a.setThinning(ai); err != nil {
		return err
	}
	switch b := ai.bucket; {
	case b.Unlimited():
	case b.Level() < 0:
		a.removeExpensive(ai, b.Bucket)
	default:
		a.placeNext(ai, b.Bucket)
	}
	if !nursery.continuous() || now < ai.begun+begunPeriod || a.costOf(nursery) > ai.bucket.Rate()/4 {
		ai.next = now
	}
	return nil
}

// Leave divides what no sample has among those that the log has.
func (a *allocation) Leave(im *process.Image) error {
	if ai := a.images[im.Incarnation]; ai != nil {
		return a.settle(ai)
	}
	return nil
}

// Enter forgets the remembered samples: their stacks are not in the new log.
func (a *allocation) Enter(im *process.Image, _ uint64) error {
	if ai := a.images[im.Incarnation]; ai != nil {
		ai.ledger.forgetRecent()
	}
	return nil
}

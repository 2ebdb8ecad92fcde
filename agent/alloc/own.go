package alloc

import (
	"errors"
	"fmt"
	"math"
	"time"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/bpf"
)

// Where each process has a log and a budget of its own, as in a daemon, it is sampled at full nurseries
// alone: the probes at blocks and large objects need windows, which cost the agent more than many
// processes are worth. What large objects have is known all the same, but not who made them. A log is
// whole: its weights add up to what was allocated while it was written.
//
// Each process has probes of its own, not one for all processes of a build. To put one in took the agent
// 40 µs of CPU time, with 20 processes of one program on Linux 6.18, and to remove it 240 µs, while one for all
// would be hit, 13,000 times a second in a program that allocates all the time, in processes too that are not
// chosen or have spent their budget.

const (
	// ownKeeps is how many samples of a stratum are kept of each process, to settle its log.
	ownKeeps = 128
	// restInterval is how often a process is looked at whose probes cost little, ns, at the least, and
	// begunPeriod for how long a new one is looked at at each turn. One whose probe is in place is looked at as soon as its
	// hits have cost unseenCost, ns: their count is one system call, and a look takes a dozen.
	restInterval = 5e9
	begunPeriod  = 1e9
	unseenCost   = 100_000
	// ownCycle is the least time from window to window, ns, of those that are no longer than ownLength. After longer ones it
	// is longer in proportion, up to ownLongest times, so that the part of the time that is seen stays or grows: to put a probe in
	// and to remove it takes the agent as much as some hundred hits, and a process that may have long windows has few hits in each.
	ownCycle   = 10 * minCycle
	ownLength  = 8 * time.Millisecond
	ownLongest = 8
	// ownAllowance bounds the allowance of a process, ns, of which there may be many.
	ownAllowance = 500_000
	// leastShare is the least share of a CPU that a process is taken to use, and leastPaced the time over which that is
	// measured, ns, at the least.
	leastShare = 0.01
	leastPaced = 500e6
	// ownStretch is maxStretch: the longest windows, of processes that use little, are as long as the period in which the kernel
	// shares out a limited group's CPU time. Shorter ones would find such a process waiting for its next share most of the time.
	// ownLook is the least time between the agent's looks in a window at what that has cost, and ownLooks how many there are,
	// where it is not known how often the probe is hit. Afterwards there is one, at the end, for each wakes a CPU: a window is at
	// most four times as long as the one before, and what it has cost more than expected is paid back by what follows.
	ownStretch = 100
	ownLook    = ownLength
	ownLooks   = 3
	// ownContinuousShare is the part of a process's own budget that hits of a continuous probe may take which are not sampled. To put
	// one in again and again takes the agent more than such a process has hits in a window.
	ownContinuousShare = 0.5
	// ownApart is how far apart the windows of all processes together are on average, as long as each process has one every
	// ownSeldom, ns: what they take the agent does not grow with the number of processes before each has only those.
	ownApart  = 500e6
	ownSeldom = 15e9
)

// ownLookAfter is how long a window of a process of many lasts until the agent looks at what it has cost.
func ownLookAfter(length time.Duration, known bool) time.Duration {
	if known {
		return length
	}
	return max(overhead.ShortSleep, min(length/2, ownLook), length/ownLooks)
}

// ownCycleOf is the least time from a window of a length to the next of its process, ns, where so many processes have windows.
func ownCycleOf(length time.Duration, processes int) uint64 {
	alone := ownCycle * min(max(1, float64(length)/float64(ownLength)), ownLongest)
	// A random time of up to as much is added.
	return uint64(max(alone, min(float64(processes)*ownApart, ownSeldom)/1.5))
}

// inWindows is how many processes have windows.
func (a *allocation) inWindows() (n int) {
	for _, ai := range a.images {
		if p := ai.probes[bpf.SiteNursery]; p != nil && !p.continuous() {
			n++
		}
	}
	return n
}

// bucketOf is the bucket from which an image's probes are paid.
func (a *allocation) bucketOf(im *process.Image) *bucket {
	if !a.host.OwnLogs {
		return a.bucket
	}
	b := a.buckets[im.Incarnation]
	if b == nil {
		b = newBucket(a.host.BudgetOf(im))
		b.allowance = min(b.allowance, ownAllowance)
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
	return source.ErrNoRTS
}

// errLarge is what is left out of allocation where each process has a log of its own.
var errLarge = errors.New("large objects are counted, but who made them is not sampled: their probe would be put in and removed again " +
	"for windows, which takes more than one process of many is worth; ccagent attach does it")

// Partly returns what is left out of allocation in a process in which it is sampled.
func (a *allocation) Partly(im *process.Image, event string) error {
	if event == name && a.host.OwnLogs && a.images[im.Incarnation] != nil {
		return errLarge
	}
	return nil
}

// CostOf is what the probes of a process have cost it when it was looked at last, ns, where each has a log of its own.
func (a *allocation) CostOf(im *process.Image) uint64 {
	if ai := a.images[im.Incarnation]; ai != nil && a.host.OwnLogs {
		return uint64(max(ai.spent, 0))
	}
	return 0
}

// throttleEach charges each process what its probes have cost, and places and removes them
// accordingly.
func (a *allocation) throttleEach(u source.Use) error {
	if runs := u.Cost.Probes.Runs; runs > a.runs {
		a.handling += (u.Handling/float64(runs-a.runs) - a.handling) / 8
		a.runs = runs
	}
	return a.Glance(u.Time)
}

// Glance looks at the processes whose turn it is, and at those whose probes are hit often.
func (a *allocation) Glance(now uint64) error {
	for _, ai := range a.images {
		if now < ai.next {
			often, err := a.hitOften(ai)
			if err != nil {
				return err
			}
			if !often {
				continue
			}
		}
		if err := a.balance(ai, now); err != nil {
			return err
		}
	}
	return nil
}

// hitOften reports whether a process's probe that is in place has cost more than may go unseen.
func (a *allocation) hitOften(ai *image) (bool, error) {
	if !ai.probes[bpf.SiteNursery].continuous() {
		return false, nil
	}
	c, err := a.count(ai)
	return a.costSince(ai, &c) > unseenCost, err
}

// hitCost is what a hit costs that is not sampled, ns.
func (a *allocation) hitCost() float64 { return a.host.Budget.Costs.Trap() + countedHit + a.handling }

// costSince is what a process's probes have cost since it was looked at last, ns.
func (a *allocation) costSince(ai *image, c *counting) float64 {
	return float64(c.hits(bpf.SiteNursery)-ai.hits)*a.hitCost() + float64(c.account.Took-ai.took)
}

// balance is throttleEach of one process. One that has not run since is left as it is.
func (a *allocation) balance(ai *image, now uint64) error {
	used := max(a.host.BudgetOf(ai.im).Clock(), ai.used)
	nursery := ai.probes[bpf.SiteNursery]
	if ai.next = now + restInterval; used == ai.used && nursery.window == nil {
		return nil
	}
	r, err := a.observe(ai)
	if err != nil {
		return err
	}
	hits, took := r.hits(bpf.SiteNursery), r.account.Took
	cost := a.costSince(ai, &r.counting)
	ai.bucket.Pass(float64(used-ai.used), cost)
	ai.spent += cost - float64(hits-ai.hits)*a.handling // that is the agent's
	if wall := now - ai.at; ai.at != 0 && wall >= leastPaced {
		ai.share = float64(used-ai.pacedAt) / float64(wall)
		if err := a.pace(ai); err != nil {
			return err
		}
		ai.at, ai.pacedAt = now, used
	} else if ai.at == 0 {
		ai.at, ai.pacedAt = now, used
	}
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
	switch {
	case nursery.window != nil || now < ai.begun+begunPeriod:
		ai.next = now
	case !nursery.continuous():
		ai.next = now + a.rest(ai, nursery, now)
	case !a.mayStay(ai, nursery, 0, ai.bucket.Bucket):
		ai.next = now
	}
	return nil
}

// rest is for how long, ns, a process need not be looked at whose probe is not in place: until the next window may
// begin, and about until there is something to spend again. To look at it takes some reads of its memory.
func (a *allocation) rest(ai *image, nursery *probe, now uint64) uint64 {
	rest := float64(nursery.notBefore - min(now, nursery.notBefore))
	if debt := -ai.bucket.Level(); debt > 0 {
		rest = max(rest, debt/a.allowed(ai, ai.bucket.Bucket))
	}
	return uint64(min(rest, 2*ownSeldom))
}

// rateOf is what the probes of a process may take of its CPU time. Where little is left all processes
// together keep to the budget of all, and in debt to a quarter of it.
func (a *allocation) rateOf(b *overhead.Bucket) float64 {
	rate := b.Rate()
	if all := a.host.Budget.Asked * overhead.AllocPart; all > 0 && b.Level() < b.Depth()/2 {
		rate = min(rate, all)
	}
	if b.Level() < 0 {
		rate /= 4
	}
	return rate
}

// mayStay reports whether a probe may be in place continuously that would take a share of a CPU with those that are. One process's of many
// may if hits that are not sampled fit a part of its own budget: those that are limit themselves (pace).
func (a *allocation) mayStay(ai *image, p *probe, cost float64, b *overhead.Bucket) bool {
	if !a.host.OwnLogs || b.Unlimited() {
		return cost < maxContinuousShare*a.allowed(ai, b)
	}
	return p.hitRate*a.hitCost()/1e9 < ownContinuousShare*b.Rate()*max(ai.share, leastShare)
}

// pace has full nurseries sampled as often as the process's CPU time allows, of which it uses a share
// of a CPU: the walker rests by the wall clock.
func (a *allocation) pace(ai *image) error {
	b := ai.bucket
	if b.Unlimited() {
		return nil
	}
	part := uint32(min(samplingParts/(a.rateOf(b.Bucket)*max(ai.share, leastShare)), math.MaxUint32))
	// Each change costs an update of a BPF map, and the walker its caches.
	if part/2 <= b.part && b.part/2 <= part {
		return nil
	}
	b.part, ai.im.Layout.Part = part, part
	if err := a.host.Walker.SetLayout(ai.im.PID, ai.im.Layout); err != nil {
		return fmt.Errorf("pace allocation samples: %w", err)
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

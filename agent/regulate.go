package agent

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/process"
	"ccagent/bpf"
	"ccagent/eventlog"
)

// At a capture's start nothing is known of how much the target allocates, so its
// cost is looked at often.
const (
	startPeriod = 100 * time.Millisecond
	// Nor what samples cost, of which there may be many.
	earlyPeriod   = time.Second
	startInterval = 2 * time.Millisecond
)

// pace is how long to wait for the target until samples are drained again.
func (c *capture) pace() time.Duration {
	since := time.Since(c.begun)
	switch alloc := c.alloc != nil; {
	case alloc && since < startPeriod:
		return startInterval
	case since < earlyPeriod || alloc && c.alloc.dear(&c.budget.alloc):
		return allocInterval
	}
	return pollInterval
}

// dear reports whether probes in place take a part of their budget that is worth
// watching. They are those that more allocation would make many times as dear at once:
// full nurseries are never that many.
func (a *allocProbes) dear(b *bucket) bool {
	const worth = 1. / 16
	for _, ai := range a.images {
		for _, site := range [...]bpf.AllocSite{bpf.SiteBlock, bpf.SiteLarge} {
			if p := ai.probes[site]; p.continuous() && a.costs(p) > worth*b.rate {
				return true
			}
		}
	}
	return false
}

// threadCPU is the CPU time of the calling thread, in ns.
func threadCPU() uint64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_THREAD, &ru) != nil {
		return 0
	}
	return uint64(ru.Utime.Nano() + ru.Stime.Nano())
}

// regulate charges what measuring has cost, and has it cost less or more.
func (c *capture) regulate() error {
	b := c.budget
	b.takeCalibration()
	s, err := c.spent()
	if err != nil {
		return err
	}
	part := b.part
	b.pass(s, runtime.NumCPU())
	if b.part != part {
		if err := c.resample(b.part); err != nil {
			return err
		}
	}
	return c.alloc.control(&b.alloc)
}

// spent adds up what measuring and the target have used since the capture began.
func (c *capture) spent() (s spent, err error) {
	events, err := c.overflowed()
	if err != nil {
		return s, err
	}
	var probes bpf.RunStats
	if c.alloc != nil {
		if probes, err = c.alloc.took(c.budget.trap); err != nil {
			return s, err
		}
	}
	s.time = monotonic()
	s.target = c.targetCPU()
	s.events, s.eventN, s.traced = events.bpf.Ns, events.bpf.Runs, events.traced.Ns
	s.interrupts, s.interruptN = events.ns, events.interrupts
	s.alloc, s.allocN = probes.Ns+uint64(float64(probes.Runs)*c.budget.trap), probes.Runs
	s.drain = c.drained
	s.taken, s.walk = c.eventSamples, c.walks.mean(0.99)
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return s, fmt.Errorf("read own CPU time: %w", err)
	}
	s.agent = uint64(ru.Utime.Nano() + ru.Stime.Nano())
	a := c.alloc
	if a == nil {
		return s, nil
	}
	a.busy.pass(s.time, s.target)
	s.nursery, s.blocks, s.large = a.ended[bpf.SiteNursery], a.ended[bpf.SiteBlock], a.ended[bpf.SiteLarge]
	for _, ai := range a.images {
		s.nursery = max(s.nursery, ai.probes[bpf.SiteNursery].timeInPlace(s.time))
		s.blocks = max(s.blocks, ai.probes[bpf.SiteBlock].timeInPlace(s.time))
		s.large = max(s.large, ai.probes[bpf.SiteLarge].timeInPlace(s.time))
	}
	return s, nil
}

// targetCPU is the CPU time that the target has used since the capture began, ns, all
// its processes together. What has ended is told by who waited for it.
func (c *capture) targetCPU() uint64 {
	var sum uint64
	for pid, im := range c.processes.Images {
		sum += c.clocks.used(pid, im)
	}
	c.sum.TargetCPU = max(c.sum.TargetCPU, time.Duration(sum-min(sum, c.targetCPUBefore)))
	return uint64(c.sum.TargetCPU)
}

// logOverhead writes what measuring has cost since it was last written.
func (c *capture) logOverhead() error {
	s, err := c.spent()
	if err != nil {
		return err
	}
	return c.emit(process.Now, c.budget.overhead(s))
}

// warn tells the user, and the log.
func (c *capture) warn(line string) {
	c.opts.Warn(line)
	c.warned = append(c.warned, line)
}

// logWarnings writes the warnings that have not been.
func (c *capture) logWarnings() error {
	for _, line := range c.warned {
		if err := c.emit(process.Now, &eventlog.Warning{Text: line}); err != nil {
			return err
		}
	}
	c.warned = nil
	return nil
}

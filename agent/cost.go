package agent

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/eventlog"
	"ccagent/perf"
)

// monotonic reads the clock that the walker and perf stamp with, in ns.
func monotonic() uint64 { return perf.Monotonic() }

// measureCost takes what measuring has cost since the capture began.
func (c *capture) measureCost() (*eventlog.AgentCost, error) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return nil, fmt.Errorf("read own CPU time: %w", err)
	}
	c.sum.AgentCPU = time.Duration(ru.Utime.Nano()+ru.Stime.Nano()) + c.processes.CompileTime()
	events, err := c.overflowed()
	if err != nil {
		return nil, err
	}
	probes, err := c.sampler.ProbeStats()
	if err != nil {
		return nil, err
	}
	runs, ns := events.bpf.Runs+events.traced.Runs+probes.Runs, events.bpf.Ns+events.traced.Ns+probes.Ns
	c.sum.BPFRuns, c.sum.BPFTime = runs, time.Duration(ns)
	c.sum.ProbeHits, c.sum.ProbeTime = probes.Runs, time.Duration(float64(probes.Runs)*c.budget.trap)
	c.sum.Interrupts, c.sum.InterruptTime = events.interrupts, time.Duration(events.ns)
	c.targetCPU()
	c.sum.WalkMedian = time.Duration(c.walks.quantile(0.5))
	c.sum.WalkP99 = time.Duration(c.walks.quantile(0.99))
	return &eventlog.AgentCost{
		CPUNs:        uint64(c.sum.AgentCPU),
		RSS:          uint64(ru.Maxrss) << 10,
		BPFRuns:      runs,
		BPFNs:        ns,
		Samples:      c.sum.Samples,
		TargetCPUNs:  uint64(c.sum.TargetCPU),
		WalkMedianNs: uint64(c.sum.WalkMedian),
		WalkP99Ns:    uint64(c.sum.WalkP99),
	}, nil
}

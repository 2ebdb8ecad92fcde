package agent

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/engine"
	"ccagent/agent/sink"
	"ccagent/eventlog"
)

// account writes what was lost and what measuring has cost so far, and hands
// everything to the file.
func (c *capture) account() error {
	if err := c.engine.Account(); err != nil {
		return err
	}
	if err := c.measureCost(); err != nil {
		return err
	}
	if err := c.log.Emit(sink.Now, &c.cost); err != nil {
		return err
	}
	overhead, err := c.engine.Overhead()
	if err != nil {
		return err
	}
	if err := c.log.Emit(sink.Now, overhead); err != nil {
		return err
	}
	return c.log.Flush()
}

// accountNames writes the cost again with what the names took, which are looked up after
// sampling. The target may go on meanwhile, so all other figures stay as they were.
func (c *capture) accountNames() error {
	cpu, err := engine.AgentCPU()
	if err != nil {
		return err
	}
	c.cost.CPUNs = uint64(cpu)
	return c.log.Emit(sink.Now, &c.cost)
}

// measureCost takes what measuring has cost since the capture began, and what was sampled.
func (c *capture) measureCost() error {
	s := &c.sum
	counts := &c.log.Counts
	for i, n := range counts.Events {
		s.Events[i].Samples, s.Events[i].Weight = n.Samples, n.Weight
	}
	s.Samples, s.Haskell = counts.Samples, counts.Haskell
	s.Complete, s.Truncated, s.Failed, s.NoHaskell = counts.Complete, counts.Truncated, counts.Failed, counts.NoHaskell
	s.Lost, s.Throttled = c.log.Losses()
	if err := c.engine.Report(s); err != nil {
		return err
	}
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return fmt.Errorf("read own memory: %w", err)
	}
	c.cost = eventlog.AgentCost{
		CPUNs:        uint64(s.AgentCPU),
		RSS:          uint64(ru.Maxrss) << 10,
		BPFRuns:      s.BPFRuns,
		BPFNs:        uint64(s.BPFTime),
		Samples:      s.Samples,
		TargetCPUNs:  uint64(s.TargetCPU / time.Nanosecond),
		WalkMedianNs: uint64(s.WalkMedian),
		WalkP99Ns:    uint64(s.WalkP99),
	}
	return nil
}

package agent

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/sink"
	"ccagent/eventlog"
)

// account writes what was lost and what measuring has cost so far, and hands
// everything to the file.
func (c *capture) account() error {
	if err := c.engine.Account(); err != nil {
		return err
	}
	cost, err := c.measureCost()
	if err != nil {
		return err
	}
	if err := c.log.Emit(sink.Now, cost); err != nil {
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

// accountEnd writes what measuring has cost with the names, which are looked up when the target
// has ended.
func (c *capture) accountEnd() error {
	cost, err := c.measureCost()
	if err != nil {
		return err
	}
	return c.log.Emit(sink.Now, cost)
}

// measureCost takes what measuring has cost since the capture began, and what was sampled.
func (c *capture) measureCost() (*eventlog.AgentCost, error) {
	s := &c.sum
	counts := &c.log.Counts
	for i, n := range counts.Events {
		s.Events[i].Samples, s.Events[i].Weight = n.Samples, n.Weight
	}
	s.Samples, s.Haskell = counts.Samples, counts.Haskell
	s.Complete, s.Truncated, s.Failed, s.NoHaskell = counts.Complete, counts.Truncated, counts.Failed, counts.NoHaskell
	s.Lost, s.Throttled = c.log.Losses()
	if err := c.engine.Report(s); err != nil {
		return nil, err
	}
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return nil, fmt.Errorf("read own memory: %w", err)
	}
	return &eventlog.AgentCost{
		CPUNs:        uint64(s.AgentCPU),
		RSS:          uint64(ru.Maxrss) << 10,
		BPFRuns:      s.BPFRuns,
		BPFNs:        uint64(s.BPFTime),
		Samples:      s.Samples,
		TargetCPUNs:  uint64(s.TargetCPU / time.Nanosecond),
		WalkMedianNs: uint64(s.WalkMedian),
		WalkP99Ns:    uint64(s.WalkP99),
	}, nil
}

package agent

import (
	"fmt"

	"ccagent/agent/sink"
	"ccagent/eventlog"
)

// account writes what was lost and what measuring has cost so far, and hands
// everything to the file.
func (c *capture) account() error {
	if err := c.accountLosses(); err != nil {
		return err
	}
	cost, err := c.measureCost()
	if err != nil {
		return err
	}
	if err := c.log.Emit(sink.Now, cost); err != nil {
		return err
	}
	overhead, err := c.meter.overhead()
	if err != nil {
		return err
	}
	if err := c.log.Emit(sink.Now, overhead); err != nil {
		return err
	}
	for _, s := range c.sources.All {
		if err := s.Account(); err != nil {
			return err
		}
	}
	c.sum.Lost, c.sum.Throttled = c.log.Losses()
	return c.log.Flush()
}

// accountLosses writes what was lost before any source had it.
func (c *capture) accountLosses() error {
	nests := 0 // only probes can be interrupted by their like
	for i, e := range c.asked.Events {
		if e.Nests {
			nests = i
		}
	}
	stats, err := c.walker.Stats()
	if err != nil {
		return err
	}
	for cpu, s := range stats {
		if err := c.log.Lost(sink.Place{CPU: cpu, Event: nests, Reason: eventlog.LossNested}, s.Nested); err != nil {
			return err
		}
	}
	if err := c.log.Lost(sink.Place{Reason: eventlog.LossDecode}, c.records.Undecodable); err != nil {
		return err
	}
	return c.accountSideBand()
}

// accountSideBand writes how many changes of what processes run were lost.
func (c *capture) accountSideBand() error {
	if c.sideBand == nil || c.sideBand.Lost == 0 {
		return nil
	}
	if !c.lostChanges {
		c.lostChanges = true
		c.log.Warn(fmt.Sprintf("%d changes of what processes map, execute and fork were lost: some code may have no names, and some processes no samples", c.sideBand.Lost))
	}
	return c.log.Lost(sink.Place{Reason: eventlog.LossSideBand}, c.sideBand.Lost)
}

package agent

import (
	"ccagent/agent/process"
	"ccagent/eventlog"
)

// lossKey is where samples are lost.
type lossKey struct {
	cpu, event int
	reason     eventlog.LossReason
}

// accountLoss writes which samples were lost since it was last called.
func (c *capture) accountLoss() error {
	nestedIn := 0 // only probes can be interrupted by their like
	for i := range c.events {
		if c.events[i].def.Requested == AllocEvent {
			nestedIn = i
		}
		perCPU, err := c.sampler.Lost(i)
		if err != nil {
			return err
		}
		for cpu, n := range perCPU {
			if err := c.tellLoss(lossKey{cpu, i, eventlog.LossRingFull}, n); err != nil {
				return err
			}
		}
	}
	stats, err := c.sampler.Stats()
	if err != nil {
		return err
	}
	for cpu, s := range stats {
		if err := c.tellLoss(lossKey{cpu, nestedIn, eventlog.LossNested}, s.Nested); err != nil {
			return err
		}
	}
	return nil
}

// tellLoss writes a loss, of which there were total by now, if there is more of it.
func (c *capture) tellLoss(at lossKey, total uint64) error {
	lost := total - c.lost[at]
	if lost == 0 {
		return nil
	}
	c.lost[at] = total
	if at.reason == eventlog.LossThrottled {
		c.sum.Throttled += lost
	} else {
		c.sum.Lost += lost
	}
	return c.emit(process.Now, &eventlog.Loss{CPU: uint32(at.cpu), Event: uint32(at.event), Reason: at.reason, Count: lost})
}

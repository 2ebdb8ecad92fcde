package agent

import (
	"fmt"

	"ccagent/eventlog"
	"ccagent/perf"
)

// throttle watches the kernel's limit on samples a second. The kernel lowers it, for
// all of the machine, when it finds that taking samples takes more than
// kernel.perf_cpu_time_max_percent of the time, and from then on holds events to it.
// The events themselves cannot tell: their records have no buffer to go to.
type throttle struct {
	limit   uint64 // as last seen
	seconds uint64 // CPU time of the target, ns, and overflows, as of then
	seen    uint64
}

// look is called about once a second.
func (t *throttle) look(limit int, target, overflows uint64, frequency uint64) (lowered bool, missed uint64) {
	before := t.limit
	used, came := target-min(t.seconds, target), overflows-min(t.seen, overflows)
	t.limit, t.seconds, t.seen = uint64(max(limit, 0)), target, overflows
	lowered = before != 0 && t.limit < before
	if frequency > t.limit && t.limit != 0 {
		if expected := uint64(float64(used) / 1e9 * float64(frequency)); expected > came {
			missed = expected - came
		}
	}
	return lowered, missed
}

// watchThrottle tells the user and the log of a lowered limit, and of the samples that
// it cost.
func (c *capture) watchThrottle() error {
	limit, ok := perf.MaxRate()
	if !ok {
		return nil
	}
	before := c.throttle.limit
	last := c.budget.last
	frequency := uint64(0)
	for i := range c.events {
		if g := &c.events[i]; g.counted() {
			frequency += reduced(g.rate, c.budget.part).Frequency
		}
	}
	lowered, missed := c.throttle.look(limit, last.target, last.eventN, frequency)
	if lowered {
		c.warn(fmt.Sprintf("the kernel found that samples take too much time (kernel.perf_cpu_time_max_percent) and lowered kernel.perf_event_max_sample_rate from %d to %d for all of the machine", before, limit))
	}
	if missed == 0 {
		return nil
	}
	c.sum.Throttled += missed
	return c.emit(now, &eventlog.Loss{Reason: eventlog.LossThrottled, Count: missed})
}

package cpu

import (
	"fmt"

	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/perf"
)

// limit watches the kernel's limit on samples a second. The kernel lowers it, for
// all of the machine, when it finds that taking samples takes more than
// kernel.perf_cpu_time_max_percent of the time, and from then on holds events to it.
// The events themselves do not report it: they have no ring buffer for such records.
type limit struct {
	rate   uint64 // as last seen
	target uint64 // CPU time of the target, ns, as of then
	seen   []uint64
}

// frequent is an event that is sampled at a frequency, and has overflowed so often.
type frequent struct{ hz, overflows uint64 }

// look is called about once a second. It gives how many overflows each event has
// missed, where the limit is below its frequency, and from what the limit was lowered,
// 0 if it was not.
func (t *limit) look(limit int, target uint64, events []frequent) (lowered uint64, missed []uint64) {
	used := target - min(t.target, target)
	if limit := uint64(max(limit, 0)); limit < t.rate {
		lowered = t.rate
	}
	t.rate, t.target = uint64(max(limit, 0)), target
	missed = make([]uint64, len(events))
	if t.seen == nil {
		t.seen = make([]uint64, len(events))
	}
	for i, e := range events {
		came := e.overflows - t.seen[i]
		t.seen[i] = e.overflows
		if e.hz <= t.rate || t.rate == 0 {
			continue
		}
		if expected := uint64(float64(used) / 1e9 * float64(e.hz)); expected > came {
			missed[i] = expected - came
		}
	}
	return lowered, missed
}

// watchLimit reports a lowered limit, and the samples lost by it, to the user and the log.
func (s *cpu) watchLimit() error {
	limit, ok := perf.MaxRate()
	if !ok {
		return nil
	}
	events := make([]frequent, len(s.events))
	for i, e := range s.events {
		runs, err := s.runs(e)
		if err != nil {
			return err
		}
		events[i] = frequent{e.now.Frequency, runs.Runs}
	}
	lowered, missed := s.limit.look(limit, s.host.TargetCPU(), events)
	if lowered != 0 {
		s.host.Log.Warn(fmt.Sprintf("kernel.perf_event_max_sample_rate went from %d to %d, and the kernel stops events that take more samples: "+
			"it lowers it, for all of the machine, when samples take more than kernel.perf_cpu_time_max_percent of the time", lowered, limit))
	}
	for i, n := range missed {
		at := sink.Place{Event: int(s.events[i].granted.Def.Index), Reason: eventlog.LossThrottled}
		if err := s.host.Log.LostMore(at, n); err != nil {
			return err
		}
	}
	return nil
}

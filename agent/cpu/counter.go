package cpu

import (
	"fmt"
	"math"
	"strings"

	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/perf"
)

// counter holds an event's count, and for how much of the time it was on a counter.
type counter struct {
	placed
	event perf.Event
	last  perf.Count
	scale float64 // of the weights of samples
}

func newCounter(e perf.Event, on placed) *counter { return &counter{placed: on, event: e, scale: 1} }

// often is how many file descriptors are read at every drain; an event on more
// threads is looked at when the cost is.
const often = 64

// follow reads the counts, so that samples of the time since the last reading can be
// scaled. Only events of a PMU take turns.
func (k *counter) follow() error {
	if k.event.Kind == "software" {
		return nil
	}
	now, err := k.Count()
	if err != nil {
		return err
	}
	k.scale = scaling(k.last, now, k.scale)
	k.last = now
	return nil
}

// scaling is by how much samples of an interval are to be scaled: the time that the
// event was to be counted, by that in which it was. Where it was never counted, as
// before: there are no samples then, but for those that came late.
func scaling(from, to perf.Count, before float64) float64 {
	enabled, running := to.EnabledNs-min(from.EnabledNs, to.EnabledNs), to.RunningNs-min(from.RunningNs, to.RunningNs)
	if running == 0 || enabled <= running {
		if running == 0 {
			return before
		}
		return 1
	}
	return float64(enabled) / float64(running)
}

// weigh returns a sample's weight, scaled.
func (k *counter) weigh(weight uint64) uint64 {
	if k == nil || k.scale == 1 {
		return weight
	}
	return uint64(math.Round(float64(weight) * k.scale))
}

// follow follows all events, or those that are quickly read.
func (s *cpu) follow(all bool) error {
	for _, e := range s.events {
		if k := e.counter; k != nil && (all || k.Files() <= often) {
			if err := k.follow(); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeCounts writes what each event has counted of the target. A PMU's event on CPUs counts
// other processes too: of it is known only for what part of the target's time it was counted.
func (s *cpu) writeCounts() error {
	for _, e := range s.events {
		if e.counter == nil {
			continue
		}
		c, err := e.counter.Count()
		if err != nil {
			return err
		}
		err = s.host.Log.Each(func(log *sink.Sink) error {
			n := &eventlog.EventCount{Event: e.granted.Def.Index, Value: c.Value, EnabledNs: c.EnabledNs, RunningNs: c.RunningNs}
			if e.onCPUs() != nil {
				counted := 1.0
				if c.EnabledNs > 0 {
					counted = float64(c.RunningNs) / float64(c.EnabledNs)
				}
				n.Value, n.EnabledNs, n.RunningNs = 0, s.perLog[log].used, uint64(float64(s.perLog[log].used)*counted)
				if e.event.Clock() {
					n.Value, n.RunningNs = n.EnabledNs, n.EnabledNs
				}
			}
			return log.Emit(sink.Now, n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shared returns warnings on events that were not on a counter all the time. Other processes'
// events occupy counters too.
func (s *cpu) shared() (lines []string, err error) {
	const nearlyAll = 0.95
	var parts, never []string
	for _, e := range s.events {
		k := e.counter
		if k == nil || k.event.Kind == "software" {
			continue
		}
		c, err := k.Count()
		if err != nil {
			return nil, err
		}
		switch part := float64(c.RunningNs) / float64(c.EnabledNs); {
		case c.EnabledNs == 0:
		case c.RunningNs == 0:
			never = append(never, k.event.String())
		case part < nearlyAll:
			parts = append(parts, fmt.Sprintf("%s %.0f %%", k.event, 100*part))
		}
	}
	if len(never) > 0 {
		lines = append(lines, fmt.Sprintf("%s: never on a counter: others have taken them all; stop the other profiler, or set kernel.nmi_watchdog=0", strings.Join(never, ", ")))
	}
	if len(parts) > 0 {
		lines = append(lines, fmt.Sprintf("there are fewer counters than events, so they took turns, and counts are scaled: on a counter were %s of the time; ask for fewer events", strings.Join(parts, ", ")))
	}
	return lines, nil
}

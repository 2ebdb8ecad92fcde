package rts

import (
	"errors"

	"ccagent/agent/rtsevents"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// Receives returns the types of the probes' records.
func (p *Probes) Receives() []uint8 { return []uint8{bpf.RecordRTS} }

// Consume translates a record of a probe.
func (p *Probes) Consume(s *perf.Sample) error {
	if p.image == nil || s.Pid != p.image.PID {
		return nil
	}
	if err := p.takeGaps(s.Time); err != nil {
		return err
	}
	if g := rtsevents.GroupOf(bpf.RTSProbe(s.Event)); p.quiet[g] {
		return nil
	}
	if !p.heapInfo {
		p.heapInfo = true
		if err := p.writeHeapInfo(s.Time); err != nil {
			return err
		}
	}
	return p.translator.Take(rtsevents.Record{
		Time: s.Time, Probe: bpf.RTSProbe(s.Event), Cap: int(s.Capability), Thread: s.Tso, Task: s.Tid, Reason: s.Period, Words: s.Frames,
		CPU: s.Cpu, Dropped: s.Total,
	})
}

// takeGaps passes the gaps up to a time to the translator.
func (p *Probes) takeGaps(until uint64) error {
	p.mu.Lock()
	n := 0
	for n < len(p.gaps) && p.gaps[n].Time <= until {
		n++
	}
	due := p.gaps[:n:n]
	p.gaps = p.gaps[n:]
	p.mu.Unlock()
	for _, g := range due {
		if err := p.translator.Gap(g); err != nil {
			return err
		}
	}
	return nil
}

// Finish ends the collections and runs that are under way when the capture ends.
func (p *Probes) Finish(at uint64) error {
	if p.image == nil {
		return nil
	}
	return errors.Join(p.takeGaps(at), p.closeWatches(at), p.translator.Close(at))
}

// closeWatches ends the groups' watches at a time, or before it where records were dropped.
func (p *Probes) closeWatches(at uint64) error {
	for g := range p.groups {
		if !p.wanted[g] || p.quiet[g] || p.problem[g] != nil {
			continue
		}
		counts, err := p.program.Counts(g)
		if err != nil {
			return err
		}
		if err := p.translator.Gap(rtsevents.Gap{Time: at, Group: g, Begins: true, Dropped: counts.DroppedOn}); err != nil {
			return err
		}
	}
	return nil
}

// Declare repeats the definitions of capabilities and heap in a new log.
func (p *Probes) Declare(at uint64) error {
	if p.image == nil {
		return nil
	}
	p.heapInfo = false
	return p.translator.Declare(at)
}

// Cost returns what the hits have cost the program.
func (p *Probes) Cost() (c source.Cost, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for g := range p.groups {
		if p.groups[g].bucket == nil || p.problem[g] != nil {
			continue
		}
		err = errors.Join(err, p.measure(g))
		c.RTSNs += uint64(max(p.groups[g].cost, 0))
	}
	return c, err
}

// Account writes the state of each group that was asked for.
func (p *Probes) Account() error {
	states, err := p.states()
	if err != nil {
		return err
	}
	p.written = states
	for i := range states {
		if err := p.host.Log.Emit(sink.Now, &states[i]); err != nil {
			return err
		}
	}
	return nil
}

// Report returns the states as they were last written.
func (p *Probes) Report(sum *source.Summary) { sum.Probes = append(sum.Probes, p.written...) }

func (p *Probes) states() ([]eventlog.RTSProbes, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []eventlog.RTSProbes
	for g := range p.groups {
		if !p.wanted[g] || p.quiet[g] {
			continue
		}
		group := &p.groups[g]
		e := eventlog.RTSProbes{Group: rtsevents.Groups[g], Sites: uint32(len(group.sites))}
		if group.bucket != nil {
			if err := p.measure(g); err != nil {
				return nil, err
			}
			if group.bucket.Level() < 0 {
				p.lookAt() // in case the kernel's report was lost
			}
			e.Hits, e.Records, e.Dropped = group.counts.Hits, group.counts.Records, group.counts.Dropped
			e.CostNs, e.OutNs = uint64(group.cost), group.out
			if group.outAt != 0 {
				e.OutNs += p.host.Budget.Clock() - group.outAt
			}
		}
		switch {
		case p.problem[g] != nil:
			e.Problem = p.problem[g].Error()
		case p.image == nil:
			e.Problem = "no Haskell run-time system was seen"
		}
		if totals := p.translator.Totals(); g == int(bpf.RTSGroupGC) && totals.Last > totals.First+totals.Collections {
			e.Missed = totals.Last - totals.First - totals.Collections
		}
		out = append(out, e)
	}
	return out, nil
}

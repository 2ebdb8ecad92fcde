package rts

import (
	"errors"

	"ccagent/agent/process"
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
	i := p.images[s.Pid]
	if i == nil || i.slot < 0 {
		return nil
	}
	return i.consume(s)
}

func (i *image) consume(s *perf.Sample) error {
	if err := i.takeGaps(s.Time); err != nil {
		return err
	}
	if g := rtsevents.GroupOf(bpf.RTSProbe(s.Event)); i.p.quiet[g] {
		return nil
	}
	if !i.heapInfo {
		i.heapInfo = true
		if err := i.writeHeapInfo(s.Time); err != nil {
			return err
		}
	}
	return i.translator.Take(rtsevents.Record{
		Time: s.Time, Probe: bpf.RTSProbe(s.Event), Cap: int(s.Capability), Thread: s.Tso, Task: s.Tid, Reason: s.Period, Words: s.Frames,
		CPU: s.Cpu, Dropped: s.Total,
	})
}

// takeGaps passes the gaps up to a time to the translator.
func (i *image) takeGaps(until uint64) error {
	i.mu.Lock()
	n := 0
	for n < len(i.gaps) && i.gaps[n].Time <= until {
		n++
	}
	due := i.gaps[:n:n]
	i.gaps = i.gaps[n:]
	i.mu.Unlock()
	for _, g := range due {
		if err := i.translator.Gap(g); err != nil {
			return err
		}
	}
	return nil
}

// Finish ends the collections and runs that are under way when the capture ends.
func (p *Probes) Finish(at uint64) error {
	var err error
	for _, i := range p.images {
		err = errors.Join(err, i.finish(at))
	}
	return err
}

func (i *image) finish(at uint64) error {
	if i.slot < 0 {
		return nil
	}
	return errors.Join(i.takeGaps(at), i.closeWatches(at), i.translator.Close(at))
}

// closeWatches ends the groups' watches at a time, or before it where records were dropped.
func (i *image) closeWatches(at uint64) error {
	for g := range i.groups {
		if !i.p.wanted[g] || i.p.quiet[g] || i.problem[g] != nil {
			continue
		}
		counts, err := i.p.program.Counts(i.slot, g)
		if err != nil {
			return err
		}
		if err := i.translator.Gap(rtsevents.Gap{Time: at, Group: g, Begins: true, Dropped: counts.DroppedOn}); err != nil {
			return err
		}
	}
	return nil
}

// Declare repeats the definitions of capabilities and heap in a new log.
func (p *Probes) Declare(at uint64) error {
	for _, i := range p.images {
		if err := i.declare(at); err != nil {
			return err
		}
	}
	return nil
}

// Enter is Declare of one process.
func (p *Probes) Enter(im *process.Image, at uint64) error {
	if i := p.images[im.PID]; i != nil && i.im == im {
		return i.declare(at)
	}
	return nil
}

func (i *image) declare(at uint64) error {
	if i.slot < 0 {
		return nil
	}
	i.heapInfo = false
	return i.translator.Declare(at)
}

// Cost returns what the hits have cost the programs.
func (p *Probes) Cost() (c source.Cost, err error) {
	if p.program == nil {
		return c, nil
	}
	if p.host.Timed {
		runs, ns, err := p.program.RunStats()
		c.RTSNs = ns + p.traps.Count(runs, p.host.Budget.Costs.Trap())
		return c, err
	}
	c.RTSNs = p.ended
	for _, i := range p.images {
		c.RTSNs += i.cost()
	}
	return c, nil
}

// Account writes the state of each group that was asked for.
func (p *Probes) Account() error {
	attached := len(p.attached()) > 0
	for _, i := range p.images {
		if i.slot < 0 && attached && !p.host.OwnLogs {
			continue // the log is of the one that has probes
		}
		if err := i.account(); err != nil {
			return err
		}
	}
	if len(p.images) > 0 || p.host.OwnLogs {
		return nil
	}
	p.written = nil
	for g := range p.wanted {
		if p.wanted[g] && !p.quiet[g] {
			e := eventlog.RTSProbes{Group: rtsevents.Groups[g], Problem: source.ErrNoRTS.Error()}
			p.written = append(p.written, e)
			if err := p.host.Log.Emit(sink.Now, &e); err != nil {
				return err
			}
		}
	}
	return nil
}

// Stop is source.Source's: what the probes do from now on is not the capture's.
func (p *Probes) Stop() error {
	p.stopped.Store(p.host.Budget.Clock())
	return nil
}

// outSince is how long probes have been out that were taken out at a time. Sampling may have ended just before.
func (p *Probes) outSince(at uint64) uint64 {
	now := p.now()
	return now - min(at, now)
}

// now is the budget's time, which ends with sampling.
func (p *Probes) now() uint64 {
	if end := p.stopped.Load(); end != 0 {
		return end
	}
	return p.host.Budget.Clock()
}

// account writes the groups' states into the process's log.
func (i *image) account() error {
	states, err := i.states()
	if err != nil {
		return err
	}
	i.p.written = states
	for n := range states {
		if err := i.im.Log.Emit(sink.Now, &states[n]); err != nil {
			return err
		}
	}
	return nil
}

// Report returns the states as they were last written.
func (p *Probes) Report(sum *source.Summary) { sum.Probes = append(sum.Probes, p.written...) }

func (i *image) states() ([]eventlog.RTSProbes, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out []eventlog.RTSProbes
	for g := range i.groups {
		if !i.p.wanted[g] || i.p.quiet[g] {
			continue
		}
		group := &i.groups[g]
		e := eventlog.RTSProbes{Group: rtsevents.Groups[g], Sites: uint32(len(group.sites))}
		if group.bucket != nil {
			if err := i.measure(g); err != nil {
				return nil, err
			}
			if group.bucket.Level() < 0 {
				i.lookAt() // in case the kernel's report was lost
			}
			e.Hits, e.Records, e.Dropped = group.counts.Hits, group.counts.Records, group.counts.Dropped
			e.CostNs, e.OutNs = uint64(max(group.cost, 0)), group.out
			if group.outAt != 0 {
				e.OutNs += i.p.outSince(group.outAt)
			}
		}
		if i.problem[g] != nil {
			e.Problem = i.problem[g].Error()
		}
		if totals := i.translator.Totals(); g == int(bpf.RTSGroupGC) && totals.Last > totals.First+totals.Collections {
			e.Missed = totals.Last - totals.First - totals.Collections
		}
		out = append(out, e)
	}
	return out, nil
}

package rtsprobes

import (
	"errors"
	"time"

	"ccagent/agent/timeline"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// Take takes a record of a probe.
func (p *Probes) Take(s *perf.Sample) error {
	if p == nil || p.image == nil || s.Pid != p.image.PID {
		return nil
	}
	if err := p.takeGaps(s.Time); err != nil {
		return err
	}
	if g := groupOf(bpf.RTSProbe(s.Event)); p.quiet[g] {
		return nil
	}
	if !p.heapInfo {
		p.heapInfo = true
		if err := p.writeHeapInfo(s.Time); err != nil {
			return err
		}
	}
	return p.timeline.Take(timeline.Record{
		Time: s.Time, Probe: bpf.RTSProbe(s.Event), Cap: int(s.Capability), Thread: s.Tso, Reason: s.Period, Words: s.Frames,
	})
}

func groupOf(probe bpf.RTSProbe) int {
	if probe >= bpf.RTSRun {
		return int(bpf.RTSGroupThreads)
	}
	return int(bpf.RTSGroupGC)
}

// Sampled tells the timeline what a sample showed.
func (p *Probes) Sampled(s *perf.Sample) error {
	if p == nil || p.image == nil || s.Pid != p.image.PID || s.Capability == eventlog.NoCapability ||
		!p.wanted[bpf.RTSGroupThreads] || p.quiet[bpf.RTSGroupThreads] {
		return nil
	}
	if err := p.takeGaps(s.Time); err != nil {
		return err
	}
	return p.timeline.Sampled(s.Time, int(s.Capability), s.Tso)
}

// takeGaps hands the timeline the gaps up to a time.
func (p *Probes) takeGaps(until uint64) error {
	p.mu.Lock()
	n := 0
	for n < len(p.gaps) && p.gaps[n].time <= until {
		n++
	}
	due := p.gaps[:n:n]
	p.gaps = p.gaps[n:]
	p.mu.Unlock()
	for _, g := range due {
		if err := p.timeline.Gap(g.time, g.group, g.begins); err != nil {
			return err
		}
	}
	return nil
}

// Finish ends what is under way when the capture ends.
func (p *Probes) Finish(at uint64) error {
	if p == nil || p.image == nil {
		return nil
	}
	return errors.Join(p.takeGaps(at), p.timeline.Close(at))
}

// Declare makes a new log readable alone.
func (p *Probes) Declare(at uint64) error {
	if p == nil || p.image == nil {
		return nil
	}
	p.heapInfo = false
	return p.timeline.Declare(at)
}

// Account gives the state of each wanted group.
func (p *Probes) Account() ([]*eventlog.RTSProbes, error) {
	if p == nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*eventlog.RTSProbes
	for g := range p.groups {
		if !p.wanted[g] || p.quiet[g] {
			continue
		}
		if err := p.measure(g); err != nil {
			return nil, err
		}
		group := &p.groups[g]
		if p.budget > 0 && group.cost > p.allowed(group) {
			p.lookAt() // should the kernel not have told
		}
		e := &eventlog.RTSProbes{
			Group: groupNames[g], Sites: uint32(len(group.sites)), Hits: group.counts.Hits, Records: group.counts.Records,
			Dropped: group.counts.Dropped, CostNs: uint64(group.cost), OutNs: uint64(group.out),
		}
		if !group.outAt.IsZero() {
			e.OutNs += uint64(time.Since(group.outAt))
		}
		switch {
		case p.problem[g] != nil:
			e.Problem = p.problem[g].Error()
		case p.image == nil:
			e.Problem = "no Haskell run-time system was seen"
		}
		if totals := p.timeline.Totals(); g == int(bpf.RTSGroupGC) && totals.Last > totals.First+totals.Collections {
			e.Missed = totals.Last - totals.First - totals.Collections
		}
		out = append(out, e)
	}
	return out, nil
}

package text

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
)

// overheadJSON is the cost of measuring, and its budget.
type overheadJSON struct {
	Asked *float64 `json:"asked"` // null for any
	// Measured is what measuring took, as a part of all CPU time that the program used, in which it is contained.
	// All parts of CPU time here have this base.
	Measured float64 `json:"measured"`
	Events   float64 `json:"events"`
	// Elsewhere is not in measured: what interrupts took that hit other processes, or idle cpus.
	Elsewhere float64 `json:"elsewhere"`
	// Interrupts is in events: by which they overflow.
	Interrupts  float64   `json:"interrupts"`
	InterruptNs *float64  `json:"interrupt_ns"` // each
	Alloc       float64   `json:"alloc"`
	EventsTaken partsJSON `json:"events_taken"`
	// Null where allocation was not sampled.
	Nursery   *partsJSON `json:"alloc_nursery"`
	Blocks    *partsJSON `json:"alloc_blocks"`
	Large     *partsJSON `json:"alloc_large"`
	ProbeHits uint64     `json:"probe_hits"`
	ProbeNs   *uint32    `json:"probe_ns"`
}

// partsJSON is how a part changed in the course of the capture.
type partsJSON struct {
	Mean float64 `json:"mean"` // over time
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	Last float64 `json:"last"`
}

// overheadOf adds up the intervals; nil if the log has none.
func overheadOf(p *profile.Profile) *overheadJSON {
	if len(p.Overheads) == 0 {
		return nil
	}
	o := overheadJSON{Nursery: &partsJSON{}, Blocks: &partsJSON{}, Large: &partsJSON{}}
	var time, target, events, alloc, interruptNs, interrupts float64
	parts := []struct {
		of  func(*columns.Overhead) uint32
		out *partsJSON
	}{
		{func(e *columns.Overhead) uint32 { return e.EventsTaken }, &o.EventsTaken},
		{func(e *columns.Overhead) uint32 { return e.Nursery }, o.Nursery},
		{func(e *columns.Overhead) uint32 { return e.Blocks }, o.Blocks},
		{func(e *columns.Overhead) uint32 { return e.Large }, o.Large},
	}
	for _, x := range parts {
		x.out.Min = math.Inf(1)
	}
	for i := range p.Overheads {
		e := &p.Overheads[i]
		time += float64(e.IntervalNs)
		target += float64(e.TargetNs)
		events += float64(e.EventNs)
		alloc += float64(e.AllocNs)
		interruptNs += float64(e.InterruptNs)
		interrupts += float64(e.Interrupts)
		o.ProbeHits += e.ProbeHits
		o.ProbeNs = printer.Known(e.ProbeNs)
		o.Asked = printer.Known(float64(e.Asked) / 1e6)
		for _, x := range parts {
			part := float64(x.of(e)) / 1e6
			x.out.Mean += part * float64(e.IntervalNs)
			x.out.Min, x.out.Max, x.out.Last = min(x.out.Min, part), max(x.out.Max, part), part
		}
	}
	for _, x := range parts {
		if time > 0 {
			x.out.Mean /= time
		}
	}
	each := 0.0
	if interrupts > 0 {
		each = interruptNs / interrupts
	}
	o.InterruptNs = printer.Known(each)
	if target > 0 {
		o.Events, o.Alloc, o.Interrupts = (events+interruptNs)/target, alloc/target, interruptNs/target
		o.Measured = o.Events + o.Alloc
		for i := range p.Events {
			o.Elsewhere += float64(p.Events[i].Sampling.Others) * each / target
		}
	}
	if !samplesAllocation(p) {
		o.Nursery, o.Blocks, o.Large = nil, nil, nil
	}
	return &o
}

// settling is the CPU time of a program in which rates come down to what their cost allows, ns.
const settling = 3e9

// above says why measuring cost more than was allowed; empty where it did not, or where that is not known.
func (o *overheadJSON) above(intervals []columns.Overhead) string {
	if o.Asked == nil || o.Measured <= 1.05**o.Asked {
		return ""
	}
	var target, rest, restCost float64
	for i := range intervals {
		e := &intervals[i]
		if target >= settling {
			rest += float64(e.TargetNs)
			restCost += float64(e.EventNs + e.AllocNs + e.InterruptNs)
		}
		target += float64(e.TargetNs)
	}
	switch {
	case target < settling:
		return fmt.Sprintf("that is more than is allowed: the program used %s of CPU time, and rates come down to what their cost allows within %s",
			format.Duration(uint64(target)), format.Duration(uint64(settling)))
	case rest > 0 && restCost/rest <= 1.05**o.Asked:
		return fmt.Sprintf("that is more than is allowed: it was, until rates had come down to what their cost allows; after the first %s it was %s",
			format.Duration(uint64(settling)), format.Percent(restCost/rest))
	}
	return ""
}

// samplesAllocation reports whether allocation is among a log's events.
func samplesAllocation(p *profile.Profile) bool {
	return slices.ContainsFunc(p.Events, func(e columns.Event) bool { return e.Unit == "bytes" && e.Granted != "" })
}

// overhead prints the cost of measuring, and what was left out to save some.
func (p out) overhead(pr *profile.Profile) {
	o := overheadOf(pr)
	if o == nil {
		return
	}
	allowed := "any allowed"
	if o.Asked != nil {
		allowed = format.Percent(*o.Asked) + " allowed"
	}
	var parts []string
	if samplesAllocation(pr) {
		parts = append(parts, "allocation "+format.Percent(o.Alloc))
	}
	if o.Events > 0 {
		parts = append([]string{"events " + format.Percent(o.Events)}, parts...)
	}
	p.field("overhead", fmt.Sprintf("%s of the CPU time that the program used in all (%s), %s", format.Percent(o.Measured), strings.Join(parts, ", "), allowed))
	if why := o.above(pr.Overheads); why != "" {
		p.field("", why)
	}
	if o.InterruptNs != nil {
		p.field("", fmt.Sprintf("of the events', %s are interrupts (%s each), %s BPF and probes", format.Percent(o.Interrupts), format.Duration(uint64(*o.InterruptNs)), format.Percent(o.Events-o.Interrupts)))
	}
	if o.Elsewhere > 0 {
		p.field("", fmt.Sprintf("besides, interrupts that hit other processes or idle CPUs took %s of that time", format.Percent(o.Elsewhere)))
	}
	if o.EventsTaken.Min < 1 {
		p.field("density", fmt.Sprintf("events were sampled at %s of their rate (%s to %s, at the end %s); a sample stands for as much more",
			format.Percent(o.EventsTaken.Mean), format.Percent(o.EventsTaken.Min), format.Percent(o.EventsTaken.Max), format.Percent(o.EventsTaken.Last)))
	}
	if o.ProbeHits > 0 {
		each := ""
		if o.ProbeNs != nil {
			each = " of " + format.Duration(uint64(*o.ProbeNs))
		}
		hits := format.Count(o.ProbeHits) + " hits" + each
		if o.Nursery != nil {
			hits += fmt.Sprintf(" while in place: at full nurseries %s of the time, at every block %s, at large objects %s",
				format.Percent(o.Nursery.Mean), format.Percent(o.Blocks.Mean), format.Percent(o.Large.Mean))
		}
		p.field("probes", hits)
	}
}

// warnings prints the capture's warnings, each once.
func (p out) warnings(pr *profile.Profile) {
	const most = 10
	var texts []string
	times := make(map[string]uint64)
	for _, w := range pr.Warnings {
		if times[w.Text]++; times[w.Text] == 1 {
			texts = append(texts, w.Text)
		}
	}
	for i, text := range texts {
		if i == most {
			p.Line("  ", p.Faint(fmt.Sprintf("%d more warnings", len(texts)-most)))
			return
		}
		s := safe.String(text)
		if n := times[text]; n > 1 {
			s += fmt.Sprintf(" (repeated %s times)", format.Count(n))
		}
		p.field("warning", s)
	}
}

// warned reports whether a warning names a cause already.
func warned(pr *profile.Profile, cause string) bool {
	return slices.ContainsFunc(pr.Warnings, func(w columns.Warning) bool { return strings.Contains(w.Text, cause) })
}

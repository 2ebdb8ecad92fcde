package profile

import (
	"slices"
	"strings"

	"ccagent/profile/columns"
)

// Ratios relate the events of one run to each other, by element: instructions per cycle,
// and the number of events per thousand instructions. An element's counts are the weights
// of the samples that share it at their leaf, so a ratio from few samples is inexact;
// LeastSamples limits this.
type Ratios struct {
	// IPC is set if cycles and instructions were both counted.
	IPC bool
	// PerKilo are the positions of the events that are related to instructions, in
	// the order of the log.
	PerKilo []int

	cycles, instructions *Hot
	others               []*Hot
}

// LeastSamples is the number of samples of each of two events that an element needs for
// their ratio to be shown: with 25, each count is right within about 20 %.
const LeastSamples = 25

// Ratio is the ratios of one element.
type Ratio struct {
	IPC float64 // 0 if there are too few samples
	// PerKilo has, for each of Ratios.PerKilo, the count per thousand instructions;
	// negative if there are too few samples.
	PerKilo []float64
}

// counts reports whether an event counts the same as the generic event of that name, in
// any mode.
func counts(e *columns.Event, name string) bool {
	granted := e.Granted
	if pmu, terms, is := strings.Cut(granted, "/"); is && pmu != "" {
		granted, _, _ = strings.Cut(terms, "/")
	}
	granted, _, _ = strings.Cut(granted, ":")
	return granted == name || name == "cycles" && granted == "cpu-cycles"
}

// Ratios returns the ratios of a level; nil if the log's events allow none.
func (s *Selection) Ratios(level Level) *Ratios {
	p := s.Profile
	find := func(name string) int {
		return slices.IndexFunc(p.Events, func(e columns.Event) bool { return counts(&e, name) && e.Samples > 0 })
	}
	instructions := find("instructions")
	if instructions < 0 {
		return nil
	}
	hot := func(event int) *Hot {
		f := s.Filter
		f.Event = event + 1
		return p.Select(f).Hot(level)
	}
	r := &Ratios{}
	if cycles := find("cycles"); cycles >= 0 {
		r.IPC, r.cycles = true, hot(cycles)
	}
	for i := range p.Events {
		e := &p.Events[i]
		if e.Samples > 0 && (e.Unit == "misses" || e.Unit == "faults" || e.Unit == "switches") {
			r.PerKilo = append(r.PerKilo, i)
			r.others = append(r.others, hot(i))
		}
	}
	if !r.IPC && r.PerKilo == nil {
		return nil
	}
	r.instructions = hot(instructions)
	return r
}

// counted returns an element's weight, 0 if it has too few samples.
func counted(h *Hot, id ElementID) float64 {
	row, ok := h.Row(id)
	if !ok || row.Samples < LeastSamples {
		return 0
	}
	return float64(row.ShareWeight)
}

// Of returns an element's ratios.
func (r *Ratios) Of(id ElementID) Ratio {
	out := Ratio{PerKilo: make([]float64, len(r.PerKilo))}
	instructions := counted(r.instructions, id)
	if r.IPC && instructions > 0 {
		if cycles := counted(r.cycles, id); cycles > 0 {
			out.IPC = instructions / cycles
		}
	}
	for i, h := range r.others {
		out.PerKilo[i] = -1
		if instructions == 0 {
			continue
		}
		row, ok := h.Row(id)
		switch {
		case !ok || row.Samples == 0:
			out.PerKilo[i] = 0 // too rare in this element to be sampled
		case row.Samples >= LeastSamples:
			out.PerKilo[i] = 1000 * float64(row.ShareWeight) / instructions
		}
	}
	return out
}

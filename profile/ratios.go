package profile

import (
	"slices"
	"strings"

	"ccagent/profile/columns"
)

// Ratios relate the events of one run to each other, by element: instructions per
// cycle, and how often something happened in a thousand instructions. An element's
// counts are the weights of the samples that share it at their leaf, so a ratio of few
// samples is rough; Least bounds it.
type Ratios struct {
	// IPC is set where cycles and instructions were both counted.
	IPC bool
	// PerKilo are the positions of the events that are related to instructions, in
	// the order of the log.
	PerKilo []int

	cycles, instructions *Hot
	others               []*Hot
}

// LeastSamples is how many samples of each of two events an element must have for
// their ratio to be told: at 25, each is right within about 20 %.
const LeastSamples = 25

// Ratio is one element's.
type Ratio struct {
	IPC float64 // 0 where it cannot be told
	// PerKilo is by Ratios.PerKilo: counts in a thousand instructions, negative
	// where it cannot be told.
	PerKilo []float64
}

// generic reports whether an event counts what the generic event of that name does,
// in any mode.
func counts(e *columns.Event, name string) bool {
	granted := e.Granted
	if pmu, terms, is := strings.Cut(granted, "/"); is && pmu != "" {
		granted, _, _ = strings.Cut(terms, "/")
	}
	granted, _, _ = strings.Cut(granted, ":")
	return granted == name || name == "cycles" && granted == "cpu-cycles"
}

// Ratios gives the ratios of a level; nil if the log's events have none.
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

// counted is an element's weight, 0 if too few samples tell of it.
func counted(h *Hot, id ElementID) float64 {
	row, ok := h.Row(id)
	if !ok || row.Samples < LeastSamples {
		return 0
	}
	return float64(row.ShareWeight)
}

// Of gives an element's ratios.
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
			out.PerKilo[i] = 0 // it did not happen there often enough to be seen
		case row.Samples >= LeastSamples:
			out.PerKilo[i] = 1000 * float64(row.ShareWeight) / instructions
		}
	}
	return out
}

package threads

import (
	"cmp"
	"slices"

	"ccagent/profile"
)

// Name names a Haskell thread of a log, by its number and its label.
type Name struct {
	TSO   uint64
	Label string // empty if it has none
}

// Known lists the Haskell threads of a log, by id: those with samples, those that the run-time
// system's events name, and those of its dumps. A thread whose label changed is there with each.
func Known(p *profile.Profile) []Name {
	var out []Name
	add := func(tso uint64, label string) {
		if tso != 0 {
			out = append(out, Name{tso, label})
		}
	}
	for i := range p.Threads {
		add(p.Threads[i].TSO, p.Threads[i].Label)
	}
	for i := range p.RTSLog.Threads {
		add(uint64(p.RTSLog.Threads[i].ID), p.RTSLog.Threads[i].Label)
	}
	for i := range p.Dumps {
		for j := range p.Dumps[i].Threads {
			add(p.Dumps[i].Threads[j].TSO, p.Dumps[i].Threads[j].Label)
		}
	}
	return Merge(out, nil)
}

// Merge makes one list of two, by id and label, with each thread once.
func Merge(a, b []Name) []Name {
	out := slices.Concat(a, b)
	slices.SortFunc(out, func(a, b Name) int { return cmp.Or(cmp.Compare(a.TSO, b.TSO), cmp.Compare(a.Label, b.Label)) })
	return slices.Compact(out)
}

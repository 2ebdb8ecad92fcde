package printer

import (
	"ccagent/internal/format"
	"ccagent/profile"
)

// Heading prints which log, event and samples the figures below it are of.
func (p *Printer) Heading(s *profile.Selection) {
	sum := s.Summary()
	if s.Event < 0 {
		what := "  no event was recorded in this log"
		if s.Profile.RTS != "" && !s.Profile.HaveCapture {
			what = "  a run-time system's log without samples; ccview timeline and ccview info show what it has"
		}
		p.Line(p.Bold(Fit(p.File, 60)), what)
		return
	}
	e := s.EventDef()
	name := sum.Event
	if e.Granted != "" && e.Granted != e.Requested {
		name += " (as " + e.Granted + ")"
	}
	parts := []string{Fit(p.File, 60), Fit(name, 40) + ": " + format.Plural(sum.Samples, "sample") + ", " + Quantity(sum.Total, sum.Unit)}
	if sum.Samples != sum.AllSamples {
		parts = append(parts, "of "+format.Count(sum.AllSamples))
	}
	parts = append(parts, "lost "+format.Count(sum.Lost), "unresolved "+format.Percent(sum.Unresolved))
	for _, st := range []struct {
		what string
		n    uint64
	}{{"truncated", sum.Stacks.Truncated}, {"failed", sum.Stacks.Failed}} {
		if st.n > 0 && sum.Samples > 0 {
			parts = append(parts, "stacks "+st.what+" "+format.Percent(float64(st.n)/float64(sum.Samples)))
		}
	}
	p.Wrap(p.Bold, "   ", parts...)
	p.Line("")
	if sum.Samples == 0 {
		p.Line("No sample of this event is in the selection.")
	}
}

package printer

import (
	"fmt"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/interval"
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
	effective := s.Batched().Effective()
	samples := format.Worth(sum.Samples, "sample", effective)
	if format.Unequal(sum.Samples, effective) {
		samples += " of equal weight"
	}
	parts := []string{Fit(p.File, 60), Fit(sum.Title, 40) + ": " + samples + ", " + Quantity(sum.Total, sum.Unit)}
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
	if few := Few(sum.Samples, effective); few != "" {
		p.Wrap(p.Bold, " ", strings.Fields(few)...)
	}
	p.Line("")
	if sum.Samples == 0 {
		p.Line("No sample of this event is in the selection.")
	}
}

// handful is the number of effective samples below which a list says first on how few it
// rests.
const handful = 100

// Few says what a list is worth that rests on a handful of samples; empty if it rests on
// more, or on none. effective is their number by weight: see interval.Whole.
func Few(samples uint64, effective float64) string {
	if samples == 0 || effective == 0 || effective >= handful {
		return ""
	}
	half, unseen := interval.Few(effective)
	return fmt.Sprintf("%s: a share of 50%% is known to ±%.0f points, and code with %.0f%% of the whole may not be seen at all",
		format.Worth(samples, "sample", effective), 100*half, 100*unseen)
}

// FewShort is Few for a title.
func FewShort(samples uint64, effective float64) string {
	if Few(samples, effective) == "" {
		return ""
	}
	half, _ := interval.Few(effective)
	return fmt.Sprintf("%s: ±%.0f", format.Plural(samples, "sample"), 100*half)
}

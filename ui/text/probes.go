package text

import (
	"fmt"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/ui/printer"
)

// probesJSON is a group of probes in the run-time system's code.
type probesJSON struct {
	Group    string   `json:"group"`
	Problem  *string  `json:"problem"`
	Sites    uint32   `json:"sites"`
	Hits     uint64   `json:"hits"`
	Dropped  uint64   `json:"dropped"`
	Missed   uint64   `json:"missed_collections"`
	Cost     float64  `json:"cost_seconds"`
	Out      float64  `json:"out_seconds"`
	Overhead *float64 `json:"overhead"` // cost as a fraction of the duration
}

func probesOf(pr *profile.Profile) []probesJSON {
	out := []probesJSON{}
	for _, g := range pr.RTSLog.Probes {
		out = append(out, probesJSON{g.Group, printer.Known(g.Problem), g.Sites, g.Hits, g.Dropped, g.Missed,
			float64(g.CostNs) / 1e9, float64(g.OutNs) / 1e9, printer.If(pr.Duration > 0, format.Ratio(g.CostNs, pr.Duration))})
	}
	return out
}

// probes prints what a capture's events of collections and threads have cost, and
// where they are not whole.
func (p out) probes(pr *profile.Profile) {
	missing := make(map[string][]string) // groups by what keeps them out
	var problems []string
	for _, g := range pr.RTSLog.Probes {
		if g.Problem == "" {
			continue
		}
		if missing[g.Problem] == nil {
			problems = append(problems, g.Problem)
		}
		missing[g.Problem] = append(missing[g.Problem], g.Group)
	}
	for _, problem := range problems {
		if !warned(pr, problem) {
			p.field(strings.Join(missing[problem], ", "), "not available: "+problem)
		}
	}
	for _, g := range pr.RTSLog.Probes {
		if g.Problem != "" {
			continue
		}
		s := fmt.Sprintf("%s of %s, about %s (%s of the time)", format.Plural(g.Hits, "hit"), format.Plural(uint64(g.Sites), "probe"),
			format.Duration(g.CostNs), format.Percent(format.Ratio(g.CostNs, pr.Duration)))
		if watched, partly := pr.Watched(g.Group); partly {
			s += fmt.Sprintf("; in place for %s of %s, to cost no more", format.Duration(watched), format.Duration(pr.Duration))
		}
		if g.Missed > 0 {
			s += "; " + format.Plural(g.Missed, "collection") + " not seen between"
		}
		if g.Dropped > 0 {
			s += "; " + format.Plural(g.Dropped, "hit") + " not recorded"
		}
		p.field(g.Group, s)
	}
}

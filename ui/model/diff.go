package model

import (
	"fmt"

	"ccagent/profile"
	"ccagent/profile/diff"
)

// Compared is the two groups of logs of a comparison. The engine's own profile is
// the first of B.
type Compared struct {
	A, B           []*profile.Profile
	NamesA, NamesB []string
}

// DiffChoice says what of two groups is compared; its zero value is nothing.
type DiffChoice struct {
	On        bool
	Level     profile.Level
	Metric    diff.Metric
	Normalise diff.Normalise
	Alpha     float64
}

// Diff is a comparison under the transforms that hold.
type Diff struct {
	Choice  DiffChoice
	Result  *diff.Result // nil if there is none
	Problem string       // why there is none
}

// compare measures every log of both groups. Transforms hold for each: names and
// times are the same in all.
func (e *Engine) compare(n Need) *Diff {
	out := &Diff{Choice: n.Diff}
	event := ""
	if n.Event >= 0 && n.Event < len(e.p.Events) {
		event = e.p.Events[n.Event].Name()
	}
	measure := func(ps []*profile.Profile, names []string) ([]*diff.Run, error) {
		var runs []*diff.Run
		for i, p := range ps {
			at, ok := p.EventNamed(event)
			if !ok {
				return nil, fmt.Errorf("%s has no event %q", names[i], event)
			}
			f, err := Filter(at, n.Stack)
			if err != nil {
				return nil, err
			}
			runs = append(runs, diff.Measure(names[i], p.Select(f), n.Diff.Level))
		}
		return runs, nil
	}
	a, err := measure(e.compared.A, e.compared.NamesA)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	b, err := measure(e.compared.B, e.compared.NamesB)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	c := n.Diff
	out.Result, err = diff.Compare(a, b, diff.Options{Metric: c.Metric, Normalise: c.Normalise, Alpha: c.Alpha})
	if err != nil {
		out.Problem = err.Error()
	}
	return out
}

// Compare gives the engine the groups that Need.Diff is about.
func (e *Engine) Compare(c *Compared) { e.compared = c }

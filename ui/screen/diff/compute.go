package diff

import (
	"ccagent/profile"
	"ccagent/profile/diff"
	"ccagent/ui/model"
	"ccagent/ui/screen"
)

// part says what of two groups is compared.
type part struct {
	of    *screen.Compared
	Level profile.Level
	diff.Options
}

// Diff is a comparison under the transforms that hold.
type Diff struct {
	Result  *diff.Result // nil if there is none
	Problem string       // why there is none
}

// compare measures every log of both groups under the transforms that hold.
func (c part) compare(in *model.Input) *Diff {
	a, b, err := c.of.Selections(in)
	if err != nil {
		return &Diff{Problem: err.Error()}
	}
	measure := func(of []*profile.Selection, names []string) (runs []*diff.Run) {
		for i, s := range of {
			runs = append(runs, diff.Measure(names[i], s, c.Level))
		}
		return runs
	}
	out := &Diff{}
	out.Result, err = diff.Compare(measure(a, c.of.NamesA), measure(b, c.of.NamesB), c.Options)
	if err != nil {
		out.Problem = err.Error()
	}
	return out
}

// Compute implements model.Part; it gives a *Diff.
func (c part) Compute(in *model.Input) (any, error) {
	type key struct {
		model.Samples
		part
	}
	return model.Recall(in.Engine, key{in.Query.Samples, c}, func() *Diff { return c.compare(in) }), nil
}

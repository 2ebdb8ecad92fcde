package diff

import (
	"fmt"

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

// compare measures every log of both groups. Transforms hold for each: names and
// times are the same in all.
func (c part) compare(in *model.Input) *Diff {
	out := &Diff{}
	event, events := "", in.Profile().Events
	if i := in.Query.Event; i >= 0 && i < len(events) {
		event = events[i].Name()
	}
	measure := func(ps []*profile.Profile, names []string) ([]*diff.Run, error) {
		var runs []*diff.Run
		for i, p := range ps {
			at, ok := p.EventNamed(event)
			if !ok {
				return nil, fmt.Errorf("%s has no event %q", names[i], event)
			}
			f, err := model.Filter(at, in.Query.Transforms.All())
			if err != nil {
				return nil, err
			}
			runs = append(runs, diff.Measure(names[i], p.Select(f), c.Level))
		}
		return runs, nil
	}
	a, err := measure(c.of.A, c.of.NamesA)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	b, err := measure(c.of.B, c.of.NamesB)
	if err != nil {
		out.Problem = err.Error()
		return out
	}
	out.Result, err = diff.Compare(a, b, c.Options)
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

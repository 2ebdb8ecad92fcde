package screen

import (
	"fmt"
	"slices"

	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/diff"
	"ccagent/ui/model"
)

// Compared is two groups of logs, and how they are to be compared first.
type Compared struct {
	A, B           []*profile.Profile
	NamesA, NamesB []string
	Level          profile.Level
	Bands          *closures.Grouping // of the heap; nil leaves it to the logs
	Options        diff.Options
	Shown          Side // whose first log the context's profile is
}

// WhyNoDiff says why there are no samples to compare; empty if there are.
func (c *Context) WhyNoDiff() string {
	if c.Compared == nil {
		return "one log is open; ccview diff A B compares two"
	}
	for _, p := range slices.Concat(c.Compared.A, c.Compared.B) {
		if p.Samples() > 0 {
			return ""
		}
	}
	return "these logs have no samples to compare; " + c.Key(Heap) + " shows the heap"
}

// Side is one of the two groups that are compared.
type Side uint8

// The sides.
const (
	SideA Side = iota
	SideB
)

func (s Side) String() string { return [...]string{"A", "B"}[s] }

// Other is the other side.
func (s Side) Other() Side { return SideB - s }

// First is the log of a side that the other screens show, and its name.
func (c *Compared) First(s Side) (*profile.Profile, string) {
	if s == SideA {
		return c.A[0], c.NamesA[0]
	}
	return c.B[0], c.NamesB[0]
}

// Selections are what a query's transforms keep of the logs of both sides: names and times are the
// same in all. An error names the log that has no such event.
func (c *Compared) Selections(in *model.Input) (a, b []*profile.Selection, err error) {
	event, events := "", in.Profile().Events
	if i := in.Query.Event; i >= 0 && i < len(events) {
		event = events[i].Name()
	}
	keep := func(ps []*profile.Profile, names []string) ([]*profile.Selection, error) {
		var out []*profile.Selection
		for i, p := range ps {
			at, ok := p.EventNamed(event)
			if !ok {
				return nil, fmt.Errorf("%s has no event %q", names[i], event)
			}
			f, err := model.Filter(at, in.Query.Transforms.All())
			if err != nil {
				return nil, err
			}
			out = append(out, p.Select(f))
		}
		return out, nil
	}
	if a, err = keep(c.A, c.NamesA); err != nil {
		return nil, nil, err
	}
	b, err = keep(c.B, c.NamesB)
	return a, b, err
}

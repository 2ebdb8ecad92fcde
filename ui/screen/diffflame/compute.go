package diffflame

import (
	"fmt"

	"ccagent/profile/stacks"
	"ccagent/ui/model"
	"ccagent/ui/screen"
)

// part is the call trees of all logs that are compared.
type part struct{ of *screen.Compared }

// answer answers a part.
type answer struct {
	pair    *stacks.Pair // nil if there is none
	unit    string       // of weights
	problem string       // why there is none
}

// leastSure is the part of a run's samples below which a node gets no interval, and is taken not to differ.
const leastSure = 0.0005

// Compute implements model.Part; it gives an *answer.
func (c part) Compute(in *model.Input) (any, error) {
	return model.Recall(in.Engine, in.Query.Samples, func() *answer {
		a, b, err := c.of.Selections(in)
		if err != nil {
			return &answer{problem: err.Error()}
		}
		unit := a[0].EventDef().Unit
		for _, s := range append(a[1:len(a):len(a)], b...) {
			if u := s.EventDef().Unit; u != unit {
				return &answer{problem: fmt.Sprintf("one log counts %s, another %s: their stacks cannot be compared", unit, u)}
			}
		}
		return &answer{pair: stacks.PairOf(a, b, leastSure), unit: unit}
	}), nil
}

package text

import (
	"io"

	"ccagent/profile"
	"ccagent/profile/stacks"
)

// Sandwich prints what calls a function, and what it calls.
func Sandwich(w io.Writer, s *profile.Selection, callers, callees *stacks.Tree, so StackOptions, o Options) error {
	p := newPrinter(w, o)
	p.heading(s)
	for i, half := range []*stacks.Tree{callers, callees} {
		if i == 0 {
			p.line(p.bold("  total    begins  callers, up to the roots"))
		} else {
			p.line("")
			p.line(p.bold("  total    self    callees"))
		}
		tp := treePrinter{p: p, s: s, t: half, so: so}
		tp.node(0, "", "", 0)
		if tp.forced {
			p.note("* evaluates thunks that the function above it forced")
		}
	}
	return p.flush()
}

type sandwichJSON struct {
	Event    string    `json:"event"`
	Unit     string    `json:"unit"`
	Samples  uint64    `json:"samples"`
	Total    uint64    `json:"total"`
	Function string    `json:"function"`
	Callers  *nodeJSON `json:"callers"`
	Callees  *nodeJSON `json:"callees"`
}

// SandwichJSON writes what Sandwich prints.
func SandwichJSON(w io.Writer, s *profile.Selection, callers, callees *stacks.Tree) error {
	sum := s.Summary()
	return writeJSON(w, sandwichJSON{
		Event: sum.Event, Unit: sum.Unit, Samples: sum.Samples, Total: sum.Total, Function: callers.Nodes[0].Name,
		Callers: treeJSON(callers), Callees: treeJSON(callees),
	})
}

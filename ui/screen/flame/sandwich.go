package flame

import (
	"io"

	"ccagent/profile"
	"ccagent/profile/stacks"
	"ccagent/ui/printer"
)

// SandwichReport is what calls a function, and what it calls.
type SandwichReport struct {
	Selection        *profile.Selection
	Callers, Callees *stacks.Tree
	Limits
}

// Text implements printer.Report.
func (r SandwichReport) Text(w io.Writer, o printer.Options) error {
	s, callers, callees, so := r.Selection, r.Callers, r.Callees, r.Limits
	p := newOut(w, o)
	p.Heading(s)
	tied := false
	for i, half := range []*stacks.Tree{callers, callees} {
		if i == 0 {
			p.Line(p.Bold("  total" + p.SureHead() + "   starts" + p.selfHead() + "  callers, up to the roots"))
		} else {
			p.Line("")
			p.Line(p.Bold("  total" + p.SureHead() + "   self " + p.selfHead() + "   callees"))
		}
		tp := treePrinter{p: p, s: s, t: half, so: so, sure: half.Sure(s, so.MinShare)}
		tp.node(0, "", "", 0)
		if tp.forced {
			p.Note("* evaluates thunks that the function above it forced")
		}
		tied = tied || tp.tied
	}
	p.Line("")
	p.SureNote(tied)
	p.Note("starts: the part whose stack starts here")
	return p.Flush()
}

type sandwichJSON struct {
	Event    *string   `json:"event"`
	Unit     *string   `json:"unit"`
	Samples  uint64    `json:"samples"`
	Total    uint64    `json:"total"`
	Function string    `json:"function"`
	Callers  *nodeJSON `json:"callers"`
	Callees  *nodeJSON `json:"callees"`
	// Effective is what the samples are worth by their weights.
	Effective float64 `json:"effective_samples"`
}

// JSON implements printer.Report.
func (r SandwichReport) JSON(w io.Writer, _ printer.Options) error {
	s, callers, callees := r.Selection, r.Callers, r.Callees
	sum := s.Summary()
	return printer.JSON(w, sandwichJSON{
		Event: printer.Known(sum.Event), Unit: printer.Known(sum.Unit), Samples: sum.Samples, Total: sum.Total, Function: callers.Nodes[0].Name,
		Callers: treeJSON(s, callers), Callees: treeJSON(s, callees), Effective: s.Batched().Effective(),
	})
}

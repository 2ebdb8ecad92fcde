package text

import (
	"slices"

	"ccagent/profile"
	"ccagent/profile/centres"
)

// exactJSON tells of the cost-centre stacks that samples carry.
type exactJSON struct {
	Centres int    `json:"centres"`
	Stacks  int    `json:"stacks"`
	Samples uint64 `json:"samples"` // with a whole stack
	Unknown uint64 `json:"unknown"` // with none
	// Problems counts samples whose stack is not whole, by reason.
	Problems map[string]uint64 `json:"problems"`
}

func exactOf(p *profile.Profile) *exactJSON {
	e := &p.Exact
	if e.Stacks == 0 && len(e.Problems) == 0 {
		return nil
	}
	return &exactJSON{e.Centres, e.Stacks, e.Samples, e.Unknown, e.Problems}
}

// exact tells what of the samples' cost-centre stacks is known.
func (p *printer) exact(doc *exactJSON) {
	if doc == nil {
		return
	}
	s := Count(doc.Samples) + " samples with a whole one, of " + plural(uint64(doc.Stacks), "stack") + " and " + plural(uint64(doc.Centres), "centre")
	for _, why := range problemNames(doc.Problems) {
		s += ", " + why + " " + Count(doc.Problems[why])
	}
	if doc.Unknown > 0 {
		s += ", none known " + Count(doc.Unknown)
	}
	p.field("-prof", "cost-centre stacks: "+s)
}

func problemNames(m map[string]uint64) []string {
	var names []string
	for why := range m {
		names = append(names, why)
	}
	slices.Sort(names)
	return names
}

// rtsOwn are the cost centres of the run-time system that the report of +RTS -p
// leaves out, and does not count in its totals.
var rtsOwn = []string{"GC", "SYSTEM", "OVERHEAD", "IDLE", "DONT_CARE"}

// unreported tells of a centre that such a report has not got: of exact stacks, what
// the run-time system spent for itself and what is not known to be anyone's.
func unreported(c *centres.Costs, x *centres.Centre) bool {
	return c.Mode == centres.ModeExact && (slices.Contains(rtsOwn, x.Name) || x.Pseudo && x.Module == "")
}

// reported is a report's total.
func reported(c *centres.Costs) uint64 {
	total := c.Total
	for i := range c.ByCentre {
		if r := &c.ByCentre[i]; unreported(c, r.Centre) {
			total -= min(total, r.Individual)
		}
	}
	return total
}

// reportedInherited is what a stack inherits of the reported.
func reportedInherited(c *centres.Costs) []uint64 {
	out := make([]uint64, len(c.Rows))
	for i := range c.Rows {
		out[i] = c.Rows[i].Inherited
	}
	for i := range c.Rows {
		if !unreported(c, c.Rows[i].Centre) {
			continue
		}
		for j := i; j >= 0; j = c.Rows[j].Parent {
			out[j] -= min(out[j], c.Rows[i].Individual)
		}
	}
	return out
}

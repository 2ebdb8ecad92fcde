package text

import (
	"slices"

	"ccagent/internal/format"
	"ccagent/profile"
)

// exactJSON counts the cost-centre stacks that samples carry.
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

// exact prints how many samples have a cost-centre stack, and why others have none.
func (p out) exact(doc *exactJSON) {
	if doc == nil {
		return
	}
	s := format.Count(doc.Samples) + " samples with a whole one, of " + format.Plural(uint64(doc.Stacks), "stack") + " and " + format.Plural(uint64(doc.Centres), "centre")
	for _, why := range problemNames(doc.Problems) {
		s += ", " + why + " " + format.Count(doc.Problems[why])
	}
	if doc.Unknown > 0 {
		s += ", none known " + format.Count(doc.Unknown)
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

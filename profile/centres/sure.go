package centres

import (
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Sure returns how sure the individual figures of some of Rows are, given by their
// positions, in that order. Without stacks, a row is tied if its order after the row before
// is within noise; stacks are in the order of a tree.
func (c *Costs) Sure(s *profile.Selection, rows []int) []profile.Sure {
	of := make(map[int32]int, len(rows))
	for k, i := range rows {
		of[c.Rows[i].id+1] = k
	}
	sites := make([][]columns.SiteID, len(rows))
	for site, id := range c.at {
		if k, ok := of[id]; ok && id != 0 {
			sites[k] = append(sites[k], columns.SiteID(site))
		}
	}
	out := s.Batched().List(sites)
	if c.Mode.Stacks() {
		for k := range out {
			out[k].Tied = false
		}
	}
	return out
}

package centres

import (
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
)

// Sure says how sure a row's figures are.
type Sure struct {
	Individual, Inherited interval.Interval
	// Tied is set if the row's order is within noise: by its individual figure after that of
	// the row before, or of stacks by its inherited figure after that of the stack listed before
	// it on the same one.
	Tied bool
}

// Sure returns how sure the figures of some of Rows are, given by their positions, in that
// order.
func (c *Costs) Sure(s *profile.Selection, rows []int) []Sure {
	out := make([]Sure, len(rows))
	at := make(map[int32]int, len(rows)) // by a row's id
	for k, i := range rows {
		at[c.Rows[i].id] = k
	}
	own := make([][]columns.SiteID, len(rows))
	for site, stack := range c.at {
		if stack == 0 {
			continue
		}
		id := stack - 1
		if !c.Mode.Stacks() {
			id = c.stacks[id].centre
		}
		if k, ok := at[id]; ok {
			own[k] = append(own[k], columns.SiteID(site))
		}
	}
	for k, sure := range s.Batched().List(own) {
		out[k].Individual, out[k].Tied = sure.Interval, sure.Tied && !c.Mode.Stacks()
	}
	if c.Mode.Stacks() {
		c.inheritedByStack(s.Batched(), at, out)
	} else {
		c.inheritedByCentre(s.Batched(), rows, at, out)
	}
	return out
}

// inheritedByCentre adds up the samples that have a centre anywhere on their stack, where it is
// once at most.
func (c *Costs) inheritedByCentre(b *profile.Batched, rows []int, at map[int32]int, out []Sure) {
	parts := make([]interval.Part, len(out))
	for k := range parts {
		b.Reset(&parts[k])
	}
	for site, stack := range c.at {
		for id := stack - 1; id >= 0; id = c.stacks[id].below {
			if k, ok := at[c.stacks[id].centre]; ok {
				b.Add(&parts[k], columns.SiteID(site))
			}
		}
	}
	for k, i := range rows {
		out[k].Inherited = inherited(b, &c.Rows[i], &out[k], &parts[k])
	}
}

// inherited returns the interval of a row's inherited figure, of which part has the samples. Many
// rows have no others than their own: an interval takes long.
func inherited(b *profile.Batched, r *Row, sure *Sure, part *interval.Part) interval.Interval {
	if r.Inherited == r.Individual {
		return sure.Individual
	}
	return b.Share(part)
}

// inheritedByStack adds up the samples of stacks and of those above them. Rows are depth first,
// so in their reverse order all that is above a stack is done before it, and memory is needed for
// two parts a level.
func (c *Costs) inheritedByStack(b *profile.Batched, at map[int32]int, out []Sure) {
	first := make([]int32, len(c.stacks)+1)
	for _, stack := range c.at {
		if stack > 0 {
			first[stack]++
		}
	}
	for i := range c.stacks {
		first[i+1] += first[i]
	}
	sites, next := make([]columns.SiteID, first[len(c.stacks)]), make([]int32, len(c.stacks))
	for site, stack := range c.at {
		if stack > 0 {
			sites[first[stack-1]+next[stack-1]] = columns.SiteID(site)
			next[stack-1]++
		}
	}
	depth := make([]int, len(c.Rows))
	type level struct {
		sum   *interval.Part // of the stacks on the same one that are done
		after *interval.Part // the one listed after the next; nil for none
		row   int            // its position in out; -1 if it is not asked for
	}
	var levels []level
	for i := range c.Rows {
		if up := c.Rows[i].Parent; up >= 0 {
			depth[i] = depth[up] + 1
		}
		for len(levels) < depth[i]+2 {
			levels = append(levels, level{sum: &interval.Part{}})
			b.Reset(levels[len(levels)-1].sum)
		}
	}
	var none interval.Part
	for i := len(c.Rows) - 1; i >= 0; i-- {
		id := c.Rows[i].id
		above, here := &levels[depth[i]+1], &levels[depth[i]]
		now := above.sum
		for _, site := range sites[first[id]:first[id+1]] {
			b.Add(now, site)
		}
		k, asked := at[id]
		if !asked {
			k = -1
		} else {
			out[k].Inherited = inherited(b, &c.Rows[i], &out[k], now)
		}
		if here.after != nil && here.row >= 0 {
			out[here.row].Tied = !b.Ordered(now, here.after, &none)
		}
		here.sum.Add(now)
		free := here.after
		if free == nil {
			free = &interval.Part{}
		}
		b.Reset(free)
		here.after, here.row = now, k
		above.sum, above.after = free, nil
	}
}

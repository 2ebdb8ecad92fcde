package profile

import (
	"slices"

	"ccagent/profile/columns"
	"ccagent/profile/interval"
)

// SureParts is how sure a row's further figures are.
type SureParts struct{ Only, Inclusive interval.Interval }

// SurePartsOf returns how sure Only and Inclusive of different elements of a level are. sure is
// how sure their shares are, as of SureOf.
func (s *Selection) SurePartsOf(level Level, ids []ElementID, sure []Sure) []SureParts {
	b, ix := s.Batched(), s.index(level)
	only := s.SureOnlyOf(level, ids, sure)
	inclusive := make([]interval.Part, len(ids))
	row := ix.rows(ids)
	for i := range ids {
		b.Reset(&inclusive[i])
	}
	s.addInclusive(ix, b, func(id ElementID) *interval.Part {
		if r := row[id]; r > 0 {
			return &inclusive[r-1]
		}
		return nil
	})
	out := make([]SureParts, len(ids))
	h := s.Hot(level)
	for i, id := range ids {
		out[i] = SureParts{only[i], sure[i].Interval}
		r, ok := h.Row(id)
		if !ok || r.InclusiveWeight != r.ShareWeight {
			out[i].Inclusive = b.Share(&inclusive[i])
		}
	}
	return out
}

// SureOnlyOf is SurePartsOf of Only alone, which takes less.
func (s *Selection) SureOnlyOf(level Level, ids []ElementID, sure []Sure) []interval.Interval {
	b, ix := s.Batched(), s.index(level)
	only, row := make([]interval.Part, len(ids)), ix.rows(ids)
	for i := range ids {
		b.Reset(&only[i])
	}
	for site, n := range s.Count {
		if n == 0 {
			continue
		}
		at, _ := s.leafElements(ix, site)
		if len(at) == 1 && row[at[0]] > 0 {
			b.Add(&only[row[at[0]]-1], columns.SiteID(site))
		}
	}
	out := make([]interval.Interval, len(ids))
	h := s.Hot(level)
	for i, id := range ids {
		// Most figures are of the same samples as the share: an interval takes long.
		out[i] = sure[i].Interval
		if r, ok := h.Row(id); !ok || r.OnlyWeight != r.ShareWeight {
			out[i] = b.Share(&only[i])
		}
	}
	return out
}

// rows returns 1 + the position of each of a level's elements in a list, 0 for those that it lacks.
func (ix *levelIndex) rows(ids []ElementID) []int32 {
	out := make([]int32, len(ix.elements))
	for i, id := range ids {
		out[id] = int32(i + 1)
	}
	return out
}

// addInclusive adds to each element's part, unless that is nil, the samples whose weights the
// method inclusive adds up, in the same way: what lies under a node is added up from the
// leaves, and goes to the elements that the node adds to the path.
func (s *Selection) addInclusive(ix *levelIndex, b *Batched, part func(ElementID) *interval.Part) {
	p := s.Profile
	order := p.Order()
	below := s.subtrees(order)
	first := make([]uint32, len(p.Nodes.Parent)+1) // by node: where its sites begin
	for site := range s.Count {
		first[p.Sites[site].Node+1]++
	}
	for n := range p.Nodes.Parent {
		first[n+1] += first[n]
	}
	sites, next := make([]columns.SiteID, len(s.Count)), slices.Clone(first)
	for site := range s.Count {
		n := p.Sites[site].Node
		sites[next[n]] = columns.SiteID(site)
		next[n]++
	}
	onPath := make([]uint32, len(ix.elements))
	type level struct {
		node  uint32
		under *interval.Part   // the samples at the node and above; nil for none yet
		to    []*interval.Part // whose they are
	}
	var free []*interval.Part
	var path []level
	depth := 0
	leave := func() {
		depth--
		at := &path[depth]
		if !columns.Structural(p.Nodes.Kind[at.node]) {
			for _, id := range ix.of(p.Nodes.Place[at.node]) {
				onPath[id]--
			}
		}
		if at.under == nil {
			return
		}
		for _, to := range at.to {
			to.Add(at.under)
		}
		switch {
		case depth > 0 && path[depth-1].under == nil:
			path[depth-1].under = at.under
			return
		case depth > 0:
			path[depth-1].under.Add(at.under)
		}
		free = append(free, at.under)
	}
	for i := 0; i < len(order.Pre); {
		n := order.Pre[i]
		for depth > 0 && path[depth-1].node != p.Nodes.Caller(n) {
			leave()
		}
		if below[n] == 0 {
			i = int(order.End[i])
			continue
		}
		i++
		if depth == len(path) {
			path = append(path, level{})
		}
		at := &path[depth]
		depth++
		at.node, at.under, at.to = n, nil, at.to[:0]
		for _, site := range sites[first[n]:first[n+1]] {
			if at.under == nil {
				if len(free) == 0 {
					free = append(free, &interval.Part{})
				}
				at.under = free[len(free)-1]
				free = free[:len(free)-1]
				b.Reset(at.under)
			}
			b.Add(at.under, site)
		}
		if columns.Structural(p.Nodes.Kind[n]) {
			continue
		}
		for _, id := range ix.of(p.Nodes.Place[n]) {
			if onPath[id]++; onPath[id] == 1 {
				if to := part(id); to != nil {
					at.to = append(at.to, to)
				}
			}
		}
	}
	for depth > 0 {
		leave()
	}
	// Sites whose leaf is outside the tree.
	for site, n := range s.Count {
		if n == 0 || s.Leaf[site] != 0 && !p.Sites[site].Kernel {
			continue
		}
		at, _ := s.leafElements(ix, site)
		for _, id := range at {
			if to := part(id); to != nil && !s.onStack(ix, p.Sites[site].Node, id) {
				b.Add(to, columns.SiteID(site))
			}
		}
	}
}

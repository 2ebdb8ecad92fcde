package profile

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Row is an element's figures. Weights are in the event's unit.
type Row struct {
	Element *Element

	ShareWeight, OnlyWeight, InclusiveWeight uint64
	// NearWeight is the part of ShareWeight that is attributed by a marked guess:
	// only the symbol before the code is known.
	NearWeight uint64
	// Samples is the number of samples with the element at their leaf.
	Samples uint64

	// Share, Only and Inclusive are the weights as fractions of the selection's
	// total.
	Share, Only, Inclusive float64
}

// Hot is the figures of a selection's elements at one level.
type Hot struct {
	Level Level
	// Rows are ordered by share, largest first; then by inclusive, then by name.
	// Elements that are in no frame of a kept sample are left out.
	Rows []Row
	// Sum is the sum of the shares: above 1 where samples have several causes.
	Sum float64

	byID map[ElementID]int
}

// Row returns an element's row.
func (h *Hot) Row(id ElementID) (*Row, bool) {
	i, ok := h.byID[id]
	if !ok {
		return nil, false
	}
	return &h.Rows[i], true
}

// IDs returns the elements of the first n rows, in their order.
func (h *Hot) IDs(n int) []ElementID {
	ids := make([]ElementID, min(n, len(h.Rows)))
	for i := range ids {
		ids[i] = h.Rows[i].Element.ID
	}
	return ids
}

// Hot returns the figures of a level. The result is shared and must not be changed.
func (s *Selection) Hot(level Level) *Hot {
	v := &s.views[level]
	v.hot.Do(func() { v.rows = s.hot(level) })
	return v.rows
}

func (s *Selection) hot(level Level) *Hot {
	ix := s.index(level)
	rows := make([]Row, len(ix.elements))
	for site, n := range s.Count {
		if n == 0 {
			continue
		}
		w := s.Weight[site]
		ids, near := s.leafElements(ix, site)
		for _, id := range ids {
			r := &rows[id]
			r.ShareWeight = columns.SatAdd(r.ShareWeight, w)
			r.Samples += n
			if near {
				r.NearWeight = columns.SatAdd(r.NearWeight, w)
			}
		}
		if len(ids) == 1 {
			rows[ids[0]].OnlyWeight = columns.SatAdd(rows[ids[0]].OnlyWeight, w)
		}
	}
	s.inclusive(ix, rows)

	h := &Hot{Level: level, byID: make(map[ElementID]int)}
	for i := range rows {
		r := &rows[i]
		if r.Samples == 0 && r.InclusiveWeight == 0 {
			continue
		}
		r.Element = &ix.elements[i]
		r.Share, r.Only, r.Inclusive = s.Fraction(r.ShareWeight), s.Fraction(r.OnlyWeight), s.Fraction(r.InclusiveWeight)
		h.Sum += r.Share
		h.Rows = append(h.Rows, *r)
	}
	slices.SortFunc(h.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.ShareWeight, a.ShareWeight), cmp.Compare(b.InclusiveWeight, a.InclusiveWeight),
			cmp.Compare(a.Element.Name, b.Element.Name), cmp.Compare(a.Element.ID, b.Element.ID))
	})
	for i := range h.Rows {
		h.byID[h.Rows[i].Element.ID] = i
	}
	return h
}

// Fraction returns a weight as a fraction of the selection's total.
func (s *Selection) Fraction(w uint64) float64 {
	if s.Total == 0 {
		return 0
	}
	return float64(w) / float64(s.Total)
}

// LeafElements returns the elements of a level at the leaf of a site's samples. There is
// always at least one.
func (s *Selection) LeafElements(level Level, site int) []ElementID {
	ids, _ := s.leafElements(s.index(level), site)
	return ids
}

// leafElements returns the elements at the leaf of a site's samples, at least one, and
// whether they are a marked guess.
func (s *Selection) leafElements(ix *levelIndex, site int) ([]ElementID, bool) {
	p := s.Profile
	if p.Sites[site].Kernel {
		return ix.category[eventlog.CategoryKernel:][:1], false
	}
	leaf := s.Leaf[site]
	if leaf == 0 {
		if s.drops() && p.LeafCategory(p.Sites[site]) != eventlog.CategoryUnresolved {
			return []ElementID{ix.hidden}, false
		}
		return ix.category[eventlog.CategoryUnresolved:][:1], false
	}
	pl := p.Nodes.Place[leaf]
	if own := p.leafOf(site); own != 0 && own != pl {
		return slices.Concat(ix.of(pl), ix.of(own)), ix.near[pl]
	}
	return ix.of(pl), ix.near[pl]
}

// inclusive adds each sample's weight once to every element on its stack. It walks the
// tree of stacks depth first and counts how often each element is on the current path.
// The weight under a node goes to the elements that the node adds to the path.
func (s *Selection) inclusive(ix *levelIndex, rows []Row) {
	p := s.Profile
	order := p.Order()
	below := s.subtrees(order)
	onPath := make([]uint32, len(rows))
	var path []uint32
	leave := func(n uint32) {
		if columns.Structural(p.Nodes.Kind[n]) {
			return
		}
		for _, id := range ix.of(p.Nodes.Place[n]) {
			onPath[id]--
		}
	}
	for i := 0; i < len(order.Pre); {
		n := order.Pre[i]
		for len(path) > 0 && path[len(path)-1] != p.Nodes.Caller(n) {
			leave(path[len(path)-1])
			path = path[:len(path)-1]
		}
		w := below[n]
		if w == 0 {
			i = int(order.End[i])
			continue
		}
		i++
		path = append(path, n)
		if columns.Structural(p.Nodes.Kind[n]) {
			continue
		}
		for _, id := range ix.of(p.Nodes.Place[n]) {
			if onPath[id] == 0 {
				rows[id].InclusiveWeight = columns.SatAdd(rows[id].InclusiveWeight, w)
			}
			onPath[id]++
		}
	}
	// Sites whose leaf is outside the tree.
	for site, n := range s.Count {
		if n == 0 {
			continue
		}
		st := p.Sites[site]
		if s.Leaf[site] != 0 && !st.Kernel {
			continue
		}
		ids, _ := s.leafElements(ix, site)
		for _, id := range ids {
			if !s.onStack(ix, st.Node, id) {
				rows[id].InclusiveWeight = columns.SatAdd(rows[id].InclusiveWeight, s.Weight[site])
			}
		}
	}
}

// onStack reports whether a frame of a stack has an element.
func (s *Selection) onStack(ix *levelIndex, node uint32, id ElementID) bool {
	p := s.Profile
	for n := node; n != 0 && p.Nodes.Kind[n] != eventlog.FrameContext; n = p.Nodes.Parent[n] {
		if !columns.Structural(p.Nodes.Kind[n]) && slices.Contains(ix.of(p.Nodes.Place[n]), id) {
			return true
		}
	}
	return false
}

// subtrees returns for each node the weight of the samples at and above it.
func (s *Selection) subtrees(order *columns.Order) []uint64 {
	p := s.Profile
	below := make([]uint64, len(p.Nodes.Parent))
	for site, n := range s.Count {
		if n > 0 {
			node := p.Sites[site].Node
			below[node] = columns.SatAdd(below[node], s.Weight[site])
		}
	}
	for n := len(below) - 1; n > 0; n-- {
		if up := p.Nodes.Caller(uint32(n)); up != 0 {
			below[up] = columns.SatAdd(below[up], below[n])
		}
	}
	return below
}

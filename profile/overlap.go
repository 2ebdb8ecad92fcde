package profile

import (
	"cmp"
	"slices"

	"ccagent/profile/columns"
)

// Overlap is the weight that an element shares with another.
type Overlap struct {
	Element *Element
	Weight  uint64  // of the samples that have both at their leaf
	Share   float64 // of the selection's total
	Samples uint64
	// Sites are where these samples are, in ascending order.
	Sites []columns.SiteID
}

// Overlaps returns the overlap of an element with every element of level other, largest
// first.
func (s *Selection) Overlaps(level Level, e ElementID, other Level) []Overlap {
	ix, ox := s.index(level), s.index(other)
	acc := make(map[ElementID]*Overlap)
	for site, n := range s.Count {
		if n == 0 {
			continue
		}
		if ids, _ := s.leafElements(ix, site); !slices.Contains(ids, e) {
			continue
		}
		ids, _ := s.leafElements(ox, site)
		for _, f := range ids {
			if level == other && f == e {
				continue
			}
			o := acc[f]
			if o == nil {
				o = &Overlap{Element: &ox.elements[f]}
				acc[f] = o
			}
			o.Weight = columns.SatAdd(o.Weight, s.Weight[site])
			o.Samples += n
			o.Sites = append(o.Sites, columns.SiteID(site))
		}
	}
	out := make([]Overlap, 0, len(acc))
	for _, o := range acc {
		o.Share = s.Fraction(o.Weight)
		out = append(out, *o)
	}
	slices.SortFunc(out, func(a, b Overlap) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Element.Name, b.Element.Name),
			cmp.Compare(a.Element.ID, b.Element.ID))
	})
	return out
}

// Overlap returns the weight of the samples that have both elements at their leaf.
func (s *Selection) Overlap(level Level, e, f ElementID) uint64 {
	ix := s.index(level)
	var w uint64
	for site, n := range s.Count {
		if n == 0 {
			continue
		}
		if ids, _ := s.leafElements(ix, site); slices.Contains(ids, e) && slices.Contains(ids, f) {
			w = columns.SatAdd(w, s.Weight[site])
		}
	}
	return w
}

// Group is a coarse element with the finer ones in it.
type Group struct {
	Row
	Members []Row // ordered by share
}

// Groups returns the rows of a coarse level, each with the rows of a finer level that lie
// in it. A group counts distinct samples, so it is not the sum of its members. Categories
// have no members.
func (s *Selection) Groups(coarse, fine Level) []Group {
	outer, inner := s.Hot(coarse), s.Hot(fine)
	key := func(e *Element) string {
		switch {
		case e.Kind == KindCategory || e.Kind == KindNoFile:
			return ""
		case coarse == LevelFile:
			return e.File
		case coarse == LevelModule:
			return e.Package + "\x00" + e.Module
		case coarse == LevelPackage:
			return e.Package
		default:
			return ""
		}
	}
	members := make(map[string][]Row)
	for _, r := range inner.Rows {
		if k := key(r.Element); k != "" {
			members[k] = append(members[k], r)
		}
	}
	groups := make([]Group, len(outer.Rows))
	for i, r := range outer.Rows {
		groups[i].Row = r
		if k := key(r.Element); k != "" {
			groups[i].Members = members[k]
		}
	}
	return groups
}

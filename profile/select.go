package profile

import (
	"slices"
	"sync"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Selection is the part of a Profile that a Filter keeps.
type Selection struct {
	Profile *Profile
	Filter  Filter
	Event   int // position in Profile.Events; −1 if the log has no events

	Samples uint64 // number of samples kept
	Total   uint64 // their weight

	// The following slices are by site. Other selections share them: they must not be
	// changed.
	Count  []uint64 // number of samples kept
	Weight []uint64 // their weight
	Leaf   []uint32 // the node that the cost is attributed to; 0 if none

	pred  samplePredicate
	cells *batchCells // nil without an event, and for a log of totals
	hide  func(item) bool
	gone  []bool    // by place: merged into its caller; nil if no place is
	group *grouping // nil if nothing is collapsed

	grouped struct {
		once   sync.Once
		frames *Frames
	}
	batched batchedOnce
	views   [levels]struct {
		once  sync.Once
		index *levelIndex
		hot   sync.Once
		rows  *Hot
	}
}

// Select applies a filter. It looks at each sample at most once, and at none if the
// filter chooses only stacks. The cost of queries on the selection depends on the number
// of distinct stacks.
func (p *Profile) Select(f Filter) *Selection {
	s := &Selection{Profile: p, Filter: f, Event: f.Event - 1}
	if s.Event < 0 || s.Event >= len(p.Events) {
		s.Event = p.DefaultEvent()
	}
	s.Leaf = make([]uint32, len(p.Sites))
	if s.Event < 0 {
		s.Weight, s.Count = make([]uint64, len(p.Sites)), make([]uint64, len(p.Sites))
		return s
	}
	s.pred = p.predicate(&f, s.Event)
	var sums *siteSums
	if s.pred.ofStacks() {
		sums = p.sums(s.Event)
	} else {
		sums = p.sum(&s.pred)
	}
	sums = sums.sift(s.pred.sites)
	s.Weight, s.Count, s.Total, s.Samples, s.cells = sums.weight, sums.count, sums.total, sums.samples, sums.cells
	if len(f.Hide) > 0 {
		ms := make([]*matcher, len(f.Hide))
		for i, re := range f.Hide {
			ms[i] = p.newMatcher(re)
		}
		s.hide = func(it item) bool {
			for _, m := range ms {
				if m.item(it) {
					return true
				}
			}
			return false
		}
	}
	s.group = newGrouping(f.Collapse)
	if len(f.Merge) > 0 {
		s.gone = s.mergedPlaces(f.Merge)
	}
	s.findLeaves()
	return s
}

// drops reports whether frames are removed from the selection's stacks.
func (s *Selection) drops() bool { return s.hide != nil || s.gone != nil }

// EventDef returns the selected event; the zero Event if there is none.
func (s *Selection) EventDef() *columns.Event {
	if s.Event < 0 {
		return &columns.Event{}
	}
	return &s.Profile.Events[s.Event]
}

// CountsBytes reports whether the selected event counts allocated memory.
func (s *Selection) CountsBytes() bool { return s.EventDef().Unit == "bytes" }

// CountsTime reports whether the selected event counts CPU time, or cycles.
func (s *Selection) CountsTime() bool {
	return s.EventDef().CPU()
}

// findLeaves finds for each site the node that its cost is attributed to.
func (s *Selection) findLeaves() {
	p := s.Profile
	visible := make([]int8, len(p.Places))
	bytes := s.CountsBytes()
	for i := range p.Sites {
		if s.Count[i] == 0 {
			continue
		}
		first, callers := uint32(0), bytes || p.leafOf(i) != 0
	walk:
		for n := p.Sites[i].Node; n != 0; n = p.Nodes.Parent[n] {
			k := p.Nodes.Kind[n]
			switch {
			case k == eventlog.FrameContext, k == eventlog.FrameSkipped:
				break walk
			case columns.Structural(k):
				continue
			}
			pl := p.Nodes.Place[n]
			if !s.Visible(pl, visible) {
				continue
			}
			if first == 0 {
				first = n
			}
			if !callers {
				break
			}
			if p.Locations[pl].Category == eventlog.CategoryHaskell || p.ownAllocation(pl) {
				first = n
				break
			}
		}
		s.Leaf[i] = first
	}
}

// Visible reports whether a place is still on the stacks, with at least one cause.
func (s *Selection) Visible(place uint32, known []int8) bool {
	if s.gone != nil && s.gone[place] {
		return false
	}
	if s.hide == nil {
		return true
	}
	if known[place] == 0 {
		known[place] = -1
		s.Profile.items(place, func(it item) {
			if !s.hide(it) {
				known[place] = 1
			}
		})
	}
	return known[place] == 1
}

// index returns a level's index without the hidden causes and with modules and packages
// collapsed. The element ids are those of the unfiltered index.
func (s *Selection) index(level Level) *levelIndex {
	if !s.drops() && s.group == nil {
		return s.Profile.index(level)
	}
	v := &s.views[level]
	v.once.Do(func() { v.index = s.Profile.index(level).seenBy(s) })
	return v.index
}

func (ix *levelIndex) seenBy(s *Selection) *levelIndex {
	p := s.Profile
	out := *ix
	out.group = s.group
	out.start, out.ids = make([]uint32, 1, len(ix.start)), nil
	out.near = slices.Clone(ix.near)
	out.elements = ix.elements[:len(ix.elements):len(ix.elements)]
	out.byKey = ix.keys()
	var scratch elementSet
	for id := range p.Places {
		scratch.reset()
		if s.gone == nil || !s.gone[id] {
			p.elementsOf(&out, uint32(id), s.hide, &scratch)
		}
		out.ids = append(out.ids, scratch.ids...)
		out.start = append(out.start, uint32(len(out.ids)))
	}
	out.byKey = nil
	return &out
}

// keys rebuilds the map from keys to elements of an index.
func (ix *levelIndex) keys() map[elementKey]ElementID {
	keys := make(map[elementKey]ElementID, len(ix.elements))
	for i := range ix.elements {
		keys[ix.elements[i].key] = ElementID(i)
	}
	return keys
}

// LeafPlace returns the place that the cost of a site's samples is attributed to; 0 if
// there is none.
func (s *Selection) LeafPlace(id columns.SiteID) columns.PlaceID {
	if n := s.Leaf[id]; n != 0 && !s.Profile.Sites[id].Kernel {
		return columns.PlaceID(s.Profile.Nodes.Place[n])
	}
	return 0
}

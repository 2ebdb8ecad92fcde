package profile

import (
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Called is an element at the leaf of samples with one of the nearest caller.
type Called struct{ Callee, Caller ElementID }

// Callers returns the weight of an element's share by its callers: the elements of the
// nearest frame below the leaf that has none of the leaf's. Samples whose leaf has no such
// frame are left out.
func (s *Selection) Callers(level Level) map[Called]uint64 {
	p, ix := s.Profile, s.index(level)
	out := make(map[Called]uint64)
	for site, n := range s.Count {
		if n == 0 || s.Leaf[site] == 0 {
			continue
		}
		leaf, _ := s.leafElements(ix, site)
		node := s.Leaf[site]
		if !p.Sites[site].Kernel {
			node = p.Nodes.Parent[node]
		}
		for ; node != 0 && p.Nodes.Kind[node] != eventlog.FrameContext; node = p.Nodes.Parent[node] {
			if columns.Structural(p.Nodes.Kind[node]) {
				continue
			}
			frame := ix.of(p.Nodes.Place[node])
			if len(frame) == 0 || slices.ContainsFunc(frame, func(id ElementID) bool { return slices.Contains(leaf, id) }) {
				continue
			}
			for _, callee := range leaf {
				for _, caller := range frame {
					k := Called{callee, caller}
					out[k] = columns.SatAdd(out[k], s.Weight[site])
				}
			}
			break
		}
	}
	return out
}

package closures

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	sure "ccagent/profile/interval"
)

// Counts are the values that stand for non-determinism in a functional-logic program as probes counted them where they are made.
type Counts struct {
	columns.SearchCounts
	// Exact is set if these are all that the program made in the selection; All if they are but for what processes that began during the capture made
	// before their probes were in place.
	Exact, All bool
	// ByType are the constructors, without a function; ByFunction says for whom they were made. Most are first.
	ByType, ByFunction []Made
}

// CountsOf returns what probes counted in a selection, whatever its event is; nil if the log has no such counts.
//
// Of a place that makes values all are counted, by caller where the place is in code that does nothing else, and each sample stands for those since
// the one before. So the number is exact of a function of the program that has the place itself, or whose frame is on top of the stack there; and of all
// functions where each value has a sample. What has another frame on top, such as an update frame, is divided by samples.
func CountsOf(s *profile.Selection) *Counts {
	p := s.Profile
	event := slices.IndexFunc(p.Events, func(e columns.Event) bool { return e.Granted == eventlog.SearchEvent })
	if event < 0 || p.Search.Windows == 0 || !p.IsCurry() {
		return nil
	}
	all := p.Select(profile.Filter{}.WithEvent(event))
	of := p.Select(s.Filter.WithEvent(event))
	out := &Counts{SearchCounts: p.Search}
	out.All = out.SearchCounts.All() && of.Total == all.Total && of.Total == out.Made
	out.Exact = out.All && !out.Late
	whole := map[string]float64{}
	makers := of.Makers()
	sites := make([][]columns.SiteID, len(makers))
	for i, m := range makers {
		sites[i] = m.Sites
		for _, site := range m.Sites {
			whole[m.Constructor] += float64(of.Weight[site])
		}
	}
	known := Sampled
	switch {
	case out.Exact:
		known = Exact
	case out.All:
		known = AtLeast
	}
	for constructor, n := range whole {
		out.ByType = append(out.ByType, Made{profile.Maker{Constructor: constructor}, n, n, n, n, known})
	}
	size, parts := of.Clusters(sites)
	certain := of.Certain(makers)
	for i, m := range makers {
		made := Made{Maker: m, Known: known}
		for _, site := range m.Sites {
			made.Count += float64(of.Weight[site])
		}
		made.Low, made.High, made.Effective = made.Count, made.Count, made.Count
		if out.Sampled < out.Made && !certain[i] {
			in := make([]float64, len(size)) // of each cluster, what is of the constructor
			for j := range makers {
				if makers[j].Constructor == m.Constructor {
					for k, w := range parts[j] {
						in[k] += w
					}
				}
			}
			share := sure.Clusters(parts[i], in, size, 1)
			n := whole[m.Constructor]
			made.Low, made.High, made.Effective, made.Known = min(made.Count, share.Low*n), max(made.Count, share.High*n), share.Effective, Sampled
		}
		out.ByFunction = append(out.ByFunction, made)
	}
	most := func(a, b Made) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Constructor, b.Constructor), cmp.Compare(a.Name, b.Name))
	}
	slices.SortFunc(out.ByType, most)
	slices.SortFunc(out.ByFunction, most)
	return out
}

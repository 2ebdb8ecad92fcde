package profile

import (
	"slices"

	"ccagent/profile/columns"
)

// apart is the part of the stretch that a sample stands for that must have passed since the one before, or it is of the same cluster.
const apart = 0.25

// Clusters cuts the selection's samples into clusters, in the order of time: samples that follow each other much faster than their
// weights say, as those in a window of a probe do. Such samples resemble each other. It returns the weights of the clusters, and
// what each has of the parts, which are disjoint sets of sites.
//
// A sample of weight w stands for a stretch of the run as long as w is of the whole. Where probes stay in place samples are as far apart as that;
// in windows each stands for much that happened outside of them. Samples of one site at one time are one sample,
// whose weight the log has in several pieces.
func (s *Selection) Clusters(parts [][]columns.SiteID) (weight []float64, of [][]float64) {
	const none = -1
	part := make([]int, len(s.Count))
	for i := range part {
		part[i] = none
	}
	for i, sites := range parts {
		for _, site := range sites {
			part[site] = i
		}
	}
	type sample struct {
		time   uint64
		site   uint32
		weight float64
	}
	var all []sample
	for _, c := range s.Profile.within(s.pred.rng) {
		for j := range c.N {
			if s.pred.keep(c, j) && s.Count[c.Site[j]] > 0 {
				all = append(all, sample{c.Time[j], c.Site[j], float64(c.Weight(j))})
			}
		}
	}
	of = make([][]float64, len(parts))
	if len(all) == 0 {
		return nil, of
	}
	slices.SortStableFunc(all, func(a, b sample) int {
		if a.time != b.time {
			if a.time < b.time {
				return -1
			}
			return 1
		}
		return int(a.site) - int(b.site)
	})
	whole, n := 0.0, 0
	for _, x := range all {
		whole += x.weight
		if n > 0 && all[n-1].time == x.time && all[n-1].site == x.site {
			all[n-1].weight += x.weight
			continue
		}
		all[n] = x
		n++
	}
	all = all[:n]
	span := float64(all[n-1].time - all[0].time)
	for i, x := range all {
		if i == 0 || float64(x.time-all[i-1].time)*whole > apart*x.weight*span {
			weight = append(weight, 0)
			for k := range of {
				of[k] = append(of[k], 0)
			}
		}
		at := len(weight) - 1
		weight[at] += x.weight
		if k := part[x.site]; k != none {
			of[k][at] += x.weight
		}
	}
	return weight, of
}

package profile

import "slices"

// Unseen returns for the buckets of a selection's event in which of them more may have run than samples
// show; nil if in none. Samples and weights are by bucket, and step is a bucket's length, ns. Samples weigh
// mean in the whole selection, and more where the rate was lowered. One that weighs more than a bucket stands
// for CPU time that was used somewhere between the sample before and itself; so do those of a bucket
// that weigh more than all of the machine's CPUs can have done in it. Events that do not count CPU time
// have none.
func (s *Selection) Unseen(samples, weight []uint64, step uint64) []bool {
	if s.Event < 0 || s.EventDef().Unit != "ns" || !s.CountsTime() || s.Samples == 0 {
		return nil
	}
	mean, cpus := s.Total/s.Samples, uint64(s.Profile.Capture.CPUs)
	out := make([]bool, len(samples))
	heavy, last := false, true // the next sample; whether there is none
	for i := len(samples) - 1; i >= 0; i-- {
		next := heavy
		if n := samples[i]; n > 0 {
			heavy = weight[i]/n > step || cpus > 0 && weight[i]/cpus > step
			if last && heavy { // so would the one be that has not come
				for j := i + 1; j < len(out); j++ {
					out[j] = true
				}
			}
			last = false
		}
		out[i] = mean > step || heavy || next
	}
	if !slices.Contains(out, true) {
		return nil
	}
	return out
}

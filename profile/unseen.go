package profile

import "slices"

// Unseen returns for the buckets of a selection's event in which of them more may have run than samples
// show; nil if in none. Samples and weights are by bucket, and step is a bucket's length, ns. Samples weigh
// mean in the whole selection, and more where the rate was lowered. One that weighs more than a bucket stands
// for CPU time that was used somewhere between the sample before and itself; so do those of a bucket
// that weigh more than all of the machine's CPUs can have done in it. Of allocation, of which no such bound is known,
// a bucket without a sample shows nothing where samples are worth fewer than emptyIsNone of equal weight a bucket: some
// stand for what was allocated long before, when there was no probe. Other events have none.
func (s *Selection) Unseen(samples, weight []uint64, step uint64) []bool {
	switch {
	case s.Event < 0 || s.Samples == 0:
		return nil
	case s.EventDef().Unit == "bytes":
		return s.unseenBytes(samples)
	case s.EventDef().Unit != "ns" || !s.CountsTime():
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

// emptyIsNone is how many samples a bucket must have on average for an empty one to mean that nothing happened: of 3 that
// are expected there is none in 5 % of buckets.
const emptyIsNone = 3

func (s *Selection) unseenBytes(samples []uint64) []bool {
	if s.Batched().Effective() >= emptyIsNone*float64(len(samples)) || !slices.Contains(samples, 0) {
		return nil
	}
	out := make([]bool, len(samples))
	for i, n := range samples {
		out[i] = n == 0
	}
	return out
}

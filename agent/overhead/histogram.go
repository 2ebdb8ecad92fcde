package overhead

import "math/bits"

// Histogram counts durations in ns in buckets of an eighth of a power of two.
type Histogram struct {
	counts [64 * 8]uint64
	total  uint64
	sum    uint64
}

func bucketOf(ns uint64) int {
	if ns < 8 {
		return int(ns)
	}
	exponent := bits.Len64(ns) - 4 // the top bit and three more are kept
	return exponent<<3 + int(ns>>exponent)
}

// bucketMiddle is the middle of a bucket's range.
func bucketMiddle(b int) uint64 {
	if b < 16 {
		return uint64(b)
	}
	exponent := b>>3 - 1
	low := uint64(b&7|8) << exponent
	return low + 1<<exponent/2
}

// Add counts a duration.
func (h *Histogram) Add(ns uint64) {
	h.counts[bucketOf(ns)]++
	h.total++
	h.sum += ns
}

// Quantile is the duration that a fraction q of all does not exceed, 0 when
// there are none.
func (h *Histogram) Quantile(q float64) uint64 {
	var seen uint64
	for b, n := range h.counts {
		seen += n
		if n > 0 && float64(seen) >= q*float64(h.total) {
			return bucketMiddle(b)
		}
	}
	return 0
}

// Mean is the mean with those above the quantile q counted as that, 0 when there are
// none.
func (h *Histogram) Mean(q float64) uint64 {
	if h.total == 0 {
		return 0
	}
	most := h.Quantile(q)
	var sum float64
	for b, n := range h.counts {
		if n > 0 {
			sum += float64(n) * float64(min(bucketMiddle(b), most))
		}
	}
	return uint64(sum / float64(h.total))
}

// Sum is the sum of all durations, ns.
func (h *Histogram) Sum() uint64 { return h.sum }

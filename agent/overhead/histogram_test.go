package overhead

import "testing"

func TestHistogramQuantiles(t *testing.T) {
	var h Histogram
	if got := h.Quantile(0.5); got != 0 {
		t.Errorf("median of nothing is %d, want 0", got)
	}
	for ns := uint64(1); ns <= 100_000; ns++ {
		h.Add(ns)
	}
	for _, q := range []float64{0.01, 0.5, 0.99, 1} {
		want := q * 100_000
		// A bucket is an eighth of its value wide.
		if got := float64(h.Quantile(q)); got < want*0.87 || got > want*1.13 {
			t.Errorf("quantile %v is %v, want within a bucket of %v", q, got, want)
		}
	}
}

func TestHistogramMean(t *testing.T) {
	var h Histogram
	if got := h.Mean(0.9); got != 0 {
		t.Errorf("mean of nothing is %d, want 0", got)
	}
	for range 99 {
		h.Add(1000)
	}
	h.Add(1e9)
	if got := h.Mean(0.99); got < 900 || got > 1100 {
		t.Errorf("mean without the rarest is %d, want about 1000", got)
	}
	if got := float64(h.Mean(1)); got < 0.9e7 || got > 1.1e7 {
		t.Errorf("mean of all is %.0f, want about 1e7", got)
	}
}

func TestHistogramBuckets(t *testing.T) {
	last := -1
	for _, ns := range []uint64{0, 1, 7, 8, 9, 15, 16, 17, 18, 1000, 1 << 20, 1<<63 - 1, 1<<64 - 1} {
		b := bucketOf(ns)
		if b < last || b >= len((&Histogram{}).counts) {
			t.Errorf("bucket of %d is %d after %d", ns, b, last)
		}
		last = b
		if m := bucketMiddle(b); bucketOf(m) != b {
			t.Errorf("middle %d of bucket %d is in bucket %d", m, b, bucketOf(m))
		}
	}
}

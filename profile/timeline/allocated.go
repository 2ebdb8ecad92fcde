package timeline

import (
	"math/bits"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// allocation fills in the bytes allocated over time. Where collections report them, they
// are exact, but of all code. Samples are used for parts of the code and for logs without
// collections; a rare sample stands for more than its own moment.
func (t *Timeline) allocation(s *profile.Selection, window profile.Window) {
	if ofAll(&s.Filter) && t.fromCollections(s.Profile) {
		return
	}
	if alloc := allocEvent(s.Profile); alloc >= 0 {
		t.Allocated = s.Over(alloc, window, nil).Weight
	}
}

// ofAll reports whether a filter keeps all code and threads; it may restrict the time.
func ofAll(f *profile.Filter) bool {
	return len(f.Focus)+len(f.Ignore)+len(f.Threads)+len(f.TIDs)+len(f.PIDs)+len(f.Caps)+len(f.CPUs)+len(f.Categories) == 0
}

// fromCollections uses what each capability reports at collections: the bytes allocated
// since its last report are spread over the time between. It returns false if the log has
// no reports.
func (t *Timeline) fromCollections(p *profile.Profile) bool {
	last := map[int]columns.HeapPoint{}
	points := 0
	buckets := make([]uint64, len(t.Weight))
	for _, h := range p.Heap {
		if h.Kind != columns.HeapAllocated {
			continue
		}
		before := last[h.Cap] // zero at the start of the log
		last[h.Cap] = h
		points++
		if h.Size < before.Size || h.Time < before.Time || before.Time == 0 && attached(p) {
			continue
		}
		t.deal(buckets, before.Time, h.Time, h.Size-before.Size)
	}
	if points == 0 {
		return false
	}
	t.Allocated = buckets
	return true
}

// deal spreads an amount evenly over a time range.
func (t *Timeline) deal(buckets []uint64, from, to, amount uint64) {
	length := max(to-from, 1)
	parts := make([]uint64, 0, 8)
	first := -1
	for at := max(from, t.From); at < min(to, t.To); {
		b := min(int((at-t.From)/t.Step), len(buckets)-1)
		end := min(to, t.To)
		if b < len(buckets)-1 {
			end = min(end, t.From+uint64(b+1)*t.Step)
		}
		if first < 0 {
			first = b
		}
		hi, lo := bits.Mul64(amount, end-at)
		part, _ := bits.Div64(hi, lo, length)
		parts = append(parts, part)
		at = end
	}
	for i, part := range parts {
		buckets[first+i] = columns.SatAdd(buckets[first+i], part)
	}
}

// attached reports whether the program ran before the log began.
func attached(p *profile.Profile) bool {
	return p.HaveCapture && p.Capture.Mode == eventlog.CaptureAttach
}

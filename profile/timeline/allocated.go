package timeline

import (
	"math/bits"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// allocation is what was allocated over time. Collections tell it exactly, of all code;
// samples stand for more than their moment where they were few, so they serve for parts
// of the code, and for logs without collections.
func (t *Timeline) allocation(s *profile.Selection, window profile.Window) {
	if ofAll(&s.Filter) && t.told(s.Profile) {
		return
	}
	if alloc := allocEvent(s.Profile); alloc >= 0 {
		t.Allocated = s.Over(alloc, window, nil).Weight
	}
}

// ofAll reports whether a filter keeps all code and threads, if not all of the time.
func ofAll(f *profile.Filter) bool {
	return len(f.Focus)+len(f.Ignore)+len(f.Threads)+len(f.TIDs)+len(f.PIDs)+len(f.Caps)+len(f.CPUs)+len(f.Categories) == 0
}

// told takes what collections tell of each capability: what it has allocated since the
// last, spread over the time between. False if none did.
func (t *Timeline) told(p *profile.Profile) bool {
	last := map[int]columns.HeapPoint{}
	points := 0
	buckets := make([]uint64, len(t.Weight))
	for _, h := range p.Heap {
		if h.Kind != columns.HeapAllocated {
			continue
		}
		before := last[h.Cap] // nothing at the log's begin
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

// deal spreads an amount evenly over a stretch of time.
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

package columns

// OpenTotals is like Open, but its Log has Totals instead of samples, for callers that
// only need figures of the whole log. It needs memory for the distinct stacks only.
func OpenTotals(path string, progress func(done, total int64)) (*Log, error) {
	return openFile(path, progress, newTotalsBuilder())
}

// Totals are an event's sums by site over the whole log.
type Totals struct {
	Weight, Count []uint64
	Total         uint64 // weight
	Samples       uint64
}

// siteSum is what an event's samples of a site weigh, and their number.
type siteSum struct{ weight, count uint64 }

// eventSums are sums by site for each event.
type eventSums [][]siteSum

func newTotalsBuilder() *builder {
	b := newBuilder()
	b.columns.sums, b.rts.sumsOnly = make(eventSums, maxEvents), true
	return b
}

func (t eventSums) add(event int, site uint32, weight uint64) {
	of := t[event]
	if int(site) >= len(of) {
		of = append(of, make([]siteSum, max(int(site)+1, 2*len(of))-len(of))...)
		t[event] = of
	}
	s := &of[site]
	s.weight = SatAdd(s.weight, weight)
	s.count++
}

// totals returns the sums of events, of a number of sites.
func (t eventSums) totals(events []Event, sites int) []Totals {
	out := make([]Totals, len(events))
	for i := range out {
		x := &out[i]
		x.Samples, x.Total = events[i].Samples, events[i].Weight
		x.Weight, x.Count = make([]uint64, sites), make([]uint64, sites)
		for j, s := range t[i][:min(len(t[i]), sites)] {
			x.Weight[j], x.Count[j] = s.weight, s.count
		}
	}
	return out
}

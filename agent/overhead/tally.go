package overhead

// Tally adds up what a number of hits has cost while what one costs is measured anew now and then: each
// is charged what one cost when it was counted.
type Tally struct {
	hits uint64
	ns   float64
}

// Count returns what all hits so far have cost, ns, those since the last call each ns. A number that
// falls takes back as many.
func (t *Tally) Count(hits uint64, each float64) uint64 {
	t.ns = max(t.ns+float64(int64(hits-t.hits))*each, 0)
	t.hits = hits
	return uint64(t.ns)
}

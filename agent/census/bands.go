package census

import "ccagent/internal/ghc"

// Bands sums what was counted as the run-time system does for +RTS -hT: constructors by their
// descriptions, all else by closure type. It counts neither what closures have left behind nor the
// headers of the profiling way, and takes a pinned block for one byte array. name gives a
// constructor's description by its info pointer.
func (c *Census) Bands(profiled bool, name func(pointer uint64) string) map[string]uint64 {
	bands := map[string]uint64{}
	for _, b := range c.Detailed(profiled, name) {
		bands[b.Name] = b.Bytes
	}
	return bands
}

// Band is what the closures of one kind have.
type Band struct {
	Name          string
	Bytes, Number uint64
}

// Detailed is like Bands, with the number of closures.
func (c *Census) Detailed(profiled bool, name func(pointer uint64) string) []Band {
	var bands []Band
	places := map[string]int{}
	add := func(label string, bytes, number uint64) {
		at, ok := places[label]
		if !ok {
			at = len(bands)
			places[label] = at
			bands = append(bands, Band{Name: label})
		}
		bands[at].Bytes += bytes
		bands[at].Number += number
	}
	var header uint64 // words that are not counted
	if profiled {
		header = ghc.ProfiledHeaderWords
	}
	for _, n := range c.Tally.Counts() {
		label := n.Info.Type.String()
		if n.Info.Type.In(ghc.Constr, ghc.ConstrNoCAF) {
			label = name(n.Pointer)
		}
		add(label, 8*(n.Words-min(n.Words, header*n.Number)), n.Number)
	}
	if c.Tally.Pinned > 0 {
		add(ghc.ArrWords.String(), 8*(c.Tally.PinnedWords-min(c.Tally.PinnedWords, header*c.Tally.Pinned)), c.Tally.Pinned)
	}
	return bands
}

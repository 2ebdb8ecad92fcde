package census

import "ccagent/internal/ghc"

// Bands sums what was counted as the run-time system does for +RTS -hT: constructors by their
// descriptions, all else by closure type. It counts neither what closures have left behind nor the
// headers of the profiling way, and takes a pinned block for one byte array. name gives a
// constructor's description by its info pointer.
func (c *Census) Bands(profiled bool, name func(pointer uint64) string) map[string]uint64 {
	bands := map[string]uint64{}
	var header uint64 // words that are not counted
	if profiled {
		header = ghc.ProfiledHeaderWords
	}
	for _, n := range c.Tally.Counts() {
		label := n.Info.Type.String()
		if n.Info.Type.In(ghc.Constr, ghc.ConstrNoCAF) {
			label = name(n.Pointer)
		}
		bands[label] += 8 * (n.Words - min(n.Words, header*n.Number))
	}
	if c.Tally.Pinned > 0 {
		bands[ghc.ArrWords.String()] += 8 * (c.Tally.PinnedWords - min(c.Tally.PinnedWords, header*c.Tally.Pinned))
	}
	return bands
}

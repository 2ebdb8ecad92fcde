package census

import (
	"ccagent/heap"
	"ccagent/internal/ghc"
)

// Band is what the closures of one kind have.
type Band struct {
	Name          string
	Bytes, Number uint64
	// Margin is the distance in bytes to either end of the 95 % confidence interval, of a census that has
	// counted a part of the heap.
	Margin uint64
}

// Detailed sums what was counted as the run-time system does for +RTS -hT: constructors by their
// descriptions, all else by closure type. It counts neither what closures have left behind nor the
// headers of the profiling way, and takes a pinned block for one byte array. name gives a
// constructor's description by its info pointer.
func (c *Census) Detailed(profiled bool, name func(pointer uint64) string) []Band {
	var bands []Band
	places := map[string]int{}
	l := labels{profiled: profiled, name: name}
	l.each(c.Tally, func(label string, bytes, number uint64) {
		at, ok := places[label]
		if !ok {
			at = len(bands)
			places[label] = at
			bands = append(bands, Band{Name: label})
			if c.Draw != nil {
				bands[at].Margin = c.Draw.Margins[label]
			}
		}
		bands[at].Bytes += bytes
		bands[at].Number += number
	})
	return bands
}

// labels names the bands of what was counted.
type labels struct {
	profiled bool
	name     func(pointer uint64) string
	known    map[uint64]string // names of constructors; nil if they are not kept
}

func (l *labels) of(pointer uint64) string {
	name, ok := l.known[pointer]
	if !ok {
		name = l.name(pointer)
		if l.known != nil {
			l.known[pointer] = name
		}
	}
	return name
}

// each visits the bands of a tally, one more often than once.
func (l *labels) each(t *heap.Tally, add func(label string, bytes, number uint64)) {
	var header uint64 // words that are not counted
	if l.profiled {
		header = ghc.ProfiledHeaderWords
	}
	for _, n := range t.Counts() {
		label := n.Info.Type.String()
		if n.Info.Type.In(ghc.Constr, ghc.ConstrNoCAF) {
			label = l.of(n.Pointer)
		}
		add(label, 8*(n.Words-min(n.Words, header*n.Number)), n.Number)
	}
	if t.Pinned > 0 {
		add(ghc.ArrWords.String(), 8*(t.PinnedWords-min(t.PinnedWords, header*t.Pinned)), t.Pinned)
	}
}

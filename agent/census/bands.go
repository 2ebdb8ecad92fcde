package census

import (
	"ccagent/eventlog"
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
	l.each(c.Tally, func(label string, _, bytes, number uint64) {
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

// How is what a log says of how the census was taken, and of bands in the order of their samples how many closures they have.
func (c *Census) How(pid uint32, bands []Band) *eventlog.HeapCensus {
	h := &eventlog.HeapCensus{
		PID: pid, Collection: c.Descriptors.Oldest().Collections, PauseNs: uint64(c.Pause), TookNs: uint64(c.Took), Beside: c.Manner == Beside, Pinned: 8 * c.Tally.PinnedWords,
		Closures: c.Tally.Pinned, AtRest: c.AtRest,
	}
	for _, n := range c.Tally.Counts() {
		h.Closures += n.Number
		h.Slop += 8 * n.Slop
	}
	for i := range bands {
		h.Counts = append(h.Counts, bands[i].Number)
	}
	return h
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

// each visits the bands of a tally, one more often than once: by info pointer, which is 0 for pinned blocks.
func (l *labels) each(t *heap.Tally, add func(label string, pointer, bytes, number uint64)) {
	for _, n := range t.Counts() {
		label := n.Info.Type.String()
		if n.Info.Type.In(ghc.Constr, ghc.ConstrNoCAF) {
			label = l.of(n.Pointer)
		}
		add(label, n.Pointer, counted(n.Words, n.Number, l.profiled), n.Number)
	}
	if t.Pinned > 0 {
		add(ghc.ArrWords.String(), 0, counted(t.PinnedWords, t.Pinned, l.profiled), t.Pinned)
	}
}

// counted is how many bytes closures count for that have so many words: headers of the profiling way do not.
func counted(words, number uint64, profiled bool) uint64 {
	header := uint64(0)
	if profiled {
		header = ghc.ProfiledHeaderWords
	}
	return 8 * (words - min(words, header*number))
}

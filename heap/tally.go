package heap

import (
	"maps"
	"slices"

	"ccagent/internal/ghc"
)

// Count is what the closures of one info table have in the heap.
type Count struct {
	Pointer uint64 // to the info table
	Info    Info
	Number  uint64
	Words   uint64 // their sizes, with the headers of the profiling way
	Slop    uint64 // words behind them that belong to no closure
}

// Tally counts the closures of a heap by info table, group of blocks by group.
type Tally struct {
	// Pinned counts groups of blocks with byte arrays that are not moved, PinnedWords the words of
	// the whole blocks: one array that is alive holds them all. PinnedFirst counts the words of the
	// first array of each, and PinnedHeads the groups that have one.
	Pinned, PinnedWords, PinnedFirst, PinnedHeads uint64
	// Unread counts words that could not be read as closures.
	Unread uint64
	// Large has the type of the closure of each group with a large object, by the group's start, and
	// Threads what each TSO says of its stack, if they are not nil.
	Large   map[uint64]ghc.ClosureType
	Threads []ThreadStack

	layout Layout
	tables Tables
	by     map[uint64]*Count
	last   *Count // that was counted: closures that follow each other resemble each other
}

// ThreadStack is what a TSO says of its thread's stack.
type ThreadStack struct {
	ID    uint64 // of the thread
	Words uint64 // of all chunks
}

// maxThreads bounds the threads whose stacks are kept.
const maxThreads = 1 << 20

// NewTally makes a tally of nothing.
func NewTally(layout Layout, tables Tables) *Tally {
	return &Tally{layout: layout, tables: tables, by: map[uint64]*Count{}}
}

// maxCounts bounds the info tables that are counted one by one. A program has a few thousand; what
// is beyond is unread.
const maxCounts = 1 << 18

func (t *Tally) of(pointer uint64, info Info) *Count {
	if t.last != nil && t.last.Pointer == pointer {
		return t.last
	}
	c := t.by[pointer]
	if c == nil {
		if len(t.by) >= maxCounts {
			return nil
		}
		c = &Count{Pointer: pointer, Info: info}
		t.by[pointer] = c
	}
	t.last = c
	return c
}

// Add counts the closures of a group of small objects, whose words in use are given.
func (t *Tally) Add(words []uint64) { t.add(words, true) }

func (t *Tally) add(words []uint64, slop bool) {
	t.Unread += uint64(t.layout.Walk(words, t.tables, func(c Closure) {
		if c.Info.Type == ghc.TSO && t.Threads != nil && len(t.Threads) < maxThreads {
			t.Threads = append(t.Threads, t.layout.threadStack(words[c.At:][:c.Words]))
		}
		if n := t.of(c.Pointer, c.Info); n != nil {
			n.Number++
			n.Words += uint64(c.Words)
			if slop {
				n.Slop += uint64(c.Slop)
			}
		} else {
			t.Unread += uint64(c.Words + c.Slop)
		}
	}))
}

// HeadWords is how many words AddLarge, AddPinned and AddCompact need of a group's beginning.
const HeadWords = 16

// AddLarge counts the one closure of a group with a large object, of which the first words are
// given.
func (t *Tally) AddLarge(g Group, head []uint64) {
	used := g.Used() / 8
	if len(head) == 0 {
		t.Unread += used
		return
	}
	info, ok := t.tables(head[0])
	size := 0
	if ok {
		size, ok = t.layout.Size(info, head)
	}
	if !ok || size <= 0 || uint64(size) > used {
		t.Unread += used
		return
	}
	n := t.of(head[0], info)
	if n == nil {
		t.Unread += used
		return
	}
	n.Number++
	n.Words += uint64(size)
	n.Slop += used - uint64(size)
	if t.Large != nil {
		t.Large[g.Start] = info.Type
	}
}

// AddPinned counts a group of blocks with byte arrays that are not moved, of which the first words
// are given.
func (t *Tally) AddPinned(g Group, head []uint64) {
	t.Pinned++
	t.PinnedWords += uint64(g.Blocks) * ghc.BlockBytes / 8
	for len(head) > 0 && head[0] == 0 { // the first array may be aligned
		head = head[1:]
	}
	if len(head) == 0 {
		return
	}
	info, ok := t.tables(head[0])
	if size, sized := t.layout.Size(info, head); ok && sized && info.Type == ghc.ArrWords && uint64(size) <= g.Used()/8 {
		t.PinnedFirst += uint64(size)
		t.PinnedHeads++
	}
}

// AddCompact counts a compact region, if the group is its first, of which the first words are
// given.
func (t *Tally) AddCompact(g Group, head []uint64) {
	const owner, region = ghc.CompactOwner / 8, ghc.CompactRegion / 8
	at := region + t.layout.Header // of the region's size in words, with all its blocks
	if len(head) <= at || head[owner] != g.Start+ghc.CompactRegion {
		return
	}
	info, ok := t.tables(head[region])
	words := head[at]
	if !ok || info.Type != ghc.Compact || words > maxWords {
		t.Unread += g.Used() / 8
		return
	}
	if n := t.of(head[region], info); n != nil {
		n.Number++
		n.Words += words
	}
}

// AddTimes adds what another tally has counted, each figure so many times.
func (t *Tally) AddTimes(o *Tally, times float64) {
	by := func(n uint64) uint64 { return uint64(float64(n)*times + 0.5) }
	t.Pinned += by(o.Pinned)
	t.PinnedWords += by(o.PinnedWords)
	t.PinnedFirst += by(o.PinnedFirst)
	t.PinnedHeads += by(o.PinnedHeads)
	t.Unread += by(o.Unread)
	for pointer, c := range o.by {
		n := t.of(pointer, c.Info)
		if n == nil {
			t.Unread += by(c.Words + c.Slop)
			continue
		}
		n.Number += by(c.Number)
		n.Words += by(c.Words)
		n.Slop += by(c.Slop)
	}
	if t.Large != nil {
		maps.Copy(t.Large, o.Large)
	}
	if t.Threads != nil {
		t.Threads = append(t.Threads, o.Threads[:min(len(o.Threads), maxThreads-min(len(t.Threads), maxThreads))]...)
	}
}

// Counts returns what was counted, the largest first.
func (t *Tally) Counts() []Count {
	all := make([]Count, 0, len(t.by))
	for _, c := range t.by {
		all = append(all, *c)
	}
	slices.SortFunc(all, func(a, b Count) int {
		switch {
		case a.Words > b.Words, a.Words == b.Words && a.Pointer < b.Pointer:
			return -1
		}
		return 1
	})
	return all
}

package census

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"ccagent/heap"
	"ccagent/internal/ghc"
	"ccagent/perf"
)

// drawing is a heap whose megablocks are read in random order: however many there was time for are a
// random sample of all.
type drawing struct {
	d     *Descriptors // its lists of groups are those of what was read so far
	units []unit       // in random order, as many as may be read
	all   int          // megablocks that are divided into groups
	// whole are groups that take whole megablocks: a look at one descriptor shows them all.
	whole []heap.Group
	read  int // units whose descriptors were read, the first so many
	known int // groups in use that were read of them
	stood int // those of them that were read while the program stood
	buf   []byte
	pool  []heap.Group // what was read of units, one behind the other, as long as there is room
}

// unit is a megablock that is divided into groups.
type unit struct {
	at     uint64
	groups []heap.Group // in use
}

// leastDrawn is how many megablocks are read while the program stands beyond the part of the pause that is for descriptors:
// of fewer, bands would say little. It is about a millisecond; where it is more, as on a machine that is slow at that moment, standPart of the
// pause ends it, but for leastCounted.
const leastDrawn = 64

// headsAtOnce is how many megablocks' first descriptors are read at once.
const headsAtOnce = 512

// heads finds the megablocks that are divided into groups, by the first descriptor of each: of those
// that a group takes whole but the first has descriptors, and a free one is not looked at.
func (r *Reader) heads(w *drawing, until uint64) error {
	var addresses [headsAtOnce]uint64
	text := make([]byte, headsAtOnce*heap.HeadBytes)
	d := w.d
	for _, s := range d.stretches() {
		for at := s.Start; at < s.End; {
			if until != 0 && perf.Monotonic() > until {
				return ErrPause
			}
			n := min(headsAtOnce, int((s.End-at)/ghc.MegablockBytes))
			if d.Megablocks+uint64(n) > maxMegablocks {
				return r.tooLarge()
			}
			for i := range n {
				addresses[i] = at + uint64(i)*ghc.MegablockBytes + heap.HeadOffset
			}
			if err := r.Memory.Scattered(addresses[:n], text[:n*heap.HeadBytes]); err != nil {
				return fmt.Errorf("read the descriptors of the heap's blocks: %w", err)
			}
			for end := at + uint64(n)*ghc.MegablockBytes; at < end; {
				i := n - int((end-at)/ghc.MegablockBytes)
				g, whole := heap.Head(at, text[i*heap.HeadBytes:][:heap.HeadBytes], (s.End-at)/ghc.MegablockBytes)
				switch {
				case whole == 0:
					w.units = append(w.units, unit{at: at})
				case g.IsFree():
					d.Free = append(d.Free, g)
					d.Unallocated += uint64(g.Blocks)
				default:
					d.Nonmoving = d.Nonmoving || g.Has(ghc.BlockNonmoving)
					w.whole = append(w.whole, g)
				}
				d.Megablocks += max(whole, 1)
				at += max(whole, 1) * ghc.MegablockBytes
			}
		}
	}
	if d.Megablocks == 0 {
		return ErrNoHeap
	}
	return nil
}

// times are moments of a pause, CLOCK_MONOTONIC in ns.
type times struct {
	descriptors uint64 // until then descriptors are read
	stand       uint64 // from then on nothing is begun that can be done later
	end         uint64 // the pause that is allowed is over
	giveUp      uint64 // if megablocks are not found by then, there is no census; 0 is never
}

// draw reads descriptors of megablocks in random order for as long as there is time. The program stands. What is read
// goes into pool, which is empty, as long as that has room: to find memory takes long at times.
func (r *Reader) draw(t times, pool []heap.Group) (*drawing, error) {
	d, err := r.extent()
	if err != nil {
		return nil, err
	}
	w := &drawing{d: d, buf: make([]byte, heap.DescriptorBytes), pool: pool}
	if err := r.heads(w, t.giveUp); err != nil {
		return nil, err
	}
	w.all = len(w.units)
	rand.Shuffle(len(w.units), func(i, k int) { w.units[i], w.units[k] = w.units[k], w.units[i] })
	// Of segments a part says nothing of the others, since no generation says how many words they have. They
	// stay where they are, but may be given up.
	inTime := func() bool {
		now := perf.Monotonic()
		return now < t.descriptors || w.read < leastDrawn && now < t.stand
	}
	for w.read < len(w.units) && !w.full() && (w.read < leastCounted || d.Nonmoving || inTime()) {
		if d.Nonmoving && !r.nonmoving {
			return nil, ErrNonmoving
		}
		if err := r.next(w); err != nil {
			return nil, err
		}
	}
	w.stood = w.read
	if d.Filling, err = r.filling(); err != nil {
		return nil, fmt.Errorf("read the run-time system's capabilities: %w", err)
	}
	switch {
	case d.Nonmoving && !r.nonmoving:
		return nil, ErrNonmoving
	case d.Nonmoving && !w.complete():
		return nil, r.tooLarge()
	}
	return w, nil
}

// next reads the descriptors of the next megablock.
func (r *Reader) next(w *drawing) error {
	u := &w.units[w.read]
	if _, err := r.Memory.ReadAt(w.buf, int64(u.at)); err != nil {
		return fmt.Errorf("read the descriptors of the heap's blocks: %w", err)
	}
	if room := w.pool[len(w.pool):]; cap(room) >= groupsInMegablock {
		u.groups = room[:0:groupsInMegablock]
	}
	w.d.describe(u.at, w.buf, 1, func(g heap.Group) { u.groups = append(u.groups, g) })
	if n := len(w.pool); cap(w.pool)-n >= groupsInMegablock {
		w.pool = w.pool[:n+len(u.groups)]
		u.groups = w.pool[n : n+len(u.groups) : n+len(u.groups)]
	}
	w.known += len(u.groups)
	w.read++
	return nil
}

// full reports whether as many groups are known as are kept of a heap: no more megablocks are read.
func (w *drawing) full() bool { return w.known+len(w.d.Free) >= maxGroups }

// complete reports whether all descriptors were read.
func (w *drawing) complete() bool { return w.read == w.all }

// groupsInMegablock is the largest number of groups of blocks in a megablock: each has a block at least.
const groupsInMegablock = ghc.MegablockBytes / ghc.BlockBytes

// gather gives the descriptors all that was read, in no order, and takes it from the drawing.
func (w *drawing) gather() {
	pooled := 0
	for i := range w.units[:w.read] {
		pooled += len(w.units[i].groups)
	}
	if pooled != len(w.pool) { // there was no room for some
		w.assemble()
		return
	}
	w.d.Groups = append(w.pool, w.whole...)
	w.units, w.pool = nil, nil
}

// assemble gives the descriptors all that was read, by address.
func (w *drawing) assemble() {
	d := w.d
	d.Groups = slices.Clone(w.whole)
	for i := range w.units[:w.read] {
		d.Groups = append(d.Groups, w.units[i].groups...)
	}
	d.sort()
}

// sort has the groups by address.
func (d *Descriptors) sort() {
	for _, all := range [][]heap.Group{d.Groups, d.Free} {
		slices.SortFunc(all, func(x, y heap.Group) int { return cmp.Compare(x.Start, y.Start) })
	}
}

// recentMegablocks is of how many megablocks descriptors are kept while lists of blocks are followed: a nursery's blocks are linked
// megablock by megablock, in pieces where the heap is fragmented.
const recentMegablocks = 8

// recent has the descriptors of the megablocks that were read last.
type recent struct {
	at    [recentMegablocks]uint64
	text  [recentMegablocks][]byte
	reads int
}

// of gives the descriptors of a megablock.
func (k *recent) of(r *Reader, at uint64) ([]byte, error) {
	if i := slices.Index(k.at[:], at); i >= 0 && k.text[i] != nil {
		return k.text[i], nil
	}
	i := k.reads % recentMegablocks // the one that was read first
	if k.text[i] == nil {
		k.text[i] = make([]byte, heap.DescriptorBytes)
	}
	k.at[i] = 0
	if _, err := r.Memory.ReadAt(k.text[i], int64(at)); err != nil {
		return nil, err
	}
	k.at[i] = at
	k.reads++
	return k.text[i], nil
}

// group finds a group in use within a megablock by its start, as it is now, or was when it was read for another of late; nil if there is none.
func (r *Reader) group(known *recent, start uint64) (*heap.Group, error) {
	text, err := known.of(r, start&^(ghc.MegablockBytes-1))
	if err != nil {
		return nil, err
	}
	if g, ok := heap.GroupAt(start, text); ok {
		return &g, nil
	}
	return nil, nil
}

// young finds the groups of all generations but the oldest by their lists, while the program stands at the end of a collection, but for those that take
// whole megablocks, and the few blocks that threads of the collector have begun. It reports whether it has them all: there may be too many, or no time.
func (r *Reader) young(d *Descriptors, until uint64) (all []heap.Group, ok bool) {
	var known recent
	steps := 0
	for i := range d.Generations[:len(d.Generations)-1] {
		for _, at := range d.Generations[i].Lists {
			for at != 0 {
				start := heap.DescribedBy(at)
				if steps++; steps > maxRoom || start < d.Space[0] || start >= d.Space[1] || perf.Monotonic() > until {
					return nil, false
				}
				text, err := known.of(r, start&^(ghc.MegablockBytes-1))
				if err != nil {
					return nil, false
				}
				if g, ok := heap.GroupAt(start, text); ok && g.Generation == d.Generations[i].Address && g.Blocks < ghc.BlocksPerMegablock {
					all = append(all, g)
				}
				at = heap.LinkOf(at, text)
			}
		}
	}
	return all, true
}

// extendPiece is after how many megablocks it is asked again whether the program has collected its heap.
const extendPiece = 64

// extend reads descriptors of further megablocks while the program runs, until its oldest generation is collected. What has come to that
// meanwhile is left out.
func (r *Reader) extend(w *drawing) error {
	from := w.read
	for w.read < len(w.units) && !w.full() {
		piece := w.read
		var failed error
		for failed == nil && w.read < min(piece+extendPiece, len(w.units)) {
			failed = r.next(w) // after a collection the megablock may be gone
		}
		err := r.collected(w.d.Generations, len(w.d.Generations)-1)
		if err == nil {
			err = failed
		}
		if err != nil {
			w.drop(piece)
			if err != ErrCollected {
				return err
			}
			break
		}
	}
	if w.read == from {
		return nil
	}
	came, err := r.came(w.d)
	switch {
	case errors.Is(err, ErrCollected), errors.Is(err, ErrContradiction):
		w.drop(from) // which groups are new is not known
		return nil
	case err != nil:
		return err
	}
	for i := range w.units[from:w.read] {
		u := &w.units[from+i]
		u.groups = slices.DeleteFunc(u.groups, func(g heap.Group) bool { return came[g.Start] })
	}
	return nil
}

// dropAllocated leaves out of units, from one on, that were read after the end of a collection, what the program has allocated since of large
// objects: the collection has evacuated what it has left.
func (w *drawing) dropAllocated(from int) {
	youngest := w.d.Generations[0].Address
	for i := from; i < w.read; i++ {
		u := &w.units[i]
		u.groups = slices.DeleteFunc(u.groups, func(g heap.Group) bool {
			return g.Generation == youngest && isLarge(&g) && !g.Has(ghc.BlockEvacuated)
		})
	}
}

// drop forgets what was read of units, from one on.
func (w *drawing) drop(from int) {
	for i := from; i < w.read; i++ {
		w.units[i].groups = nil
	}
	w.read = from
}

// youngLasts is for how long the end of a collection of younger generations is waited for, of which it is not known whether it is under way, and
// youngPause how long to wait until it is asked again.
const (
	youngLasts = 20 * time.Millisecond
	youngPause = time.Millisecond
)

// leastReads is how many megablocks of descriptors may be read to find what is new in the oldest generation, beyond four for each megablock of the heap:
// its lists may go to and fro between them.
const leastReads = 1000

// came finds the groups that have come to the oldest generation since its descriptor was read, by their starts: its lists have them before what
// they began with. What a collection of younger generations brings is in no list before that ends, so one that may be under way is waited for.
// ErrCollected is returned if the oldest generation is being collected, or was.
func (r *Reader) came(d *Descriptors) (map[uint64]bool, error) {
	last := len(d.Generations) - 1
	if d.Generations[0].Words > 0 && r.collected(d.Generations, 0) == nil {
		return nil, nil // a collection that had begun would have taken these words away
	}
	now, err := r.unmoved(d.Generations, last)
	if err != nil {
		return nil, err
	}
	for count, until := now[0].Collections, time.Now().Add(youngLasts); now[0].Collections == count && time.Now().Before(until); {
		time.Sleep(youngPause)
		if now, err = r.unmoved(d.Generations, last); err != nil {
			return nil, err
		}
	}
	came := map[uint64]bool{}
	var known recent
	most := leastReads + 4*int(d.Megablocks)
	for i, at := range now[last].Lists {
		for at != d.Generations[last].Lists[i] {
			start := heap.DescribedBy(at)
			if at == 0 || start < d.Space[0] || start >= d.Space[1] || came[start] || len(came) >= maxGroups || known.reads > most {
				return nil, fmt.Errorf("%w: what has come to the oldest generation is not before what it had", ErrContradiction)
			}
			text, err := known.of(r, start&^(ghc.MegablockBytes-1))
			if err != nil {
				return nil, err
			}
			came[start] = true
			at = heap.LinkOf(at, text)
		}
	}
	return came, r.collected(d.Generations, last)
}

// collected returns ErrCollected if a generation, from a number on, is being collected, or was since the generations were
// as they are given.
func (r *Reader) collected(before []Generation, from int) error {
	_, err := r.unmoved(before, from)
	return err
}

// unmoved reads the generations, of which those from a number on must not have been collected.
func (r *Reader) unmoved(before []Generation, from int) ([]Generation, error) {
	all, err := r.generations()
	if err != nil {
		return nil, err
	}
	if len(all) != len(before) {
		return nil, ErrCollected // their number never changes: this is another program, or no truth
	}
	for i := from; i < len(all); i++ {
		if all[i].moved(&before[i]) {
			return nil, ErrCollected
		}
	}
	return all, nil
}

// moved reports whether a generation has been collected, or is. A collection counts at its end. At its start it
// takes the words away from the generation, to which younger ones only add.
func (g *Generation) moved(before *Generation) bool {
	return g.Collections != before.Collections || g.Words < before.Words
}

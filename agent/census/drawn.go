package census

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"ccagent/heap"
	"ccagent/internal/ghc"
	"ccagent/perf"
)

// Parts of the pause that is allowed: for descriptors, of which half where closures are to be copied at once, and
// until nothing more is begun; and until what was begun in pieces of which it is known how long they take should have ended.
const (
	descriptorPart = 0.6
	standPart      = 0.85
	endPart        = 0.95
)

// counter counts the megablocks that were drawn, one after another. What younger generations have is counted of
// those that were read while the program stood, for it moves as soon as the program runs; what the oldest has, of all.
type counter struct {
	r          *Reader
	census     *Census
	o          Options
	c          *copier
	labels     labels
	whole      *heap.Tally
	young, old *stratum
	allYoung   bool     // younger generations were copied whole
	large      *stratum // of the oldest generation, large objects and pinned blocks
	regions    *stratum // compact regions of it
	ahead      int      // megablocks whose oldest generation was copied while the program stood
	pieces     []piece
}

// piece is a group that was copied, of a megablock: its place in the order of drawing.
type piece struct {
	kept
	unit int // −1 for what is counted whole
}

// look does what has to be done while the program stands, since a time: it reads the descriptors for which there
// is time, and copies what cannot wait.
func (c *copier) look(ctx context.Context, r *Reader, census *Census, o Options, since uint64, later bool) (_ bool, err error) {
	part := func(of float64) uint64 { return since + uint64(of*float64(o.MaxPause)) }
	t := times{descriptors: part(descriptorPart), stand: part(standPart), end: part(endPart)}
	if o.MaxPause == 0 {
		census.Descriptors, err = r.Descriptors()
	} else {
		if o.Hurry {
			t.descriptors = part(descriptorPart / 2)
		}
		if o.Strict {
			t.giveUp = part(1)
		}
		if c.drawing, err = r.draw(t, c.pool); err == nil {
			census.Descriptors = c.drawing.d
			if c.drawing.complete() && !o.Hurry {
				c.drawing.gather()
				c.drawing = nil
				if census.AtRest {
					census.Descriptors.sort()
				}
			}
		}
	}
	if err != nil {
		return later, err
	}
	d := census.Descriptors
	r.words(d)
	if census.AtRest {
		giveUp := uint64(0)
		if o.MaxPause > 0 {
			giveUp = part(standPart)
		}
		lists, err := r.currents()
		if err == nil {
			c.nursery, err = r.filled(ctx, d, lists, giveUp)
		}
		if errors.Is(err, ErrPause) { // they are followed when it runs on
			c.currents, err = lists, nil
			c.beside = true
		}
		if err != nil {
			return later, fmt.Errorf("read the nurseries: %w", err)
		}
		for start, g := range c.nursery {
			extend(g, census.Running)
			extend(d.Group(start), census.Running)
		}
	}
	if c.drawing != nil {
		c.beside = true
		return true, c.standDrawn(r, census, o, t)
	}
	if o.MaxPause > 0 { // the heap may have grown since room was made, and the machine be busy
		size, left := d.small(), float64(t.stand)-float64(perf.Monotonic())
		copying := float64(size) / r.rate() * 1e9
		c.beside = c.beside || len(c.arena) > 0 && (copying > left || size > uint64(len(c.arena)))
		later = later || copying+float64(d.Megablocks)*float64(residencePause) > left
		c.until = t.stand
	}
	if err := c.while(r, census); err != nil || !o.Residence || later {
		return later, err
	}
	if o.MaxPause > 0 && perf.Monotonic()+d.Megablocks*uint64(residencePause) > t.end {
		return true, nil
	}
	census.Residence, err = r.residence(d)
	return later, err
}

// standDrawn copies of megablocks that were drawn what a collection of younger generations may move, and if that
// is asked for, what there is time for of the rest.
func (c *copier) standDrawn(r *Reader, census *Census, o Options, t times) error {
	n := &counter{r: r, census: census, o: o, c: c, labels: labels{r.Profiled, r.Tables.Name, map[uint64]string{}}, whole: newTally(r, o), young: newStratum(r, o), old: newStratum(r, o), large: newStratum(r, o), regions: newStratum(r, o)}
	n.pieces = c.pieces
	c.counter = n
	w := c.drawing
	oldest := w.d.Oldest()
	n.old.known, n.large.known = float64(oldest.Words), float64(oldest.LargeWords)
	for i := range w.whole {
		g := &w.whole[i]
		if c.keep != nil || !c.takes(w.d, g) {
			continue
		}
		if err := n.take(g, -1); err != nil {
			return err
		}
		if g.Generation == oldest.Address && isLarge(g) {
			n.large.known -= float64(g.Used() / 8)
		}
	}
	begun := c.used
	inTime := func() bool { return c.used-begun < maxYoung && perf.Monotonic() < t.stand }
	for _, g := range c.nursery {
		if !inTime() {
			break
		}
		if err := n.take(g, -1); err != nil {
			return err
		}
		g.Free = g.Start // it was taken
	}
	if c.keep == nil && !census.AtRest && w.all >= leastByLists {
		var err error
		if n.allYoung, err = n.takeYoung(t); err != nil {
			return err
		}
	}
	for i := range w.units[:w.stood] {
		if n.allYoung {
			break
		}
		if (i >= leastCounted || c.keep != nil) && !inTime() { // what is kept may be copied later, too
			w.stood = i // of others, younger generations are not known
			break
		}
		if err := n.unit(i, false); err != nil {
			return err
		}
	}
	if c.keep != nil {
		if err := c.dataInTime(r, t.stand); err != nil {
			return err
		}
		return r.stable(c.keep)
	}
	now, longest := perf.Monotonic(), uint64(0) // that a megablock has taken
	for o.Hurry && n.ahead < w.stood && (n.ahead < leastCounted || now+longest < t.end) {
		if err := n.unit(n.ahead, true); err != nil {
			return err
		}
		before := now
		now = perf.Monotonic()
		longest = max(longest, now-before)
		n.ahead++
	}
	return nil
}

// leastByLists is from how many megablocks on younger generations are found by their lists: these lack the blocks that threads of the collector have
// begun, which is nothing beside so large a heap.
const leastByLists = 256

// takeYoung copies what younger generations have, by their lists, and reports whether it did: not where that takes too long, or is too much. They are
// a small part of the heap, of which a sample of megablocks would say little.
func (n *counter) takeYoung(t times) (bool, error) {
	w := n.c.drawing
	all, ok := n.r.young(w.d, t.stand)
	if !ok {
		return false, nil
	}
	bytes := 0
	for i := range all {
		if n.c.takes(w.d, &all[i]) {
			bytes += n.c.bytes(n.r, &all[i])
		}
	}
	if bytes > maxYoung || float64(perf.Monotonic())+float64(bytes)/n.r.rate()*1e9 > float64(t.stand) {
		return false, nil
	}
	for i := range all {
		if g := &all[i]; n.c.takes(w.d, g) {
			if err := n.take(g, -1); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// leastCounted is how few megablocks may be counted.
const leastCounted = 8

// unit copies what a megablock has of the oldest generation, or of younger ones.
func (n *counter) unit(i int, oldest bool) error {
	w := n.c.drawing
	for k := range w.units[i].groups {
		g := &w.units[i].groups[k]
		if g.Generation == w.d.Oldest().Address == oldest && n.c.takesLive(w.d, g) {
			if err := n.take(g, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// take copies a group.
func (n *counter) take(g *heap.Group, unit int) error {
	c := n.c
	if c.keep != nil {
		return c.take(n.r, n.census, g, nil)
	}
	size := c.bytes(n.r, g)
	if size == 0 || size%8 != 0 {
		return nil
	}
	if len(c.arena)-c.used < size {
		return errFull
	}
	if _, err := n.r.Memory.ReadAt(c.arena[c.used:c.used+size], int64(g.Start)); err != nil {
		return err
	}
	n.pieces = append(n.pieces, piece{kept{*g, c.used, size}, unit})
	c.used += size
	return nil
}

// errFull is returned where there is no room for a copy until what was copied is counted.
var errFull = errors.New("there is no memory for a copy of a part of the heap")

// isLarge reports whether a generation counts a group with its large objects.
func isLarge(g *heap.Group) bool {
	return g.Flags&ghc.BlockLarge != 0 && g.Flags&ghc.BlockCompact == 0
}

// sample counts what was copied of megablocks that follow each other, for a stratum, and makes room. Of the oldest generation small
// objects and large ones are strata of their own: how many words they have is known.
func (n *counter) sample(s *stratum, pieces []piece, from, units int) {
	type part struct {
		tally *heap.Tally
		words uint64
	}
	type unit struct{ small, large, regions part }
	of := make([]unit, units)
	for i := range pieces {
		p := &pieces[i]
		t := n.whole
		if p.unit >= 0 {
			u := &of[p.unit-from]
			in := &u.small
			switch {
			case s == n.old && isLarge(&p.group):
				in = &u.large
			case s == n.old && !whole(&p.group):
				in = &u.regions
			}
			if in.tally == nil {
				in.tally = newTally(n.r, n.o)
			}
			in.words += p.group.Used() / 8
			t = in.tally
		}
		count(t, &p.group, wordsOf(n.c.arena[p.at:p.at+p.bytes]))
	}
	for i := range of {
		u := &of[i]
		s.add(u.small.tally, u.small.words, &n.labels)
		if s == n.old {
			n.large.add(u.large.tally, u.large.words, &n.labels)
			n.regions.add(u.regions.tally, u.regions.words, &n.labels)
		}
	}
	n.pieces, n.c.used = n.pieces[:0], 0
}

// finish reads on when the program runs, and estimates the whole heap by what was read.
func (n *counter) finish() error {
	c, r, w := n.c, n.r, n.c.drawing
	stood := w.read
	if err := r.extend(w); err != nil {
		return err
	}
	before := w.d.Generations
	if !n.census.AtRest {
		w.dropAllocated(stood)
	}
	if c.keep != nil {
		if w.full() && !w.complete() {
			return r.tooLarge()
		}
		if !w.complete() {
			return ErrCollected
		}
		if w.stood < w.all { // what younger generations have there must be what they had
			if err := r.collected(before, 0); err != nil {
				return err
			}
		}
		return n.keepAll()
	}
	n.standing()
	late := false
	for _, g := range c.nursery {
		err := n.take(g, -1)
		if err == errFull {
			n.sample(n.young, n.pieces, 0, 0)
			err = n.take(g, -1)
		}
		if err != nil {
			return err
		}
		late = late || g.Used() > 0
	}
	if late {
		if err := r.collected(before, 0); err != nil {
			return err
		}
	}
	n.sample(n.young, n.pieces, 0, 0)
	if n.allYoung {
		n.young.units = w.all
	} else if err := n.beside(n.young, w.stood, false, func() error { return r.collected(before, 0) }); err != nil {
		return err
	}
	if err := n.beside(n.old, n.ahead, true, func() error { return r.collected(before, len(before)-1) }); err != nil {
		return err
	}
	if n.old.units < min(leastCounted, w.all) {
		return ErrCollected
	}
	n.census.Tally, n.census.Draw = estimate(w.all, n.whole, r, n.o, &n.labels, n.young, n.large, n.regions, n.old)
	n.census.Draw.Stood = w.stood
	if min(n.old.units, n.young.units) == w.all {
		n.census.Draw = nil // nothing was left out
	}
	return n.check()
}

// beside copies of further megablocks, from one on, what they have of the oldest generation or of younger ones, and counts it
// as long as unmoved returns no ErrCollected.
func (n *counter) beside(s *stratum, from int, oldest bool, unmoved func() error) error {
	for w := n.c.drawing; from < w.read; {
		units := 0
		var err error
		for from+units < w.read && units < countPiece {
			if err = n.unit(from+units, oldest); err != nil {
				break
			}
			units++
		}
		switch {
		case err != nil && (err != errFull || units == 0):
			return err
		case err != nil: // the megablock that did not fit is copied again
			n.drop(from + units)
		}
		if err := unmoved(); errors.Is(err, ErrCollected) {
			n.pieces, n.c.used = n.pieces[:0], 0
			return nil
		} else if err != nil {
			return err
		}
		n.sample(s, n.pieces, from, units)
		from += units
	}
	return nil
}

// countPiece is how many megablocks are copied until it is asked again whether the program has collected its heap.
const countPiece = 64

// standing counts what was copied while the program stood.
func (n *counter) standing() {
	var young, old []piece
	for _, p := range n.pieces {
		if p.unit >= 0 && p.group.Generation == n.c.drawing.d.Oldest().Address {
			old = append(old, p)
		} else {
			young = append(young, p)
		}
	}
	units := n.c.drawing.stood
	if n.allYoung {
		units = 0
	}
	n.sample(n.young, young, 0, units)
	n.sample(n.old, old, 0, n.ahead)
}

// drop forgets what was copied of a megablock.
func (n *counter) drop(unit int) {
	for k := len(n.pieces); k > 0 && n.pieces[k-1].unit == unit; k-- {
		n.pieces = n.pieces[:k-1]
	}
}

// keepAll has what was not copied yet of the whole heap copied, of which all descriptors were read.
func (n *counter) keepAll() error {
	c, d := n.c, n.census.Descriptors
	c.drawing.assemble()
	copied := map[uint64]bool{}
	for i := range c.kept {
		copied[c.kept[i].group.Start] = true
	}
	for i := range d.Groups {
		g := &d.Groups[i]
		if was := c.nursery[g.Start]; was != nil {
			g = was // the program may have gone on to fill it
		}
		if c.takes(d, g) && !copied[g.Start] {
			c.left = append(c.left, *g)
		}
	}
	return c.after(n.r, n.census)
}

// check compares an estimate with what the oldest generation says of itself.
func (n *counter) check() error {
	w := n.c.drawing
	words, variance := n.old.words.estimate(n.old.units, w.all)
	said := float64(w.d.Oldest().Words)
	if off := math.Abs(words - said); off > 2*student(n.old.units-1)*math.Sqrt(variance)+said*max(drawnPart, 3/float64(n.old.units))+slackBlocks*ghc.BlockBytes/8 {
		return fmt.Errorf("%w: the oldest generation has %.0f words, and by %d of %d megablocks %.0f", ErrContradiction, said, n.old.units, w.all, words)
	}
	return nil
}

// drawnPart is the part of the oldest generation by which an estimate may be off beside its variance. Of few megablocks it is
// more: what is in none of n, like one that is almost empty, is up to 3/n of all, of which the variance says nothing.
const drawnPart = 0.05

// residenceLater sees what of the process is in memory, of a heap of which not all descriptors were read while
// it stood.
func (r *Reader) residenceLater(ctx context.Context, census *Census) (err error) {
	var d *Descriptors
	for range restTries {
		if d, err = r.anyDescriptors(); err == nil {
			if d.Collecting, err = r.collecting(d); err == nil && !d.Collecting {
				break
			}
		}
		if ctx.Err() != nil {
			break
		}
		time.Sleep(restPause) // it changes while it is read
	}
	if err != nil {
		return err
	}
	d.Generations = census.Descriptors.Generations // as they were
	census.Descriptors = d
	for i := range d.Groups {
		g := &d.Groups[i]
		if !g.Has(ghc.BlockLarge) || g.Has(ghc.BlockPinned) {
			continue
		}
		if _, known := census.Tally.Large[g.Start]; known {
			continue
		}
		if pointer, err := r.Memory.Word(g.Start); err == nil {
			if info, ok := r.look(pointer); ok {
				census.Tally.Large[g.Start] = info.Type
			}
		}
	}
	return nil
}

// collecting reports whether a collection of older generations is under way, or was when descriptors were read that are given. It
// takes the words away from the generation at its start, and leaves what it copies from in its blocks until its end.
func (r *Reader) collecting(d *Descriptors) (bool, error) {
	now, err := r.generations()
	if err != nil {
		return false, err
	}
	const apart = ghc.BlockLarge | ghc.BlockCompact | ghc.BlockPinned
	words := map[uint64]uint64{} // of small objects, by generation
	for i := range d.Groups {
		if g := &d.Groups[i]; g.Flags&(apart|ghc.BlockExec) == 0 && !g.IsSegment() {
			words[g.Generation] += g.Used() / 8
		}
	}
	for _, all := range [][]Generation{d.Generations, now} {
		for i := 1; i < len(all); i++ {
			if has := words[all[i].Address]; has > all[i].Words+has/collectingPart+ghc.MegablockBytes/8 {
				return true, nil
			}
		}
	}
	return false, nil
}

// collectingPart is by which part, one in so many, blocks may have more words than their generation counts: what threads of the
// collector have begun, and what has come to it while they were read.
const collectingPart = 16

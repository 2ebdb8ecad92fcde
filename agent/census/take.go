package census

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ccagent/agent/hold"
	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/rtsites"
	"ccagent/heap"
	"ccagent/internal/ghc"
	"ccagent/perf"
)

// Manner is how the heap was looked at.
type Manner uint8

// Manners.
const (
	// Exact: the program stood at the end of a major collection until all was copied or counted.
	Exact Manner = iota
	// Beside: the program stood there until the descriptors of blocks were read, and ran on while
	// the blocks were copied. What it changed meanwhile is counted as it was then.
	Beside
)

// Options say how a census is to be taken.
type Options struct {
	// Wait is how long to wait for a major collection, and for a moment outside of one where a census is taken at rest.
	Wait time.Duration
	// MaxPause is for how long the program may be stopped; 0 is no bound.
	MaxPause time.Duration
	// Keep, if it is not 0, has the census keep what it has copied, of at most so many bytes.
	Keep uint64
	// Room bounds how many bytes are copied before they are counted; 0 is no bound.
	Room uint64
	// Strict gives a census up if MaxPause has passed before the heap's megablocks are found.
	Strict bool
	// Hurry has closures of a random part of the heap copied while the program stands, where it collects
	// its heap again before anything could be copied beside it.
	Hurry bool
	// Residence has the census find out what of the process is in memory.
	Residence bool
}

// Census is what was found.
type Census struct {
	Manner Manner
	// AtRest is set if the program was stopped where it was: garbage is counted too.
	AtRest bool
	// Running are the threads that ran Haskell code when the program was stopped where it was, if they were asked for
	// (Options.Keep); Unknown is how many did of which it is not known what they held.
	Running     []heap.Running
	Unknown     int
	Time        uint64 // CLOCK_MONOTONIC when the program was stopped, ns
	Pause       time.Duration
	Took        time.Duration // from Time until all was copied and counted
	Descriptors *Descriptors
	Tally       *heap.Tally
	Draw        *Draw      // nil if all of the heap was counted
	Copy        *Copy      // with Options.Keep; the caller closes it
	Residence   *Residence // with Options.Residence
}

// Site is where a program is stopped: offsets in its run-time system's file.
type Site struct {
	Path               string
	Collect, Resurrect uint64
}

// SiteOf is where a program is stopped whose run-time system is in a module. The module's file is
// open as long as it is used.
func SiteOf(rts *process.Module, at *rtsites.Census) (s Site, ok bool) {
	s.Path = fmt.Sprintf("/proc/self/fd/%d", rts.File.Fd())
	var there bool
	s.Collect, ok = rts.FileOffset(at.Collect)
	s.Resurrect, there = rts.FileOffset(at.Resurrect)
	return s, ok && there
}

// Errors of a census.
var (
	// ErrNoCollection is returned where no major collection came.
	ErrNoCollection = errors.New("the program made no major collection")
	// ErrCollected is returned where the program made another collection before its heap was copied.
	ErrCollected = errors.New("the program collected its heap again before that was copied; allow a longer pause with --max-pause")
)

// copyRate is how many bytes are copied in a second at the least, as far as is known before.
const copyRate = 4 << 30

// rateBytes is the smallest copy, in bytes, whose time says how fast copying is.
const rateBytes = 1 << 20

// rate is how many bytes are copied in a second, as far as is known.
func (r *Reader) rate() float64 {
	if r.copied == 0 {
		return copyRate
	}
	return min(r.copied, copyRate)
}

// learnRate sets the rate of copying by a copy that was made while the program stood. After a copy that is too small for that the rate goes half the way
// back to copyRate: else one slow moment would make all later copies small, and the rate stay as it is.
func (r *Reader) learnRate(bytes int, ns uint64) {
	if bytes >= rateBytes && ns > 0 {
		r.copied = float64(bytes) / float64(ns) * 1e9
	} else {
		r.copied = (r.rate() + copyRate) / 2
	}
}

// maxYoung bounds what is copied of younger generations while the program stands: they will be
// moved by the next collection, which may come soon.
const maxYoung = 4 << 20

// heapPause is how long to wait until it is asked again whether a run-time system has a heap.
const heapPause = time.Millisecond

// ErrPause is returned for a census that would have taken longer than was allowed.
var ErrPause = errors.New("the program would have stood longer than --max-pause allows, until its heap's megablocks were found")

// A Holder holds the thread that leads a process's next major collection where that ends, and calls
// held, with the time from which it is held, by CLOCK_MONOTONIC in ns. Where pauses are bounded, the OS thread that waits for it
// and calls held should have been hastened (overhead.Hasten).
type Holder func(ctx context.Context, held func(since uint64) error) error

// AtCollection waits for a major collection, stops the program at its end, and counts what is live.
func (r *Reader) AtCollection(ctx context.Context, site Site, o Options) (*Census, error) {
	wait, cancel := context.WithTimeout(ctx, o.Wait)
	defer cancel()
	oldest, err := r.OldestGeneration()
	for errors.Is(err, ErrNoHeap) && wait.Err() == nil { // the program is only starting
		time.Sleep(heapPause)
		oldest, err = r.OldestGeneration()
	}
	if err != nil {
		return nil, fmt.Errorf("read the heap's generations: %w", err)
	}
	var held error
	gate := hold.Gate{Offset: site.Collect, Least: oldest}
	if o.MaxPause > 0 {
		gate.Hasten = overhead.Hasten
	}
	census, err := r.Take(wait, o, func(ctx context.Context, f func(since uint64) error) error {
		held = hold.Gated(ctx, r.PID, site.Path, site.Resurrect, gate, func(_ int, since uint64) error { return f(since) })
		return held
	})
	if held != nil && ctx.Err() == nil && errors.Is(held, context.DeadlineExceeded) {
		return nil, ErrNoCollection
	}
	return census, err
}

// Take counts what is live at the end of the collection at which hold holds the program.
func (r *Reader) Take(ctx context.Context, o Options, hold Holder) (*Census, error) {
	c, later, err := r.prepare(o)
	if err != nil {
		return nil, err
	}
	defer c.free()
	census := newCensus(r, o)
	err = hold(ctx, func(since uint64) (err error) {
		census.Time = since
		later, err = c.look(ctx, r, census, o, since, later)
		census.Pause = time.Duration(perf.Monotonic() - since)
		return err
	})
	r.Stops.add(census.Pause, o.MaxPause)
	if err != nil {
		return nil, err
	}
	if err := c.finish(ctx, r, census, o, later); err != nil {
		return nil, err
	}
	return census, nil
}

// newCensus makes a census that has counted nothing.
func newCensus(r *Reader, o Options) *Census {
	return &Census{Tally: newTally(r, o)}
}

func newTally(r *Reader, o Options) *heap.Tally {
	t := heap.NewTally(r.Layout, r.look)
	if o.Residence {
		t.Large, t.Threads = map[uint64]ghc.ClosureType{}, []heap.ThreadStack{}
	}
	return t
}

// prepare makes room for a copy of the heap, and decides by the heap's size now what is done while the program
// stands. later is set if what is in memory is to be seen when it runs on.
func (r *Reader) prepare(o Options) (c *copier, later bool, err error) {
	r.made.fresh = false
	c = &copier{limit: maxArena, standing: maxArena}
	if o.Room > 0 {
		c.limit = min(c.limit, o.Room)
	}
	if o.MaxPause > 0 {
		c.standing = uint64(o.MaxPause.Seconds()*copyRate) + maxYoung
	}
	if o.Keep > 0 {
		c.keep, c.limit = &Copy{}, o.Keep
	}
	begun := time.Now()
	before, err := r.Descriptors()
	if errors.Is(err, ErrNonmoving) {
		c.free()
		return nil, false, err
	}
	if err != nil { // it may change while it is read
		if o.MaxPause == 0 {
			return c, false, nil
		}
		before = &Descriptors{Megablocks: unknownSize / ghc.MegablockBytes}
	}
	took := time.Since(begun)
	size := before.small()
	if err != nil {
		size = unknownSize
	}
	if exact := took + time.Duration(float64(size)/copyRate*1e9); o.MaxPause != 0 && exact > o.MaxPause {
		c.beside, later = true, true
		size += maxYoung
	} else if exact += time.Duration(before.Megablocks) * residencePause; o.MaxPause != 0 && exact > o.MaxPause {
		later = true
	}
	if o.MaxPause > 0 {
		size += maxYoung
	}
	if o.MaxPause > 0 {
		c.makeRoom(len(before.Groups))
	}
	// While a collection runs, descriptors say less than what it keeps; but no heap has more than it maps.
	mapped := before.Megablocks * ghc.MegablockBytes
	if err := c.reserve(size+size/4, mapped+mapped/4+dataBytes(r.segments)); err != nil {
		c.free()
		return nil, false, fmt.Errorf("make room for a copy of the heap: %w", err)
	}
	return c, later, nil
}

// maxRoom is for how many groups room is made before the program stands: about as many as can be read of in 5 ms.
const maxRoom = 1 << 16

// makeRoom makes room for what is known of groups, of which there are so many now, and has the kernel put pages in place: the program is not to
// stand while Go or the kernel looks for memory.
func (c *copier) makeRoom(groups int) {
	n := min(groups+groups/4, maxRoom) + 2*groupsInMegablock
	c.pool, c.kept, c.left, c.pieces = make([]heap.Group, n), make([]kept, n), make([]heap.Group, n), make([]piece, n)
	clear(c.pool)
	clear(c.kept)
	clear(c.left)
	clear(c.pieces)
	c.pool, c.kept, c.left, c.pieces = c.pool[:0], c.kept[:0], c.left[:0], c.pieces[:0]
}

// busyRate is how many bytes are copied in a second on a machine that is busy: a pause that is proposed should be enough there, too.
const busyRate = 512 << 20

// pauseStep is to what pauses are rounded up that are proposed.
const pauseStep = 10 * time.Millisecond

// words takes note of how much the heap has, as its generations say while the program stands. What descriptors say while it runs may be of
// the middle of a collection, when little of the heap has been copied.
func (r *Reader) words(d *Descriptors) {
	var bytes uint64
	for i := range d.Generations {
		bytes += 8 * d.Generations[i].Words
	}
	if bytes < d.Megablocks*ghc.MegablockBytes { // else it is no truth
		r.most = max(r.most, bytes)
	}
}

// CopyPause is how many bytes of small objects the heap has, now or when the program was stopped before, and within which pause they can be copied
// while the program stands, with room for what has come since.
func (r *Reader) CopyPause() (bytes uint64, pause time.Duration, err error) {
	for range restTries {
		begun := time.Now()
		var d *Descriptors
		if d, err = r.anyDescriptors(); err != nil {
			continue // it changes while it is read
		}
		bytes = max(d.small(), r.most)
		took := time.Since(begun) + time.Duration(float64(bytes)/min(r.rate(), busyRate)*1e9)
		return bytes, (2*took/pauseStep + 1) * pauseStep, nil
	}
	return 0, 0, err
}

// unknownSize is for how much room is made where the heap could not be read before.
const unknownSize = 64 << 20

// finish does what is to be done when the program runs on.
func (c *copier) finish(ctx context.Context, r *Reader, census *Census, o Options, later bool) (err error) {
	if c.beside {
		census.Manner = Beside
	}
	drawn := c.drawing != nil
	if !drawn {
		census.Descriptors.sort()
	}
	if err := c.findNurseries(ctx, r, census.Descriptors, drawn); err != nil {
		return err
	}
	switch {
	case drawn:
		err = c.counter.finish()
	case census.AtRest:
		err = census.Descriptors.checkRest()
	default:
		err = census.Descriptors.check()
	}
	if err != nil {
		return err
	}
	if o.Residence && later {
		if drawn {
			if err := r.residenceLater(ctx, census); err != nil {
				return err
			}
		}
		if census.Residence, err = r.residence(census.Descriptors); err != nil {
			return err
		}
		census.Residence.Beside = true
	}
	if !drawn {
		if err := c.after(r, census); err != nil {
			return err
		}
	}
	if err := census.check(); err != nil {
		if c.beside { // a younger generation may have been collected, which the oldest does not count
			err = fmt.Errorf("%w: %w", ErrCollected, err)
		}
		return err
	}
	census.Took = time.Duration(perf.Monotonic() - census.Time)
	if census.Copy = c.takeKept(); census.Copy != nil {
		census.Copy.Filling, census.Copy.AtRest, census.Copy.Running = census.Descriptors.Filling, census.AtRest, census.Running
		r.prune(census.Descriptors, census.Running)
		r.copyMade(census.Copy)
	}
	return nil
}

// findNurseries finds the blocks of nurseries for which there was no time while the program stood.
func (c *copier) findNurseries(ctx context.Context, r *Reader, d *Descriptors, drawn bool) (err error) {
	if c.currents == nil {
		return nil
	}
	if c.nursery, err = r.filled(ctx, d, c.currents, 0); err != nil {
		if errors.Is(err, ErrContradiction) {
			err = fmt.Errorf("%w: %w", ErrCollected, err)
		}
		return fmt.Errorf("read the nurseries: %w", err)
	}
	for _, g := range c.nursery {
		if !drawn && c.takes(d, g) {
			c.left = append(c.left, *g) // what is drawn takes them by itself
		}
	}
	return nil
}

// ErrContradiction is returned where what was read of a heap contradicts what the run-time system
// says of it.
var ErrContradiction = errors.New("what was read of the heap is not what its run-time system says of it; nothing was kept of this census")

// slackBlocks is how many blocks a thread of the collector may have begun of a generation, which
// the generation does not count yet.
const slackBlocks = 256

// check compares groups of blocks with what their generations say, at the end of a collection.
func (d *Descriptors) check() error {
	for i := range d.Generations {
		g := &d.Generations[i]
		small, large := d.words(g)
		if small < g.Words || small-g.Words > slackBlocks*uint64(1+len(d.Filling))*ghc.BlockBytes/8 || large != g.LargeWords {
			return fmt.Errorf("%w: generation %d has %d words in small and %d in large objects, where its blocks have %d and %d",
				ErrContradiction, g.Number, g.Words, g.LargeWords, small, large)
		}
	}
	return nil
}

// words adds up what groups of a generation hold, small objects and large ones.
func (d *Descriptors) words(g *Generation) (small, large uint64) {
	for k := range d.Groups {
		switch b := &d.Groups[k]; {
		case b.Generation != g.Address || !live(b) || b.IsSegment() || b.Flags&ghc.BlockCompact != 0 || d.isFilling(b):
		case b.Flags&ghc.BlockLarge != 0:
			large += b.Used() / 8
		default:
			small += b.Used() / 8
		}
	}
	return small, large
}

// unreadPart is the part of the heap that may be unread in a census that is kept: one in so many.
const unreadPart = 1000

// check reports whether almost all was read as closures.
func (c *Census) check() error {
	var words uint64
	for _, n := range c.Tally.Counts() {
		words += n.Words
	}
	if unread := c.Tally.Unread; unread > words/unreadPart+uint64(1+len(c.Running))*ghc.BlockBytes/8 || c.Manner == Exact && !c.AtRest && unread > 0 {
		return fmt.Errorf("%w: %d words are no closures", ErrContradiction, unread)
	}
	return nil
}

func (r *Reader) look(word uint64) (heap.Info, bool) {
	t := r.Tables.Look(word)
	return t.Info, t.OK
}

// live reports whether a group holds what the last collection has kept, large objects, or what the non-moving collector has.
func live(g *heap.Group) bool {
	return g.Flags&(ghc.BlockEvacuated|ghc.BlockLarge|ghc.BlockCompact|ghc.BlockNonmoving) != 0 && g.Flags&ghc.BlockExec == 0
}

// whole reports whether all words of a group are to be read: of the others a head says all.
func whole(g *heap.Group) bool {
	return g.Flags&(ghc.BlockLarge|ghc.BlockCompact|ghc.BlockPinned) == 0
}

// small is how many bytes small objects take.
func (d *Descriptors) small() (n uint64) {
	for i := range d.Groups {
		if g := &d.Groups[i]; live(g) && whole(g) && d.generation(g.Generation) != nil {
			n += g.Used()
		}
	}
	return n
}

// takes reports whether a group is to be counted.
func (c *copier) takes(d *Descriptors, g *heap.Group) bool {
	if d.generation(g.Generation) == nil {
		return false
	}
	return (live(g) || c.nursery[g.Start] != nil) && !d.isFilling(g)
}

// takesLive reports whether a group is to be counted that is in no nursery.
func (c *copier) takesLive(d *Descriptors, g *heap.Group) bool {
	return c.takes(d, g) && c.nursery[g.Start] == nil
}

// isFilling reports whether a capability fills the group.
func (d *Descriptors) isFilling(g *heap.Group) bool {
	return g.Flags&ghc.BlockPinned != 0 && slices.Contains(d.Filling, g.Start)
}

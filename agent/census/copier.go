package census

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"ccagent/heap"
	"ccagent/internal/ghc"
	"ccagent/perf"
)

// copier copies groups of blocks, and counts what they hold.
type copier struct {
	arena []byte
	used  int
	limit uint64 // bytes that may be copied at once
	// standing is how many bytes may be copied while the program stands, for which the kernel is to have
	// pages in place.
	standing uint64
	beside   bool
	nursery  map[uint64]*heap.Group // blocks of nurseries by their starts, of a census at rest
	currents []current              // if there was no time to find these while the program stood
	keep     *Copy                  // nil if what was copied is not kept
	hasData  bool                   // static data was copied
	drawing  *drawing               // nil if all descriptors were read while the program stood
	counter  *counter               // of drawing
	until    uint64                 // when nothing more is to be copied while the program stands, CLOCK_MONOTONIC in ns; 0 is never

	// Room for what is found while the program stands.
	pool   []heap.Group
	pieces []piece

	kept []kept       // copied, to be counted
	left []heap.Group // to be copied while the program runs
}

// kept is a group whose words are in the arena.
type kept struct {
	group heap.Group
	at    int
	bytes int
}

// maxArena bounds what is copied before it is counted. Of a larger heap the rest is counted while
// the program stands.
const maxArena = 2 << 30

// reserve makes room for so many bytes. What is to be kept may need more.
func (c *copier) reserve(small, more uint64) (err error) {
	if c.keep != nil {
		c.arena, err = c.keep.make(min(small+more+1<<20, c.limit))
	} else {
		c.arena, err = unix.Mmap(-1, 0, int(min(small+1<<20, c.limit)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	}
	if err != nil {
		return err
	}
	if err := unix.Madvise(c.arena, unix.MADV_DONTDUMP); err != nil { // what the program keeps secret is in no core dump of ours
		return err
	}
	for at := 0; at < min(int(min(small+1<<20, c.standing)), len(c.arena)); at += os.Getpagesize() {
		c.arena[at] = 0
	}
	return nil
}

func (c *copier) free() {
	if c.arena != nil {
		_ = unix.Munmap(c.arena)
	}
	c.arena = nil
	if c.keep != nil {
		c.keep.Close()
	}
}

// takeKept gives what was copied to the caller.
func (c *copier) takeKept() *Copy {
	keep := c.keep
	c.keep = nil
	return keep
}

// errNoRoom is returned where more is to be kept than may be.
var errNoRoom = errors.New("the heap is larger than what may be copied of it; allow more with --graph-memory")

// while does what has to be done while the program stands.
func (c *copier) while(r *Reader, census *Census) (err error) {
	d := census.Descriptors
	oldest, young := d.Oldest().Address, 0
	var scratch [ghc.BlockBytes / 8]uint64
	begun, late := perf.Monotonic(), false
	from := c.used
	for _, old := range []bool{false, true} { // what is moved the soonest comes first
		for i := range d.Groups {
			g := &d.Groups[i]
			if (g.Generation == oldest) != old || !c.takes(d, g) {
				continue
			}
			if c.until != 0 && !late && i%lateEach == 0 && perf.Monotonic() > c.until {
				late, c.beside = true, true
			}
			if late || c.beside && (old || whole(g) && young+int(g.Used()) > maxYoung) {
				c.left = append(c.left, *g)
				continue
			}
			if whole(g) {
				young += int(g.Used())
			}
			if err := c.take(r, census, g, scratch[:]); err != nil {
				return err
			}
		}
	}
	if c.until != 0 {
		r.learnRate(c.used-from, perf.Monotonic()-begun)
	}
	if c.keep == nil {
		return nil
	}
	if !c.beside {
		err = c.data(r)
	} else {
		err = c.dataInTime(r, c.until)
	}
	if err != nil {
		return err
	}
	return r.stable(c.keep)
}

// lateEach is after how many groups it is asked again whether there is time to copy more.
const lateEach = 8

// data copies static data, where CAFs are. What they lead to moves when the heap is collected.
func (c *copier) data(r *Reader) error {
	c.hasData = true
	c.keep.Segments = append([]Segment(nil), r.segments...)
	for i := range c.keep.Segments {
		s := &c.keep.Segments[i]
		if !s.Data {
			continue
		}
		if uint64(len(c.arena)-c.used) < s.Length+8 {
			return errNoRoom
		}
		if _, err := r.Memory.ReadAt(c.arena[c.used:c.used+int(s.Length)], int64(s.Start)); err != nil {
			return fmt.Errorf("read static data: %w", err)
		}
		s.Offset = uint64(c.used)
		c.used += int(s.Length+7) &^ 7
	}
	return nil
}

// bytes is how much of a group is to be copied: of large objects, compact regions and pinned byte
// arrays the head, and if it is to be kept, all of the large objects that have pointers.
func (c *copier) bytes(r *Reader, g *heap.Group) int {
	size := int(g.Used())
	if whole(g) {
		return size
	}
	head := min(size, heap.HeadWords*8)
	if c.keep == nil || !g.Has(ghc.BlockLarge) {
		return head
	}
	if pointer, err := r.Memory.Word(g.Start); err == nil && r.Tables.Look(pointer).Info.Type == ghc.ArrWords {
		return head
	}
	return size
}

// take copies a group, or counts it if there is no room.
func (c *copier) take(r *Reader, census *Census, g *heap.Group, scratch []uint64) error {
	size := c.bytes(r, g)
	if size == 0 || size%8 != 0 {
		return nil
	}
	if len(c.arena)-c.used >= size {
		if err := r.read(g, wordsOf(c.arena[c.used:c.used+size])); err != nil {
			return err
		}
		c.kept = append(c.kept, kept{*g, c.used, size})
		c.used += size
		return nil
	}
	if c.keep != nil {
		return errNoRoom
	}
	words := scratch
	if size > 8*len(words) {
		words = make([]uint64, size/8)
	}
	words = words[:size/8]
	if err := r.read(g, words); err != nil {
		return err
	}
	count(census.Tally, g, words)
	return nil
}

// read reads the first words of a group, of a segment its closures.
func (r *Reader) read(g *heap.Group, words []uint64) error {
	if !g.IsSegment() {
		_, err := r.Memory.ReadAt(bytesOf(words), int64(g.Start))
		return err
	}
	return r.Layout.ReadSegment(words, g.Cell, r.look, func(words []uint64, from int) error {
		_, err := r.Memory.ReadAt(bytesOf(words), int64(g.Start)+8*int64(from))
		return err
	})
}

// count counts a group, whose words are given, or the first of them for one that is not read whole.
func count(t *heap.Tally, g *heap.Group, words []uint64) {
	switch {
	case g.IsSegment():
		t.AddSegment(words, g.Cell)
	case g.Flags&ghc.BlockPinned != 0:
		t.AddPinned(*g, words)
	case g.Flags&ghc.BlockCompact != 0:
		t.AddCompact(*g, words)
	case g.Flags&ghc.BlockLarge != 0:
		t.AddLarge(*g, words)
	case len(words) > 0 && words[0] == g.Start:
		// A further block of a compact region: it begins with its own address, and the region's first
		// block says how large they all are.
	default:
		t.Add(words)
	}
}

// after copies what is left, while the program runs, and counts what was copied. Counting takes
// longer than copying, so as much as there is room for is copied first: the sooner, the less has
// changed. What younger generations have comes before all else, for it is moved the soonest.
func (c *copier) after(r *Reader, census *Census) error {
	before := census.Descriptors.Generations
	last := len(before) - 1
	young := func(g *heap.Group) bool { return g.Generation != before[last].Address }
	slices.SortStableFunc(c.left, func(x, y heap.Group) int {
		switch {
		case young(&x) == young(&y):
			return 0
		case young(&x):
			return -1
		}
		return 1
	})
	var scratch [ghc.BlockBytes / 8]uint64
	for {
		if c.keep != nil && !c.hasData && (len(c.left) == 0 || !young(&c.left[0])) {
			if err := c.dataOf(r, before, census.AtRest); err != nil {
				return err
			}
		}
		n, from := 0, last
		if len(c.left) > 0 && young(&c.left[0]) {
			from = 0
		}
		for ; n < len(c.left) && young(&c.left[n]) == (from < last) && c.room(&c.left[n]); n++ {
			if err := c.take(r, census, &c.left[n], scratch[:]); err != nil {
				return err
			}
		}
		if n > 0 {
			if err := r.collected(before, from); err != nil {
				return err
			}
		}
		c.left = c.left[n:]
		if n > 0 && len(c.left) > 0 && c.room(&c.left[0]) {
			continue // what the oldest generation has
		}
		c.countKept(census.Tally)
		switch {
		case len(c.left) == 0:
			return nil
		case c.keep != nil:
			return errNoRoom
		case !c.room(&c.left[0]):
			return fmt.Errorf("copy the heap of process %d: there is no memory for a group of %d blocks", r.PID, c.left[0].Blocks)
		}
	}
}

// dataInTime copies static data while the program stands, if there is time to until then.
func (c *copier) dataInTime(r *Reader, until uint64) error {
	if float64(perf.Monotonic())+float64(dataBytes(r.segments))/r.rate()*1e9 > float64(until) {
		return nil
	}
	return c.data(r)
}

// dataOf copies the static data of the heap that was copied, while the program runs. Where a generation was collected since, CAFs
// would lead to where nothing was, and what they keep alive would be taken for garbage. Younger generations of a program that is not at rest are
// collected all the time, and have little of what CAFs lead to at the end of a major collection.
func (c *copier) dataOf(r *Reader, before []Generation, atRest bool) error {
	if err := c.data(r); err != nil {
		return err
	}
	from := len(before) - 1
	if atRest {
		from = 0
	}
	return r.collected(before, from)
}

// room reports whether a group can be copied.
func (c *copier) room(g *heap.Group) bool {
	size := int(g.Used())
	if c.keep == nil && !whole(g) {
		size = min(size, heap.HeadWords*8)
	}
	return len(c.arena)-c.used >= size
}

// countKept counts what was copied, and makes room unless it is to be kept.
func (c *copier) countKept(t *heap.Tally) {
	for i := range c.kept {
		k := &c.kept[i]
		count(t, &k.group, wordsOf(c.arena[k.at:k.at+k.bytes]))
		if c.keep != nil {
			c.keep.Groups = append(c.keep.Groups, Copied{k.group, uint64(k.at), uint64(k.bytes)})
		}
	}
	c.kept = c.kept[:0]
	if c.keep == nil {
		c.used = 0
	}
}

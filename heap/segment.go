package heap

import (
	"math/bits"

	"ccagent/internal/ghc"
)

// Segments says how the non-moving collector divides its memory: into segments of cells of one size, each of which
// has a closure or is free (rts/sm/NonMoving.h).
type Segments struct {
	// Dense is how many cell sizes there are that are one word apart, from one word on; the further ones are powers of
	// two. 0 means that all are (before 9.10).
	Dense int
}

// Of a segment: where the index of the next free cell and the cells' marks are, a byte each, and the
// size of what the marks follow, by which the cells' place is reckoned.
const (
	segmentBytes    = 32 << 10
	segmentNextFree = 16
	segmentMarks    = 18
	segmentHead     = 24
)

// maxCellBits bounds the size of a cell: what is larger is a large object.
const maxCellBits = 15

// Cell is the size in bytes of the cells of a segment, whose descriptor is given as the group that it describes; 0 if it
// cannot be.
func (s Segments) Cell(g Group) int {
	if g.Blocks != segmentBytes/ghc.BlockBytes {
		return 0
	}
	// Where other groups have the end of what they use, a segment has what cells it has.
	log := int(uint8(g.Free))
	if s.Dense > 0 {
		index := int(uint16(g.Free))
		if index < s.Dense {
			return 8 * (index + 1)
		}
		log = bits.Len(uint(8*s.Dense)) + index - s.Dense // of the first power of two above the dense ones
	}
	if log < 3 || log > maxCellBits {
		return 0
	}
	return 1 << log
}

// cells is how many cells a segment has of a size in bytes, and the word at which the first begins.
func cells(cell int) (n, first int) {
	n = (segmentBytes - segmentHead) / (cell + 1)
	return n, (segmentHead + n + 7) / 8
}

// inUse reports of each cell of a segment, whose first words are given, whether it is in use: it is marked, which a collection has kept it by, or
// lies before the next free one. Cells are filled in order, and those between marked ones are free. What has died since the last
// collection is in use.
func inUse(words []uint64) func(cell int) bool {
	byteAt := func(i int) uint8 { return uint8(words[i/8] >> (8 * (i % 8))) }
	next := int(byteAt(segmentNextFree)) | int(byteAt(segmentNextFree+1))<<8
	return func(i int) bool { return i < next || byteAt(segmentMarks+i) != 0 }
}

// SegmentWords is how many words a segment has.
const SegmentWords = segmentBytes / 8

// ReadSegment reads the closures of a segment into its words; all else in them becomes zero, also the free ends of cells. read reads words of the segment from
// one on. It is asked for pages that hold closures alone: others were perhaps never written to, and for whoever reads such a
// page of another process the kernel puts one in place that it does not count. Of the words Layout.Walk reads those from the first that is not 0 on.
func (l *Layout) ReadSegment(words []uint64, cell int, tables Tables, read func(words []uint64, from int) error) error {
	clear(words)
	if len(words) != SegmentWords || cell < 8 {
		return nil
	}
	const page = ghc.BlockBytes / 8
	var there, wanted [SegmentWords / page]bool
	get := func() error {
		for p := 0; p < len(wanted); p++ {
			from := p
			for p < len(wanted) && wanted[p] && !there[p] {
				there[p] = true
				p++
			}
			if p > from {
				if err := read(words[from*page:p*page], from*page); err != nil {
					return err
				}
			}
		}
		return nil
	}
	wanted[0] = true // it has the marks
	if err := get(); err != nil {
		return err
	}
	n, first := cells(cell)
	used := inUse(append([]uint64(nil), words[:first]...))
	at := func(i int) int { return first + i*cell/8 }
	for i := range n {
		if used(i) {
			wanted[at(i)/page] = true
		}
	}
	if err := get(); err != nil {
		return err
	}
	ends := make([]int, n)
	for range 2 { // where a closure goes on to another page, that has to be read before its length is known
		for i := range n {
			if !used(i) {
				continue
			}
			all := words[at(i):][:cell/8]
			ends[i] = at(i) + 1
			if info, ok := tables(all[0]); ok {
				size, ok := l.Size(info, all)
				switch {
				case ok && size > 0 && size <= len(all):
					ends[i] = at(i) + size
				case ok && size == 0: // its length is not there yet
					ends[i] = at(i) + min(l.Header+4, len(all))
				}
			}
			for p := at(i) / page; p <= (ends[i]-1)/page; p++ {
				wanted[p] = true
			}
		}
		if err := get(); err != nil {
			return err
		}
	}
	// What is between closures was read with them.
	from := 0
	for i := range n {
		if ends[i] > 0 {
			clear(words[from:at(i)])
			from = ends[i]
		}
	}
	clear(words[from:])
	return nil
}

// AddSegment counts the closures of a segment whose words ReadSegment has read. What they leave of their cells is no slop of theirs: it is the
// collector's, whatever they were.
func (t *Tally) AddSegment(words []uint64, cell int) {
	if len(words) != SegmentWords || cell < 8 {
		t.Unread += uint64(len(words))
		return
	}
	n, first := cells(cell)
	for i := range n {
		if at := words[first+i*cell/8:][:cell/8]; at[0] != 0 {
			t.add(at, false)
		}
	}
}

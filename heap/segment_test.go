package heap

import (
	"encoding/binary"
	"slices"
	"testing"

	"ccagent/internal/ghc"
)

// Sizes of cells are powers of two, or from 9.10 on a word apart up to a bound and powers of two from there on.
func TestCell(t *testing.T) {
	for _, c := range []struct {
		dense  int
		free   uint64
		blocks uint32
		want   int
	}{
		{0, 3, 8, 8}, {0, 0xffff0005, 8, 32}, {0, 15, 8, 1 << 15}, {0, 2, 8, 0}, {0, 16, 8, 0}, {0, 3, 7, 0},
		{16, 0, 8, 8}, {16, 15, 8, 128}, {16, 16, 8, 256}, {16, 0xffff0011, 8, 512}, {16, 22, 8, 1 << 14}, {16, 24, 8, 0}, {16, 0xffff, 8, 0},
		{1, 1, 8, 16}, {3, 3, 8, 32}, {255, 255, 8, 2048},
	} {
		if got := (Segments{Dense: c.dense}).Cell(Group{Free: c.free, Blocks: c.blocks}); got != c.want {
			t.Errorf("%+v: cells of %d bytes", c, got)
		}
	}
}

// segment makes a segment's words: cells that are marked, the index of the next free one, and closures of so many words
// with the info pointer pair or array, by the cells that have them. All else is rubbish.
func segment(cell, next int, marked []int, closures map[int][]uint64) []uint64 {
	var b [segmentBytes]byte
	n, first := cells(cell)
	for i := 8 * first; i < len(b); i++ {
		b[i] = 0xee
	}
	binary.LittleEndian.PutUint16(b[segmentNextFree:], uint16(next))
	for _, i := range marked {
		b[segmentMarks+i] = 2
	}
	words := make([]uint64, SegmentWords)
	for i := range words {
		words[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	for i, c := range closures {
		if i < n {
			copy(words[first+i*cell/8:], c)
		}
	}
	return words
}

// Info pointers of made closures: one of two fields, and an array.
const pairInfo, arrayInfo = 0x40, 0x80

func madeTables(p uint64) (Info, bool) {
	switch p {
	case pairInfo:
		return Info{Type: ghc.Constr, Ptrs: 2}, true
	case arrayInfo:
		return Info{Type: ghc.ArrWords}, true
	}
	return Info{}, false
}

// Of a segment the closures are left that are marked or lie before the next free cell, each counted with its size; what is free,
// or behind a closure in its cell, is neither counted nor asked for where a page has nothing else.
func TestReadSegment(t *testing.T) {
	layout, _ := LayoutOf("9.6.6", false, true)
	pair := []uint64{pairInfo, 1, 2}
	array := func(bytes uint64) []uint64 { return []uint64{arrayInfo, bytes} }
	for _, c := range []struct {
		name       string
		cell, next int
		marked     []int
		closures   map[int][]uint64
		pairs      uint64
		arrays     uint64
		arrayWords uint64
		pages      []int // that are asked for
	}{
		{"small cells", 32, 2, []int{5, 990}, map[int][]uint64{0: pair, 1: pair, 2: pair, 5: pair, 990: pair}, 4, 0, 0, []int{0, 7}},
		{"none in use", 64, 0, nil, map[int][]uint64{0: pair}, 0, 0, 0, []int{0}},
		{"a large cell with a small closure", 16384, 1, nil, map[int][]uint64{0: array(100)}, 0, 1, 15, []int{0}},
		{"a closure of several pages", 16384, 1, nil, map[int][]uint64{0: array(10000)}, 0, 1, 1252, []int{0, 1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			all := segment(c.cell, c.next, c.marked, c.closures)
			words := make([]uint64, SegmentWords)
			words[SegmentWords-1] = 77 // of what was there before
			var pages []int
			err := layout.ReadSegment(words, c.cell, madeTables, func(to []uint64, from int) error {
				copy(to, all[from:])
				for p := from / 512; p < (from+len(to))/512; p++ {
					pages = append(pages, p)
				}
				return nil
			})
			if slices.Sort(pages); err != nil || !slices.Equal(pages, c.pages) {
				t.Errorf("pages %v were read (%v), want %v", pages, err, c.pages)
			}
			tally := NewTally(layout, madeTables)
			tally.AddSegment(words, c.cell)
			got := map[uint64]Count{}
			for _, n := range tally.Counts() {
				got[n.Pointer] = n
			}
			if got[pairInfo].Number != c.pairs || got[arrayInfo].Number != c.arrays || got[arrayInfo].Words != c.arrayWords || got[pairInfo].Words != 3*c.pairs ||
				got[pairInfo].Slop+got[arrayInfo].Slop+tally.Unread != 0 {
				t.Errorf("it has %+v, and %d words unread", got, tally.Unread)
			}
			if words[SegmentWords-1] != 0 {
				t.Error("what was in its place before is left")
			}
		})
	}
	tally := NewTally(layout, madeTables)
	tally.AddSegment(make([]uint64, SegmentWords), 0)
	if tally.Unread != SegmentWords {
		t.Errorf("of a segment with cells of unknown size %d words are unread", tally.Unread)
	}
}

// Whatever a segment holds, no more than its words is read, nothing outside of cells in use is left, and no word is counted twice.
func FuzzSegment(f *testing.F) {
	var text []byte
	for _, w := range segment(32, 2, []int{5}, map[int][]uint64{0: {pairInfo, 1, 2}, 1: {arrayInfo, 9, 2}, 5: {arrayInfo, 1 << 60}})[:1024] {
		text = binary.LittleEndian.AppendUint64(text, w)
	}
	f.Add(text, uint16(4), uint8(0))
	f.Add(text, uint16(16), uint8(16))
	f.Fuzz(func(t *testing.T, data []byte, kind uint16, dense uint8) {
		cell := Segments{Dense: int(dense)}.Cell(Group{Free: uint64(kind), Blocks: 8})
		all := make([]uint64, SegmentWords)
		for i := range all {
			if len(data) >= 8*i+8 {
				all[i] = binary.LittleEndian.Uint64(data[8*i:])
			}
		}
		layout, _ := LayoutOf("9.10.3", dense%2 == 1, true)
		words := make([]uint64, SegmentWords)
		asked := map[int]bool{}
		err := layout.ReadSegment(words, cell, madeTables, func(to []uint64, from int) error {
			if from%512 != 0 || len(to)%512 != 0 || asked[from] {
				t.Fatalf("words %d to %d are asked for", from, from+len(to))
			}
			asked[from] = true
			copy(to, all[from:from+len(to)])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if cell > 0 {
			n, first := cells(cell)
			if used := inUse(all); first < SegmentWords {
				for i := range n {
					if at := words[first+i*cell/8:][:cell/8]; !used(i) && slices.Max(at) > 0 {
						t.Fatalf("cell %d of %d bytes is free, and %x was left in it", i, cell, at)
					}
				}
			}
			if slices.Max(words[:first]) > 0 {
				t.Fatal("marks were left")
			}
		}
		tally := NewTally(layout, madeTables)
		tally.AddSegment(words, cell)
		sum := tally.Unread
		for _, c := range tally.Counts() {
			sum += c.Words
		}
		if sum > SegmentWords {
			t.Fatalf("%d words are counted", sum)
		}
	})
}

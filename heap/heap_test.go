package heap

import (
	"encoding/binary"
	"fmt"
	"io"
	"reflect"
	"testing"

	"ccagent/internal/ghc"
)

// memory is what a process has mapped, by address.
type memory map[uint64][]byte

func (m memory) ReadAt(b []byte, at int64) (int, error) {
	for start, bytes := range m {
		if uint64(at) >= start && uint64(at) < start+uint64(len(bytes)) {
			n := copy(b, bytes[uint64(at)-start:])
			if n < len(b) {
				return n, io.ErrUnexpectedEOF
			}
			return n, nil
		}
	}
	return 0, io.EOF
}

// table makes the 16 bytes below an info pointer.
func table(t ghc.ClosureType, ptrs, nonPtrs uint32) []byte {
	b := binary.LittleEndian.AppendUint32(nil, ptrs)
	b = binary.LittleEndian.AppendUint32(b, nonPtrs)
	b = binary.LittleEndian.AppendUint32(b, uint32(t))
	return binary.LittleEndian.AppendUint32(b, 0)
}

// An info table is taken for one if closures in the heap can have it.
func TestReadInfo(t *testing.T) {
	for _, c := range []struct {
		t             ghc.ClosureType
		ptrs, nonPtrs uint32
		want          bool
	}{
		{ghc.Constr, 3, 2, true}, {ghc.Constr20, 2, 0, true}, {ghc.Constr20, 1, 0, false}, {ghc.Thunk, 400, 1, true},
		{ghc.Thunk, 4000, 1, false}, {ghc.FunStatic, 0, 0, false}, {ghc.ThunkStatic, 0, 0, false}, {ghc.RetSmall, 1, 0, false},
		{ghc.IndStatic, 1, 0, false}, {ghc.UpdateFrame, 1, 0, false}, {0, 0, 0, false}, {66, 0, 0, false}, {1 << 31, 0, 0, false},
		{ghc.TSO, 1 << 30, 0, true}, {ghc.Blackhole, 1, 0, true}, {ghc.AnnFrame, 0, 0, false}, {ghc.ThunkSelector, 3, 0, true},
	} {
		m := memory{0x1000: table(c.t, c.ptrs, c.nonPtrs)}
		i, ok := ReadInfo(m, 0x1010)
		if want := (Info{c.t, c.ptrs, c.nonPtrs}); ok != c.want || ok && i != want {
			t.Errorf("type %d of %d and %d words: %v, %v; want %v", c.t, c.ptrs, c.nonPtrs, i, ok, c.want)
		}
	}
	m := memory{0x1000: table(ghc.Constr, 1, 0)}
	for _, at := range []uint64{0, 8, 0x1008, 0x1011, 0x1018, 0x2000, 1<<64 - 8} {
		if i, ok := ReadInfo(m, at); ok {
			t.Errorf("%#x has the info table %v", at, i)
		}
	}
}

// A constructor's name is the string that its info table leads to, in either way.
func TestConstructorName(t *testing.T) {
	for profiled, below := range map[bool]uint64{false: 24, true: 40} {
		b := make([]byte, 0x80)
		copy(b[0x60:], "main:Main.Node\x00")
		offset := int32(0x60 - 0x40)
		binary.LittleEndian.PutUint32(b[0x40-below:], uint32(offset))
		m := memory{0x1000: b}
		if got := ConstructorName(m, 0x1040, profiled); got != "main:Main.Node" {
			t.Errorf("profiled %v: the name is %q", profiled, got)
		}
		for _, pointer := range []uint64{0, 8, 0x1000, 0x5000, 1<<64 - 8} {
			if got := ConstructorName(m, pointer, profiled); got != "" {
				t.Errorf("profiled %v: the name at %#x is %q", profiled, pointer, got)
			}
		}
		binary.LittleEndian.PutUint32(b[0x40-below:], 1<<31)
		if got := ConstructorName(m, 0x1040, profiled); got != "" {
			t.Errorf("profiled %v: the name below address 0 is %q", profiled, got)
		}
	}
}

var plain = Layout{Header: 1, TSO: 15, TRecChunk: 51}

// Sizes are those of closure_sizeW_, in both ways.
func TestSize(t *testing.T) {
	const big = uint64(1) << 40
	for _, c := range []struct {
		info           Info
		rest           []uint64 // words behind the header
		want, profiled int      // words; 0 if it has none
	}{
		{Info{ghc.Constr20, 2, 0}, nil, 3, 5},
		{Info{ghc.Constr, 5, 3}, nil, 9, 11},
		{Info{ghc.Fun, 2, 1}, nil, 4, 6},
		{Info{ghc.Thunk, 3, 1}, nil, 6, 8},
		{Info{ghc.Thunk10, 1, 0}, nil, 3, 5},
		{Info{ghc.ThunkSelector, 7, 0}, nil, 3, 5},
		{Info{ghc.AP, 0, 0}, []uint64{0, 5 << 32, 1}, 9, 11},
		{Info{ghc.PAP, 0, 0}, []uint64{2<<32 | 7, 1}, 5, 7},
		{Info{ghc.APStack, 0, 0}, []uint64{0, 11, 1}, 15, 17},
		{Info{ghc.Ind, 1, 0}, nil, 2, 4},
		{Info{ghc.Blackhole, 1, 0}, nil, 2, 4},
		{Info{ghc.BCO, 3, 0}, []uint64{1, 1, 1, 9<<32 | 1}, 9, 9},
		{Info{ghc.ArrWords, 0, 0}, []uint64{17}, 5, 7},
		{Info{ghc.ArrWords, 0, 0}, []uint64{1<<64 - 1}, 0, 0},
		{Info{ghc.MutArr, 0, 0}, []uint64{3, 4}, 7, 9},
		{Info{ghc.MutArr, 0, 0}, []uint64{3, big * 32}, 0, 0},
		{Info{ghc.SmallArr, 0, 0}, []uint64{3}, 5, 7},
		{Info{ghc.SmallArr, 0, 0}, nil, 0, 0},
		{Info{ghc.MVar, 3, 0}, nil, 4, 6},
		{Info{ghc.TSO, 0, 0}, nil, 15, 15},
		{Info{ghc.Stack, 0, 0}, []uint64{1<<32 | 100, 0}, 103, 105},
		{Info{ghc.TRecChunk, 0, 0}, nil, 51, 51},
		{Info{ghc.Continuation, 0, 0}, []uint64{0, 0, 6}, 10, 12},
		{Info{ghc.Compact, 0, 0}, []uint64{0, 0, 6}, 0, 0},
		{Info{ghc.Whitehole, 0, 0}, []uint64{0, 0, 6}, 0, 0},
	} {
		for profiled, want := range map[bool]int{false: c.want, true: c.profiled} {
			l := plain
			if profiled {
				l.Header = 3
			}
			words := append(make([]uint64, l.Header), c.rest...)
			got, ok := l.Size(c.info, words)
			if ok != (want > 0) || ok && got != want {
				t.Errorf("%v of %v, profiled %v: %d words, %v; want %d", c.info, c.rest, profiled, got, ok, want)
			}
		}
	}
}

// A walk visits every closure, counts what evaluated thunks and shrunk arrays have left behind
// with them, and says what it could not read.
func TestWalk(t *testing.T) {
	const (
		cons  = 0x1000
		thunk = 0x2000
		bh    = 0x3000
		bytes = 0x4000
	)
	tables := func(p uint64) (Info, bool) {
		i, ok := map[uint64]Info{cons: {ghc.Constr20, 2, 0}, thunk: {ghc.Thunk, 3, 0}, bh: {ghc.Blackhole, 1, 0}, bytes: {ghc.ArrWords, 0, 0}}[p]
		return i, ok
	}
	c := []uint64{cons, 7, 7}
	for _, k := range []struct {
		name   string
		words  [][]uint64
		want   string // closure:words+slop
		unread int
	}{
		{"nothing", nil, "", 0},
		{"closures", [][]uint64{c, {thunk, 0, 1, 2, 3}, c}, "1000:3 2000:5 1000:3", 0},
		{"evaluated thunk", [][]uint64{c, {bh, 9, 1, 2, 3}, c}, "1000:3 3000:2+3 1000:3", 0},
		{"evaluated thunk at the end", [][]uint64{{bh, 9, 1}}, "3000:2+1", 0},
		{"shrunk array", [][]uint64{{bytes, 8, 1, 2, 3}, c}, "4000:3+2 1000:3", 0},
		{"zeroed slop", [][]uint64{c, {0, 0}, c}, "1000:3+2 1000:3", 0},
		{"garbage", [][]uint64{c, {5, 6}, c}, "1000:3 1000:3", 2},
		{"garbage first", [][]uint64{{0, 5}, c}, "1000:3", 2},
		{"beyond the end", [][]uint64{c, {thunk, 0, 1}}, "1000:3", 3},
		{"length of anything", [][]uint64{c, {bytes, 1 << 63}, c}, "1000:3 1000:3", 2},
	} {
		var words []uint64
		for _, w := range k.words {
			words = append(words, w...)
		}
		got := ""
		unread := plain.Walk(words, tables, func(c Closure) {
			if got != "" {
				got += " "
			}
			got += fmt.Sprintf("%x:%d", c.Pointer, c.Words)
			if c.Slop > 0 {
				got += fmt.Sprintf("+%d", c.Slop)
			}
		})
		if got != k.want || unread != k.unread {
			t.Errorf("%s: visited %q and could not read %d; want %q and %d", k.name, got, unread, k.want, k.unread)
		}
	}
}

// FuzzWalk walks any words with any info tables: each word is in one closure, slop, or not
// read, and is so again when the same is walked again.
func FuzzWalk(f *testing.F) {
	f.Add([]byte{}, uint8(1))
	f.Add(seed(0x1010, 1, 2, 0x1020, 3, 0x1010, 4, 5), uint8(1))
	f.Add(seed(0x1020, 8, 1, 9, 9, 9, 0x1010, 4, 5), uint8(3))
	f.Fuzz(func(t *testing.T, data []byte, header uint8) {
		l := Layout{Header: int(header%4) + 1, TSO: 15, TRecChunk: 51}
		const tables = 64 // bytes of info tables
		m := memory{0x1000: data[:min(tables, len(data))]}
		var words []uint64
		for rest := data[min(tables, len(data)):]; len(rest) >= 8 && len(words) < ghc.BlockBytes/8; rest = rest[8:] {
			words = append(words, binary.LittleEndian.Uint64(rest))
		}
		walk := func() (all []Closure, unread int) {
			unread = l.Walk(words, func(p uint64) (Info, bool) { return ReadInfo(m, p) }, func(c Closure) { all = append(all, c) })
			return all, unread
		}
		all, unread := walk()
		sum := unread
		for _, c := range all {
			if c.Words <= 0 || c.Slop < 0 {
				t.Errorf("a closure has %d words and %d behind it", c.Words, c.Slop)
			}
			sum += c.Words + c.Slop
		}
		if sum != len(words) {
			t.Errorf("%d of %d words are accounted for", sum, len(words))
		}
		if again, un := walk(); un != unread || !reflect.DeepEqual(again, all) {
			t.Error("a second walk differs")
		}
	})
}

// seed makes fuzz input: tables of a constructor of two pointers at 0x1010, an array of bytes
// at 0x1020 and an evaluated thunk at 0x1030, then words.
func seed(words ...uint64) []byte {
	b := append(append(append(table(ghc.Constr20, 2, 0), table(ghc.ArrWords, 0, 0)...), table(ghc.Blackhole, 1, 0)...), make([]byte, 16)...)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

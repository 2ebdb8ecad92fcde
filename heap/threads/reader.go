package threads

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"ccagent/heap"
	"ccagent/internal/ghc"
)

// Program is what is to be read.
type Program struct {
	// Memory is the process's, by run-time addresses.
	Memory io.ReaderAt
	// Code reports whether an address is in mapped code, where info tables are.
	Code func(address uint64) bool
	// GHCVersion and the way decide where fields lie.
	GHCVersion         string
	Profiled, Threaded bool
}

// Limits bound what is read of a process.
type Limits struct {
	Threads    int // at all
	Frames     int // kept of the leaf side of a stack; as many again of the root side
	StackWords int // looked at, of all stacks together
}

// DefaultLimits are far above what programs have.
var DefaultLimits = Limits{Threads: 1 << 21, Frames: 256, StackWords: 1 << 28}

// Reader reads the threads of one process, as often as is asked.
type Reader struct {
	program Program
	limits  Limits
	layout  ghc.Layout
	sizes   heap.Layout
	pages   pages
	infos   map[uint64]info
}

// New makes a reader.
func New(p Program, l Limits) *Reader {
	r := &Reader{program: p, limits: l, infos: map[uint64]info{}, pages: pages{memory: p.Memory}}
	r.layout, _ = ghc.LayoutOf(p.GHCVersion, p.Profiled, p.Threaded)
	r.sizes, _ = heap.LayoutOf(p.GHCVersion, p.Profiled, p.Threaded)
	return r
}

// ErrMoving reports that what is read is being moved, or is no heap.
var ErrMoving = errors.New("the heap's objects are not where they were: a collection runs, or memory is damaged")

// pageBytes is a unit of reading. Threads and their stacks mostly lie together.
const (
	pageBytes = 4 << 10
	pageSlots = 256
)

// pages caches memory for one pass over it.
type pages struct {
	memory io.ReaderAt
	slots  [pageSlots]*page
}

type page struct {
	at    uint64
	valid bool
	data  [pageBytes]byte
}

func (p *pages) forget() {
	for _, s := range p.slots {
		if s != nil {
			s.valid = false
		}
	}
}

// maxAddress is above every address of a program.
const maxAddress = 1 << 56

// read fills buf with memory.
func (p *pages) read(at uint64, buf []byte) error {
	if at >= maxAddress || at+uint64(len(buf)) >= maxAddress {
		return fmt.Errorf("read memory: %#x is no address of a program", at)
	}
	for len(buf) > 0 {
		begin := at &^ (pageBytes - 1)
		slot := &p.slots[begin/pageBytes%pageSlots]
		if *slot == nil {
			*slot = new(page)
		}
		s := *slot
		if !s.valid || s.at != begin {
			s.valid = false
			if _, err := p.memory.ReadAt(s.data[:], int64(begin)); err != nil {
				return fmt.Errorf("read memory: %w", err)
			}
			s.at, s.valid = begin, true
		}
		n := copy(buf, s.data[at-begin:])
		buf, at = buf[n:], at+uint64(n)
	}
	return nil
}

func (r *Reader) word(at uint64) (uint64, error) {
	var b [8]byte
	err := r.pages.read(at, b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

func (r *Reader) half(at uint64) (uint32, error) {
	var b [4]byte
	err := r.pages.read(at, b[:])
	return binary.LittleEndian.Uint32(b[:]), err
}

// info is what an info table says.
type info struct {
	kind   ghc.ClosureType // 0 is none
	layout uint64
}

// maxInfos bounds the info tables that are remembered; a program has far fewer.
const maxInfos = 1 << 20

// info reads the info table of an info pointer; its kind is 0 if it is none.
func (r *Reader) info(pointer uint64) info {
	if i, ok := r.infos[pointer]; ok {
		return i
	}
	var i info
	if pointer%heap.InfoAlignment == 0 && pointer >= ghc.InfoLayout && r.program.Code(pointer) {
		var b [ghc.InfoLayout]byte
		if r.pages.read(pointer-ghc.InfoLayout, b[:]) == nil {
			i.layout = binary.LittleEndian.Uint64(b[:])
			i.kind = ghc.ClosureType(binary.LittleEndian.Uint32(b[ghc.InfoLayout-ghc.InfoType:]))
		}
	}
	if i.kind > ghc.AnnFrame {
		i = info{}
	}
	if len(r.infos) < maxInfos {
		r.infos[pointer] = i
	}
	return i
}

// kindOf is the closure type of the object at an address; 0 if there is none.
func (r *Reader) kindOf(at uint64) ghc.ClosureType {
	if at%8 != 0 {
		return 0
	}
	pointer, err := r.word(at)
	if err != nil {
		return 0
	}
	return r.info(pointer).kind
}

// field reads a word behind an object's header.
func (r *Reader) field(object uint64, offset int) (uint64, error) {
	return r.word(object + uint64(r.layout.Header) + uint64(offset))
}

// pointerTag masks what a pointer says about its closure (rts/include/rts/storage/ClosureMacros.h).
const pointerTag = 7

func untag(p uint64) uint64 { return p &^ pointerTag }

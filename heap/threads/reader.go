package threads

import (
	"encoding/binary"
	"errors"
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
	// Late reports whether what Memory has at a page is not of the moment that is read. It may be nil.
	Late func(page uint64) bool
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
	r := &Reader{program: p, limits: l, infos: map[uint64]info{}, pages: pages{memory: p.Memory, late: p.Late}}
	r.layout, _ = ghc.LayoutOf(p.GHCVersion, p.Profiled, p.Threaded)
	r.sizes, _ = heap.LayoutOf(p.GHCVersion, p.Profiled, p.Threaded)
	return r
}

// ErrMoving reports that what is read is being moved, or is no heap.
var ErrMoving = errors.New("the heap's objects are not where they were: a collection runs, or memory is damaged")

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

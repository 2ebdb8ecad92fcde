package dwarfindex

import (
	"fmt"
	"math"
)

// Span is a source note's stretch of source.
type Span struct {
	File    uint32 // index for Index.File
	Line    uint32 // from 1
	Col     uint32
	EndLine uint32
	EndCol  uint32 // one past the last column
}

// BlockID names a block of an Index; NoBlock is none. A procedure has a block
// of its own, which stands for its first stretch of code.
type BlockID uint32

// NoBlock is the absent block.
const NoBlock BlockID = 0

// ProcID names a procedure of an Index; NoProc is none.
type ProcID uint32

// NoProc is the absent procedure.
const NoProc ProcID = 0

// block is kept small: large programs have millions. Text and notes lie in
// shared arrays.
type block struct {
	lo, hi uint64
	parent BlockID // enclosing in the tree; NoBlock for a procedure's own
	proc   ProcID
	note   uint32 // first of the chain in notes; 0 is none
	depth  uint16 // in the tree
	flags  uint16
}

const flagDead = 1 // no live code: dropped by the linker, or optimised out

type note struct {
	span uint32
	next uint32
}

type proc struct {
	unit       uint32
	root       BlockID
	tickParent BlockID
	name       text // DW_AT_name: the path of declarations, or GHC's label
	linkage    text
	pos        Position // best note of the first block, from .debug_line
	adopted    bool     // the tick parent was worked out: see Adopt
}

// text is a string in the index's arena.
type text struct{ off, len uint32 }

// Position is a place in the source; the zero value is none.
type Position struct {
	File uint32
	Line uint32
	Col  uint32
}

// Unit is a compilation unit.
type Unit struct {
	Offset   uint64 // of its header, in .debug_info
	Name     string // as compiled: "./Main.hs"
	CompDir  string
	Producer string
	Haskell  bool
	Lo, Hi   uint64 // 0, 0 where unknown
	StmtList uint64 // offset of its line program
	HasLines bool
}

// Index maps addresses to blocks and blocks to causes. It is immutable once
// built, and safe for concurrent use.
type Index struct {
	units  []Unit
	procs  []proc  // from 1
	blocks []block // from 1
	notes  []note  // from 1
	spans  []Span  // from 1
	files  []string
	arena  []byte

	segs    segments
	notated bool // any note was read, not only positions

	// Entries counts the debugging information entries that were read.
	Entries int
	// Problems list what was left out, at most a few entries.
	Problems []string
}

// Block is one block as users of the index see it.
type Block struct {
	ID     BlockID
	Proc   ProcID
	Parent BlockID
	Lo, Hi uint64 // 0, 0 for a block that was optimised out
	Live   bool   // its code is in the program
}

// Proc is one procedure.
type Proc struct {
	ID         ProcID
	Unit       uint32 // index for Index.Unit
	Name       string // DW_AT_name: "heavy.go.step", or GHC's label where no note has a name
	Linkage    string // "Main_zdwheavy_info"
	Root       BlockID
	TickParent BlockID  // the block its code came from, in another procedure
	Pos        Position // of the first block's best note
	Live       bool
	// Adopted is set where GHC records no context and TickParent is the block that
	// encloses all references to the procedure.
	Adopted bool
}

// Blocks is the number of blocks; they have ids 1 … Blocks.
func (x *Index) Blocks() int { return len(x.blocks) - 1 }

// Procs is the number of procedures; they have ids 1 … Procs.
func (x *Index) Procs() int { return len(x.procs) - 1 }

// Spans is the number of distinct source notes; they have ids 1 … Spans.
func (x *Index) Spans() int { return len(x.spans) - 1 }

// Units is the number of compilation units; indices 0 … Units−1.
func (x *Index) Units() int { return len(x.units) }

// Unit returns a unit.
func (x *Index) Unit(i uint32) *Unit { return &x.units[i] }

// Files is the number of source files; indices 1 … Files−1, 0 is none.
func (x *Index) Files() int { return len(x.files) }

// File returns a source file's path as compiled, with "./" taken off.
func (x *Index) File(i uint32) string { return x.files[i] }

// Span returns a source note.
func (x *Index) Span(id uint32) Span { return x.spans[id] }

// Block returns a block.
func (x *Index) Block(id BlockID) Block {
	b := &x.blocks[id]
	return Block{ID: id, Proc: b.proc, Parent: b.parent, Lo: b.lo, Hi: b.hi, Live: b.flags&flagDead == 0}
}

// Proc returns a procedure.
func (x *Index) Proc(id ProcID) Proc {
	p := &x.procs[id]
	return Proc{
		ID: id, Unit: p.unit, Name: x.text(p.name), Linkage: x.text(p.linkage), Root: p.root,
		TickParent: p.tickParent, Adopted: p.adopted, Pos: p.pos, Live: x.blocks[p.root].flags&flagDead == 0,
	}
}

// Start is where the code of a procedure begins.
func (x *Index) Start(id ProcID) uint64 { return x.blocks[x.procs[id].root].lo }

// Notes appends the spans of the block's own notes to dst, in the order they
// are written.
func (x *Index) Notes(dst []uint32, id BlockID) []uint32 {
	for n := x.blocks[id].note; n != 0; n = x.notes[n].next {
		dst = append(dst, x.notes[n].span)
	}
	return dst
}

// Lookup returns the innermost block whose code covers addr, or NoBlock.
func (x *Index) Lookup(addr uint64) BlockID {
	if i := x.segs.find(addr); i < len(x.segs.blocks) {
		return x.segs.blocks[i]
	}
	return NoBlock
}

// Around gives the stretch of addresses around one of which Lookup says the same.
func (x *Index) Around(addr uint64) Range {
	r, i := Range{Hi: math.MaxUint64}, x.segs.find(addr)
	next := i + 1
	if i == len(x.segs.starts) {
		next = 0
	} else {
		r.Lo = x.segs.starts[i]
	}
	if next < len(x.segs.starts) {
		r.Hi = x.segs.starts[next]
	}
	return r
}

// Bytes is the memory that the index holds, roughly.
func (x *Index) Bytes() int {
	return cap(x.procs)*48 + cap(x.blocks)*32 + cap(x.notes)*8 + cap(x.spans)*20 + cap(x.arena) +
		cap(x.segs.starts)*8 + cap(x.segs.blocks)*4
}

func (x *Index) text(t text) string { return string(x.arena[t.off : t.off+t.len]) }

func (x *Index) intern(b []byte) text {
	if len(b) == 0 {
		return text{}
	}
	t := text{uint32(len(x.arena)), uint32(len(b))}
	x.arena = append(x.arena, b...)
	return t
}

const maxProblems = 16

func (x *Index) problem(format string, args ...any) {
	if len(x.Problems) < maxProblems {
		x.Problems = append(x.Problems, fmt.Sprintf(format, args...))
	}
}

// Notated reports whether any block has a source note.
func (x *Index) Notated() bool { return x.notated }

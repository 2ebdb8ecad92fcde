// Package evidence defines the interface to what a build's records say about a module's
// code.
//
// A build leaves several kinds of record: DWARF with GHC's source notes, the info
// table map, the symbol table. Each is a package below this one that implements
// Evidence. None of them knows the log: they answer in their own numbers (BlockID,
// ProcID, SpanID, FileID), which hold for one module and one kind of evidence.
// Package symbolize asks the most detailed first, and turns the numbers into the log's.
package evidence

import (
	"ccagent/eventlog"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/sources"
)

// Evidence is one kind of record of a module's code.
type Evidence interface {
	// At describes the code at a module address; false where this evidence has
	// nothing on it: only Lo and Hi may be set then.
	At(addr uint64) (Code, bool)
	// Procedure describes a procedure by its number, as At or Block gave it.
	Procedure(id ProcID) Procedure
}

// Sourced is evidence that places code in its source.
type Sourced interface {
	Evidence
	Block(id BlockID) Block
	Span(id SpanID) Span
	File(id FileID) sources.Description
}

// Numbers of one kind of evidence of one module. 0 is none.
type (
	BlockID uint32
	ProcID  uint32
	SpanID  uint32
	FileID  = sources.FileID
)

// Code is what lies at an address.
type Code struct {
	Block    BlockID // 0 where the evidence has no source position
	Proc     ProcID  // 0 where the evidence names no procedure
	Start    uint64  // where the procedure begins; 0 if unknown
	Quality  eventlog.Quality
	Category eventlog.Category
	// Lo and Hi are a stretch of addresses around this one, Hi not of them, of which the same is said. Lo = Hi where no such stretch is known.
	Lo, Hi uint64
}

// Block is a stretch of code whose instructions have the same causes.
type Block struct {
	Lo, Hi    uint64
	Proc      ProcID   // the procedure that it is part of
	Enclosing []ProcID // procedures that statically enclose Proc, innermost first
	Causes    []Cause  // nearest first
}

// Cause is a source note of a block or of what statically encloses it.
type Cause struct {
	Span     SpanID
	Distance uint32 // steps outwards; 0 is the block's own
}

// Span is a stretch of source that code came from.
type Span struct {
	Position
	EndLine, EndCol uint32 // one past the last column
}

// Position is a place in the source. The zero Position is unknown.
type Position struct {
	File      FileID
	Line, Col uint32
	// Label is a path of declarations that the evidence gives for the position, for
	// when the file's text does not show the binding.
	Label string
	// Owner is whose code it is, where the evidence says so; nil leaves that to the file.
	Owner *Owner
}

// Owner is a Haskell module and its package.
type Owner struct{ Package, Module string }

// Unnamed stands for code of a known module and an unknown binding.
const Unnamed = "(local code)"

// Kind is how a procedure is to be named.
type Kind uint8

const (
	// Exported is a Haskell procedure whose linkage name says what it is.
	Exported Kind = iota
	// Noted is an internal Haskell procedure that debug information describes.
	Noted
	// Tabled is an internal Haskell procedure that the info table map describes.
	Tabled
	// Foreign is a C function, or code of the run-time system or the kernel.
	Foreign
	// Stretch is code of a known Haskell module that no symbol covers.
	Stretch
)

// Procedure is what evidence says about a procedure.
type Procedure struct {
	Kind     Kind
	Symbol   string // linkage name, or an info table's label
	Category eventlog.Category
	Linkage  hsname.Name // of an exported procedure: what its linkage name says
	Owner    Owner       // of other Haskell procedures
	// Path is the path of declarations that the evidence gives: "heavy.go.step". A
	// stretch of code has the name that stands for it.
	Path string
	// Position is where the procedure was written.
	Position Position
	// Near is the first position in the procedure's code, where its beginning has none.
	Near Position
	// File is the source file of the procedure's compilation unit, to see what is
	// declared there.
	File FileID
	// Context is the procedure that the code came from, if another one.
	Context ProcID
	// Adopted is set where Context was worked out from references to the procedure.
	Adopted bool
	// Info is the address of the code that follows the procedure's info table.
	Info uint64
	// Closures says in words what closures the procedure's info table is of.
	Closures string
}

// Line is a position in a line table.
type Line struct {
	// FileID is the file's number in Haskell code; 0 in other code.
	FileID   FileID
	CompDir  string // where the compiler ran
	MD5      []byte // checksum of the file as it was compiled, nil if it is not known
	File     string
	Line     uint32 // 0 where the compiler did not know
	Function string // linkage name of an inlined function; empty for the procedure itself
}

// Lines is evidence of the source lines of C, C++ and Rust code, and of Haskell code without
// source notes.
type Lines interface {
	// Lines gives the position at an address, of inlined functions innermost first.
	Lines(addr uint64) []Line
}

// Symbols knows the names that a module defines.
type Symbols interface {
	// Defines reports whether there is a symbol of a name, data included.
	Defines(name string) bool
	// Begins reports whether a symbol of code begins at an address from lo to below hi.
	Begins(lo, hi uint64) bool
	// IsClass reports whether the module defines a type class of a name.
	IsClass(name string) bool
}

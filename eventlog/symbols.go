package eventlog

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// This file holds the symbol tables that are appended after capture, only for addresses that
// were seen: so a log is self-contained and can be read on another machine.

// Category is the kind of code that a location is in.
type Category uint8

const (
	CategoryUnresolved Category = iota // nothing is known about the address
	CategoryHaskell                    // compiled Haskell code
	CategorySTG                        // Haskell's own machine: Cmm primitives and stubs of the RTS (stg_*)
	CategoryGC                         // garbage collector
	CategoryRTS                        // scheduler, storage manager and other C code of the RTS
	CategoryForeign                    // C and other foreign code
	CategoryKernel
	categories
)

var categoryNames = [categories]string{"unresolved", "haskell", "stg", "gc", "rts", "foreign", "kernel"}

// String gives the name used in JSON.
func (c Category) String() string {
	if c < categories {
		return categoryNames[c]
	}
	return "unknown"
}

// ModuleSymbols is what the symboliser found in a module.
type ModuleSymbols struct {
	Module     uint32
	GHCVersion string
	Way        string
	HasSymtab  bool
	HasDWARF   bool
	HasNotes   bool // GHC source notes
	HasIPE     bool
	Problem    string // why something is missing, in words; empty if nothing is
}

// File is a source file, named as it was compiled.
type File struct {
	ID   uint32 // from 1
	Path string
	// TextSize is the size of the text that FileText events carry; 0 = none.
	TextSize uint64
	// Problem is why there is no text, or that the text is newer than the binary.
	Problem string
}

// FileText is a part of a file's text. Parts are in order.
type FileText struct {
	File   uint32
	Offset uint64
	Text   []byte // at most MaxTextPart
}

// MaxTextPart limits FileText.Text and CoreText.Text so that the event fits its u16 length.
const MaxTextPart = 60000

// Binding is a top-level procedure or C function: a thing with a linkage name.
type Binding struct {
	ID      uint32 // from 1
	Symbol  string // as in the symbol table: "base_GHCziBase_zpzp_info"; empty if recovered from source
	Package string // "base"; "main" for the program's own modules; empty for C
	Module  string // "GHC.Base"; empty for C
	Name    string // "++" ; for C the demangled function
	// Parent is the source binding that this one was made from, 0 if it is a source binding:
	// go for the worker $wgo, the top-level binding for a local one.
	Parent uint32
	Detail string // what GHC made of it, in words: "worker of", "specialised"; may be empty
	// Category of the code.
	Category Category
	// Program is the module of the log whose own binding it is: of Package "main", which each
	// program has one of. 0 for what several may have, or where it is not known.
	Program uint32
}

// Span is a source note: a stretch of source that code was made from. Of an
// imported function that was specialised, only the binding may be known: File
// and places are 0.
type Span struct {
	ID      uint32 // from 1
	File    uint32
	Line    uint32 // 1-based, first
	Col     uint32 // 1-based
	EndLine uint32
	EndCol  uint32 // one past the last column
	Binding uint32 // source binding that contains the span; 0 if unknown
}

// Cause is one member of a block's cause set.
type Cause struct {
	Span uint32
	// Distance is 0 for the block's own notes and grows by one with every
	// enclosing block, and across a tick_parent link.
	Distance uint32
}

// Block is a DWARF lexical block of GHC's code with its cause set.
type Block struct {
	ID      uint32 // from 1
	Module  uint32
	Lo, Hi  uint64 // module addresses
	Binding uint32 // the procedure
	// Enclosing are the procedures that statically enclose the block's, by
	// tick_parent, innermost first.
	Enclosing []uint32
	Causes    []Cause // nearest first
}

// Quality is how certain a location's symbol is.
type Quality uint8

const (
	QualityNone  Quality = iota // no symbol
	QualityExact                // a symbol or block that covers the address
	QualityNear                 // the symbol before the address; a stated guess
)

// Line is one source position of an address; of several, the innermost
// inlined function comes first.
type Line struct {
	Binding uint32
	File    uint32 // 0 = unknown
	Line    uint32 // 0 = unknown
}

// Location resolves one address that was seen.
type Location struct {
	Addr     uint64
	Block    uint32 // 0 = none
	Binding  uint32 // 0 = none
	Offset   uint64 // from the symbol's start
	Quality  Quality
	Category Category
	Lines    []Line // from .debug_line; may be empty
}

// Locations resolves addresses of one module.
type Locations struct {
	Module    uint32 // 0 with kernel addresses
	Locations []Location
}

// Core is what GHC's optimiser made of a top-level binding, as -ddump-simpl
// prints it. No GHC puts it into the program; it is from the build's dump files.
type Core struct {
	ID      uint32 // from 1
	Binding uint32 // the procedure whose Core it is; never 0
	File    uint32 // the source file of its module; 0 if unknown
	Name    string // the binder as printed: "$wgo_r1H6"
	Dump    string // the dump file
	Line    uint32 // where Text begins in it, from 1
	// TextSize is the size of the text that CoreText events carry.
	TextSize uint64
	// Problem is why the text is cut, or may not be what was compiled.
	Problem string
	// Notes are the source notes in the text that the log has spans of, in the
	// order of the text.
	Notes []CoreNote
	// Also are procedures that GHC lifted out of the binding after it wrote the
	// text: local functions in it.
	Also []uint32
}

// CoreNote is a source note in Core: the stretch of the text, after the note
// itself, that it scopes over. Lines and columns (in characters) count from 1,
// the end column is one past the last.
type CoreNote struct {
	Span    uint32
	Line    uint32
	Col     uint32
	EndLine uint32
	EndCol  uint32
}

// CoreText is a part of a Core's text. Parts are in order.
type CoreText struct {
	Core   uint32
	Offset uint64
	Text   []byte // at most MaxTextPart
}

// NamelessGCLock is the name of functions without a symbol in which threads of the parallel
// collector wait for each other.
const NamelessGCLock = "(garbage collector's locks without symbols)"

// MaxName bounds the names that CleanName gives, in bytes.
const MaxName = 4096

// CleanName makes a name that was read from a file fit for a log: valid UTF-8 of at most
// MaxName bytes.
func CleanName(s string) string {
	if len(s) > MaxName {
		s = s[:MaxName]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "�")
	}
	return s
}

// CloneSymbol copies an event of the symbol tables that is valid for the moment only.
func CloneSymbol(e Event) Event {
	switch e := e.(type) {
	case *ModuleSymbols:
		n := *e
		return &n
	case *File:
		n := *e
		return &n
	case *FileText:
		n := *e
		n.Text = slices.Clone(n.Text)
		return &n
	case *Binding:
		n := *e
		return &n
	case *Span:
		n := *e
		return &n
	case *Block:
		n := *e
		n.Enclosing, n.Causes = slices.Clone(n.Enclosing), slices.Clone(n.Causes)
		return &n
	case *Locations:
		n := *e
		n.Locations = slices.Clone(n.Locations)
		for i := range n.Locations {
			n.Locations[i].Lines = slices.Clone(n.Locations[i].Lines)
		}
		return &n
	case *Core:
		n := *e
		n.Notes = slices.Clone(n.Notes)
		return &n
	case *CoreText:
		n := *e
		n.Text = slices.Clone(n.Text)
		return &n
	}
	return e
}

package symbolize

import (
	"io"
	"time"

	"ccagent/symbolize/binary"
	"ccagent/symbolize/core"
	"ccagent/symbolize/evidence/dwarf"
	"ccagent/symbolize/sources"
)

// Address is one address that was seen.
type Address struct {
	Addr uint64 // module address
	// Call marks a return address in C code: one past the call that it stands
	// for, and perhaps one past its function. Haskell's return addresses are
	// info pointers, that is, the beginning of the code they stand for.
	Call bool
}

// Module is a file whose addresses were seen.
type Module struct {
	ID   uint32 // eventlog.Module.ID
	Path string
	File io.ReaderAt // nil if it could not be opened; see Problem
	Size int64
	// ModTime is the file's, to recognise sources that are newer. Zero if unknown.
	ModTime time.Time
	// Info is what binary.IdentifyFile says of File; nil has it looked at.
	Info *binary.Info
	// Debug is a separate debug file, nil if there is none.
	Debug     io.ReaderAt
	DebugSize int64
	// Problem says in words why File is nil, or what is wrong with it.
	Problem   string
	Addresses []Address
	// Root numbers the root directories of the programs that mapped the modules; 0 is
	// this process's own.
	Root int
}

// Job is what Run is asked to do.
type Job struct {
	Modules []Module
	Kernel  []KernelAddress
	// ReadSource reads a source file, at most maxSize bytes of it. Nil leaves
	// sources alone. It must refuse what the log's owner may not read: see
	// sources.Read.
	ReadSource func(ref sources.Ref, maxSize int64) (sources.Content, error)
	// EmbedSource puts the text of seen files into the log. Without it they are
	// read only to name the bindings in them.
	EmbedSource bool
	// SourceDirs are searched for sources that are not where the debug
	// information says, under their relative names.
	SourceDirs []string
	// FindDumps lists the Core dumps in a folder's tree (see the function of that
	// name). It looks into the folders that the program was compiled in, and into
	// CoreDirs. Nil leaves Core alone; so does not embedding sources.
	FindDumps func(module uint32, dir string) ([]core.Dump, error)
	CoreDirs  []string
	// Cache keeps indices of debug information between runs. Nil keeps none.
	Cache dwarf.Cache
	// Stretches asks for Summary.Stretches.
	Stretches bool
	// SymbolsOnly leaves debug information alone.
	SymbolsOnly bool
	// After are the last ids in use: those of a Run that broke off, whose events
	// stand.
	After IDs
	// Memory bounds, roughly, what is held at a time, in bytes; 0 means 512 MB.
	Memory uint64
}

// IDs are the last ids given, of each kind.
type IDs struct{ File, Binding, Span, Block, Core uint32 }

const defaultMemory = 512 << 20

// Summary counts what Run did.
type Summary struct {
	Addresses  int // asked for
	Resolved   int // to a block, a symbol or a module's part
	InBlocks   int // of those, to a block
	Blocks     int
	Spans      int
	Bindings   int
	Files      int
	FilesEmbed int
	Cores      int
	Problems   []Problem
	// Stretches are where answers hold for more than the addresses that were asked for, if Job.Stretches is set:
	// of some addresses.
	Stretches []Stretch `json:",omitempty"`
}

// Stretch is a part of a module's code of which all has one location, but for its offset.
type Stretch struct {
	Module uint32
	Addr   uint64 // which was asked for, and has the location
	Start  uint64 // where its procedure begins, from which offsets count; 0 if unknown
	Lo, Hi uint64 // module addresses of instructions (Address.Lookup); Hi is not in it
}

// maxStretches bounds those of a run, and with them the size of its summary.
const maxStretches = 8192

package columns

import (
	"ccagent/eventlog"
)

// Ids of the symbol tables, dense from 1 in the order of the log; 0 is none.
type (
	BindingID uint32
	SpanID    uint32
	FileID    uint32
)

// Binding is a procedure or function.
type Binding struct {
	Symbol   string
	Package  string
	Module   string
	Name     string
	Detail   string
	Parent   BindingID // what it was made from; 0 if it is a source binding
	Source   BindingID // the end of the chain of parents: itself for a source binding
	Category eventlog.Category
}

// Span is a source note.
type Span struct {
	File    FileID
	Binding BindingID // the source binding that contains it; 0 if unknown
	Extent
}

// File is a source file.
type File struct {
	Path    string
	Text    []byte // empty if not in the log
	Problem string // why there is no text, or that it is newer than the binary
	// Cut is set when the log promised more text than it holds.
	Cut  bool
	size uint64 // promised
}

// Cause is a member of a block's cause set.
type Cause struct {
	Span     SpanID
	Distance uint32
}

// Block is a lexical block of GHC's code.
type Block struct {
	Module    uint32 // the log's module id
	Lo, Hi    uint64
	Binding   BindingID
	enclosing [2]uint32 // range in symbols.enclosing
	causes    [2]uint32 // range in symbols.causes
}

// Location is what is known of a place.
type Location struct {
	Block    uint32 // 0 = none
	Binding  BindingID
	Offset   uint64
	lines    [2]uint32 // range in symbols.lines
	Quality  eventlog.Quality
	Category eventlog.Category
	found    bool
}

// Line is a source position from the line table.
type Line struct {
	Binding BindingID
	File    FileID
	Line    uint32
}

// ids maps the log's ids to dense ones. Logs number from 1 without gaps; what
// does not (damage, malice) goes through a map.
type ids struct {
	n      uint32
	dense  uint32 // ids 1..dense are themselves
	sparse map[uint32]uint32
}

// add gives the dense id of a new log id, or false if it was defined before.
func (t *ids) add(id uint32) (uint32, bool) {
	if id == 0 {
		return 0, false
	}
	if id == t.n+1 && t.dense == t.n {
		t.n++
		t.dense++
		return t.n, true
	}
	if _, ok := t.find(id); ok {
		return 0, false
	}
	if t.sparse == nil {
		t.sparse = make(map[uint32]uint32)
	}
	t.n++
	t.sparse[id] = t.n
	return t.n, true
}

func (t *ids) find(id uint32) (uint32, bool) {
	if id-1 < t.dense {
		return id, true
	}
	d, ok := t.sparse[id]
	return d, ok
}

// Symbols are the symbol tables. Index 0 of each is the zero value.
type Symbols struct {
	Bindings  []Binding
	Spans     []Span
	Files     []File
	Blocks    []Block
	causes    []Cause
	enclosing []BindingID
	lines     []Line
	Cores     []Core
	coreNotes []CoreNote
}

// BindingSpans gives source bindings their widest spans.
func (s *Symbols) BindingSpans() map[BindingID]SpanID {
	of := make(map[BindingID]SpanID)
	for i := 1; i < len(s.Spans); i++ {
		sp := &s.Spans[i]
		b := s.Bindings[sp.Binding].Source
		if b == 0 || sp.File == 0 {
			continue
		}
		if best := of[b]; best == 0 || s.Spans[best].File == sp.File && sp.Contains(s.Spans[best].Extent) {
			of[b] = SpanID(i)
		}
	}
	return of
}

// causesOf is a block's cause set, nearest first.
func (s *Symbols) Causes(b *Block) []Cause { return s.causes[b.causes[0]:b.causes[1]] }

// enclosingOf are the procedures that statically enclose a block's, innermost first.
func (s *Symbols) Enclosing(b *Block) []BindingID { return s.enclosing[b.enclosing[0]:b.enclosing[1]] }

// linesOf is what the line table tells of a location, innermost first.
func (s *Symbols) Lines(l *Location) []Line { return s.lines[l.lines[0]:l.lines[1]] }

// Owner is the procedure that a place's code belongs to; 0 if unknown.
func (p *Log) Owner(place uint32) BindingID {
	l := &p.Locations[place]
	if l.Block != 0 {
		if b := p.Symbols.Blocks[l.Block].Binding; b != 0 {
			return b
		}
	}
	return l.Binding
}

// Binding gives a binding; the zero Binding for 0.
func (p *Log) Binding(id BindingID) *Binding { return &p.Symbols.Bindings[id] }

// Bindings is one more than the highest BindingID.
func (p *Log) Bindings() int { return len(p.Symbols.Bindings) }

// Span gives a span; the zero Span for 0.
func (p *Log) Span(id SpanID) *Span { return &p.Symbols.Spans[id] }

// Spans is one more than the highest SpanID.
func (p *Log) Spans() int { return len(p.Symbols.Spans) }

// File gives a file; the zero File for 0.
func (p *Log) File(id FileID) *File { return &p.Symbols.Files[id] }

// Files is one more than the highest FileID.
func (p *Log) Files() int { return len(p.Symbols.Files) }

// centreCategory tells the RTS's own cost centres, which are modules of one
// centre, from a program's.
func centreCategory(label, module string) eventlog.Category {
	if label == module {
		switch label {
		case "GC":
			return eventlog.CategoryGC
		case "SYSTEM", "OVERHEAD", "IDLE", "DONT_CARE", "PINNED":
			return eventlog.CategoryRTS
		}
	}
	return eventlog.CategoryHaskell
}

// centreModule is the module that a cost centre's binding is told of.
func centreModule(label, module string) string {
	if label == module {
		return ""
	}
	return module
}

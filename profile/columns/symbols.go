package columns

import (
	"ccagent/eventlog"
)

// Ids of the symbol tables are consecutive from 1 in the order of the log; 0 means none.
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
	Parent   BindingID // the binding it was derived from; 0 for a source binding
	Source   BindingID // the end of the chain of parents; a source binding's own id
	Category eventlog.Category
	Program  uint32 // the log's module whose own binding it is; 0 for what several may have
}

// Span is a source note.
type Span struct {
	File    FileID
	Binding BindingID // the source binding that contains the span; 0 if unknown
	Extent
}

// File is a source file.
type File struct {
	Path    string
	Text    []byte // empty if not in the log
	Problem string // why the text is missing, or that it is newer than the binary
	// Cut is set when the log has less text than the stated size.
	Cut  bool
	size uint64 // stated by the log
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

// Location is the resolution of a place.
type Location struct {
	Block    uint32 // 0 means none
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

// ids maps the log's ids to consecutive ones. Logs number from 1 without gaps; only ids
// of damaged or hostile logs need the map.
type ids struct {
	n      uint32
	dense  uint32 // ids 1..dense map to themselves
	sparse map[uint32]uint32
}

// add returns the consecutive id for a new id of the log, or false if it was defined
// before.
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

// Symbols are the symbol tables. Element 0 of each is the zero value.
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

// BindingSpans returns the widest span of each source binding.
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

// Causes returns a block's cause set, nearest first.
func (s *Symbols) Causes(b *Block) []Cause { return s.causes[b.causes[0]:b.causes[1]] }

// Enclosing returns the procedures that statically enclose a block, innermost first.
func (s *Symbols) Enclosing(b *Block) []BindingID { return s.enclosing[b.enclosing[0]:b.enclosing[1]] }

// Lines returns the line table's positions for a location, innermost first.
func (s *Symbols) Lines(l *Location) []Line { return s.lines[l.lines[0]:l.lines[1]] }

// Owner returns the procedure that a place's code belongs to; 0 if unknown.
func (p *Log) Owner(place uint32) BindingID {
	l := &p.Locations[place]
	if l.Block != 0 {
		if b := p.Symbols.Blocks[l.Block].Binding; b != 0 {
			return b
		}
	}
	return l.Binding
}

// Binding returns a binding; the zero Binding for 0.
func (p *Log) Binding(id BindingID) *Binding { return &p.Symbols.Bindings[id] }

// Bindings returns one more than the highest BindingID.
func (p *Log) Bindings() int { return len(p.Symbols.Bindings) }

// Span returns a span; the zero Span for 0.
func (p *Log) Span(id SpanID) *Span { return &p.Symbols.Spans[id] }

// Spans returns one more than the highest SpanID.
func (p *Log) Spans() int { return len(p.Symbols.Spans) }

// File returns a file; the zero File for 0.
func (p *Log) File(id FileID) *File { return &p.Symbols.Files[id] }

// Files returns one more than the highest FileID.
func (p *Log) Files() int { return len(p.Symbols.Files) }

// centreCategory returns the category of a cost centre. The RTS's own cost centres, each
// in a module of its own, are not Haskell code.
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

// centreModule returns the module shown for a cost centre's binding.
func centreModule(label, module string) string {
	if label == module {
		return ""
	}
	return module
}

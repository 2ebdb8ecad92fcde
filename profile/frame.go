package profile

import (
	"path"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Frame is a stack frame as shown to users: a source binding, a C or kernel function, or
// what else is known of the code. Workers and specialisations have the name of the
// binding that they were derived from.
type Frame struct {
	Name     string
	Module   string // Haskell module; for other code the base name of the file ("libc.so.6")
	Package  string
	Symbol   string // raw symbol of the first such frame
	Detail   string // how GHC derived it: "worker of", …
	File     string // source file; empty if unknown
	FileID   columns.FileID
	Line     uint32 // start of the binding, otherwise the line of the first such frame; 0 if unknown
	Binding  columns.BindingID
	Category eventlog.Category
	Kind     Kind
	Search   bool   // code of the run-time system of a functional-logic program
	Program  string // as of an Element; Name ends with it
}

// Frames maps each place to its frame.
type Frames struct {
	List []Frame
	Of   []uint32 // by place: index in List
	// Inlined are the functions of C, C++ and Rust that were inlined at a place, as they called each other: the frame of the
	// place has the code of all.
	Inlined map[columns.PlaceID][]uint32
	byKey   map[frameKey]uint32
}

type frameKey struct {
	name, module, pkg string
	category          eventlog.Category
	program           string
}

// Frames without a place, at the start of Frames.List.
const (
	FrameRoot = iota
	FrameKernel
	FrameUnresolved
	FrameDeeper
	FrameSkippedWords
	FrameRepeats
	FrameCut // first of one frame for each stop reason
)

func (p *Profile) frameTable() *Frames {
	p.names.once.Do(func() {
		t := &Frames{byKey: make(map[frameKey]uint32), Inlined: make(map[columns.PlaceID][]uint32)}
		t.List = []Frame{
			FrameRoot:         {Name: "(root)", Kind: KindCategory},
			FrameKernel:       {Name: "(kernel)", Kind: KindCategory, Category: eventlog.CategoryKernel},
			FrameUnresolved:   {Name: "(unresolved)", Kind: KindCategory},
			FrameDeeper:       {Name: "… deeper frames", Kind: KindCategory},
			FrameSkippedWords: {Name: "… words skipped", Kind: KindCategory},
			FrameRepeats:      {Name: "… repetitions left out", Kind: KindCategory},
		}
		for r := range len(columns.Event{}.Stops) {
			t.List = append(t.List, Frame{Kind: KindCategory, Name: "… stack incomplete: " + eventlog.StopReason(r).String()})
		}
		modules := make(map[uint32]string, len(p.Modules))
		for i := range p.Modules {
			modules[p.Modules[i].ID] = path.Base(p.Modules[i].Path)
		}
		at := p.index(LevelBinding)
		home := make(map[columns.BindingID]*Element, len(at.elements))
		for i := range at.elements {
			if e := &at.elements[i]; e.Binding != 0 && e.Kind == KindSource {
				home[e.Binding] = e
			}
		}
		t.Of = make([]uint32, len(p.Places))
		for id := range p.Places {
			f := p.frameAt(uint32(id), modules, home)
			t.Of[id] = t.intern(f)
			for _, in := range p.inlinedInto(uint32(id), f) {
				t.Inlined[columns.PlaceID(id)] = append(t.Inlined[columns.PlaceID(id)], t.intern(in))
			}
		}
		t.byKey = nil
		p.names.frames = t
	})
	return p.names.frames
}

// FrameOf returns the frame of a place.
func (p *Profile) FrameOf(place columns.PlaceID) *Frame {
	t := p.frameTable()
	return &t.List[t.Of[place]]
}

// InlinedAt gives the frames of functions of C, C++ and Rust that are inlined at a place, each after its caller.
func (p *Profile) InlinedAt(place columns.PlaceID) (all []*Frame) {
	t := p.frameTable()
	for _, id := range t.Inlined[place] {
		all = append(all, &t.List[id])
	}
	return all
}

func (t *Frames) intern(f Frame) uint32 {
	k := frameKey{f.Name, f.Module, f.Package, f.Category, f.Program}
	id, ok := t.byKey[k]
	if !ok {
		id = uint32(len(t.List))
		t.List = append(t.List, f)
		t.byKey[k] = id
	}
	return id
}

func (p *Profile) frameAt(id uint32, modules map[uint32]string, home map[columns.BindingID]*Element) Frame {
	s, l := &p.Symbols, &p.Locations[id]
	owner := p.Owner(id)
	b := &s.Bindings[owner]
	f := Frame{Symbol: b.Symbol, Detail: b.Detail, Category: l.Category, Binding: b.Source}
	source := &s.Bindings[b.Source]
	f.Module, f.Package = source.Module, source.Package
	switch {
	case p.Places[id].Class == columns.PlaceLeaf:
		f.Kind, f.Name = KindCategory, leafElement(p.Places[id])
	case owner == 0:
		f.Kind = KindCategory
		f.Name = categoryElement(l.Category)
	case p.interprets(owner, l.Category):
		f.Kind, f.Name = KindCategory, bytecodeElement
	case l.Quality == eventlog.QualityNear:
		f.Kind, f.Binding = KindNear, owner
		f.Module, f.Package = b.Module, b.Package
		f.Name = b.NearName()
	default:
		f.Name = source.QualifiedName()
	}
	if f.Kind != KindCategory {
		f.Search = p.Searches(f.Binding)
		f.Program = p.programOf(b)
		f.Name = ofProgram(f.Name, f.Program)
	}
	if f.Module == "" {
		f.Module = modules[p.Places[id].Module]
		if p.Places[id].Class == columns.PlaceKernel && f.Module == "" {
			f.Module = "kernel"
		}
	}
	if e := home[f.Binding]; e != nil && e.FileID != 0 && f.Kind == KindSource {
		f.File, f.FileID, f.Line = e.File, e.FileID, e.Span.Line
	} else if file, line := p.position(id); file != 0 {
		f.File, f.FileID, f.Line = s.Files[file].Path, file, line
	}
	if lines := s.Lines(l); l.Block == 0 && len(lines) > 1 { // the first are of functions that are inlined
		if own := lines[len(lines)-1]; own.File != 0 {
			f.File, f.FileID, f.Line = s.Files[own.File].Path, own.File, own.Line
		}
	}
	return f
}

// inlinedInto gives the frames of the functions that are inlined into a frame's at a place, each after its caller.
func (p *Profile) inlinedInto(id uint32, into Frame) (all []Frame) {
	s, l := &p.Symbols, &p.Locations[id]
	if l.Block != 0 || into.Kind == KindCategory || l.Quality == eventlog.QualityNear {
		return nil
	}
	lines := s.Lines(l)
	for i := len(lines) - 2; i >= 0; i-- {
		b := &s.Bindings[lines[i].Binding]
		if b.Name == "" {
			continue
		}
		f := Frame{
			Name: ofProgram(b.QualifiedName(), into.Program), Module: into.Module, Symbol: b.Symbol, Detail: b.Detail, Category: into.Category,
			Kind: into.Kind, Program: into.Program, Binding: lines[i].Binding,
		}
		if lines[i].File != 0 {
			f.File, f.FileID, f.Line = s.Files[lines[i].File].Path, lines[i].File, lines[i].Line
		}
		all = append(all, f)
	}
	return all
}

// Position returns the source position of a place's code; the file is 0 if it is not known.
func (p *Profile) Position(place columns.PlaceID) (columns.FileID, uint32) {
	return p.position(uint32(place))
}

// position returns the source position of a frame. It is that of the nearest cause that
// belongs to the binding itself, because other causes may be inlined from elsewhere;
// otherwise that of the line table.
func (p *Profile) position(id uint32) (columns.FileID, uint32) {
	s, l := &p.Symbols, &p.Locations[id]
	if l.Block != 0 {
		bl := &s.Blocks[l.Block]
		causes := s.Causes(bl)
		for _, c := range causes {
			sp := &s.Spans[c.Span]
			if sp.File != 0 && (sp.Binding == 0 || s.Bindings[sp.Binding].Source == s.Bindings[p.Owner(id)].Source) {
				return sp.File, sp.Line
			}
		}
		if len(causes) > 0 {
			return 0, 0
		}
	}
	for _, ln := range s.Lines(l) {
		if ln.File != 0 && ln.Line != 0 {
			return ln.File, ln.Line
		}
	}
	return 0, 0
}

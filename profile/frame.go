package profile

import (
	"path"
	"slices"

	"ccagent/eventlog"
)

// Frame is a frame of a stack as it is shown: a source binding, a C or kernel
// function, or what is known instead. Workers and specialisations bear the name
// of the binding that they were made from.
type Frame struct {
	Name     string
	Module   string // Haskell module; of other code the file's base name ("libc.so.6")
	Package  string
	Symbol   string // of the first such frame, raw
	Detail   string // what GHC made of it: "worker of", …
	File     string // source; empty if unknown
	FileID   FileID
	Line     uint32 // where the binding begins, else of the first such frame; 0 if unknown
	Binding  BindingID
	Category eventlog.Category
	Kind     Kind
}

// frameTable gives for each place the frame to show.
type frameTable struct {
	frames []Frame
	of     []uint32 // by place
	byKey  map[frameKey]uint32
}

type frameKey struct {
	name, module, pkg string
	category          eventlog.Category
}

// Frames that stand for no place, first in every frame table.
const (
	frameRoot = iota
	frameKernel
	frameUnresolved
	frameDeeper
	frameSkippedWords
	frameRepeats
	frameCut // and one for each stop reason
)

func (p *Profile) frameTable() *frameTable {
	p.names.once.Do(func() {
		t := &frameTable{byKey: make(map[frameKey]uint32)}
		t.frames = []Frame{
			frameRoot:         {Name: "(root)", Kind: KindCategory},
			frameKernel:       {Name: "(kernel)", Kind: KindCategory, Category: eventlog.CategoryKernel},
			frameUnresolved:   {Name: "(unresolved)", Kind: KindCategory},
			frameDeeper:       {Name: "… deeper frames", Kind: KindCategory},
			frameSkippedWords: {Name: "… words skipped", Kind: KindCategory},
			frameRepeats:      {Name: "… repetitions left out", Kind: KindCategory},
		}
		for r := range len(Event{}.Stops) {
			t.frames = append(t.frames, Frame{Kind: KindCategory, Name: "… stack incomplete: " + eventlog.StopReason(r).String()})
		}
		modules := make(map[uint32]string, len(p.Modules))
		for i := range p.Modules {
			modules[p.Modules[i].ID] = path.Base(p.Modules[i].Path)
		}
		at := p.index(LevelBinding)
		home := make(map[BindingID]*Element, len(at.elements))
		for i := range at.elements {
			if e := &at.elements[i]; e.Binding != 0 && e.Kind == KindSource {
				home[e.Binding] = e
			}
		}
		t.of = make([]uint32, len(p.places))
		for id := range p.places {
			t.of[id] = t.intern(p.frameAt(uint32(id), modules, home))
		}
		t.byKey = nil
		p.names.frames = t
	})
	return p.names.frames
}

func (t *frameTable) intern(f Frame) uint32 {
	k := frameKey{f.Name, f.Module, f.Package, f.Category}
	id, ok := t.byKey[k]
	if !ok {
		id = uint32(len(t.frames))
		t.frames = append(t.frames, f)
		t.byKey[k] = id
	}
	return id
}

func (p *Profile) frameAt(id uint32, modules map[uint32]string, home map[BindingID]*Element) Frame {
	s, l := &p.symbols, &p.locs[id]
	owner := p.owner(id)
	b := &s.bindings[owner]
	f := Frame{Symbol: b.Symbol, Detail: b.Detail, Category: l.category, Binding: b.Source}
	source := &s.bindings[b.Source]
	f.Module, f.Package = source.Module, source.Package
	switch {
	case owner == 0:
		f.Kind = KindCategory
		f.Name = categoryElement(l.category)
	case l.quality == eventlog.QualityNear:
		f.Kind, f.Binding = KindNear, owner
		f.Module, f.Package = b.Module, b.Package
		f.Name = nearName(b)
	default:
		f.Name = bindingName(source)
	}
	if f.Module == "" {
		f.Module = modules[p.places[id].module]
		if p.places[id].class == placeKernel && f.Module == "" {
			f.Module = "kernel"
		}
	}
	if e := home[f.Binding]; e != nil && e.FileID != 0 && f.Kind == KindSource {
		f.File, f.FileID, f.Line = e.File, e.FileID, e.Span.Line
	} else if file, line := p.position(id); file != 0 {
		f.File, f.FileID, f.Line = s.files[file].Path, file, line
	}
	return f
}

// position is the source position of a frame: the nearest cause that is the
// binding's own, for code may be inlined from anywhere; else what the line table
// says.
func (p *Profile) position(id uint32) (FileID, uint32) {
	s, l := &p.symbols, &p.locs[id]
	if l.block != 0 {
		bl := &s.blocks[l.block]
		for _, c := range s.causes[bl.causes[0]:bl.causes[1]] {
			sp := &s.spans[c.Span]
			if sp.File != 0 && (sp.Binding == 0 || s.bindings[sp.Binding].Source == s.bindings[p.owner(id)].Source) {
				return sp.File, sp.Line
			}
		}
		if bl.causes[1] > bl.causes[0] {
			return 0, 0
		}
	}
	i := slices.IndexFunc(s.lines[l.lines[0]:l.lines[1]], func(ln Line) bool { return ln.File != 0 && ln.Line != 0 })
	if i < 0 {
		return 0, 0
	}
	ln := s.lines[l.lines[0]:][i]
	return ln.File, ln.Line
}

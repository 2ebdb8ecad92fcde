package profile

import (
	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Code returns what is known of the code at a place. It must not be changed.
func (p *Profile) Code(place uint32) *Frame {
	t := p.frameTable()
	return &t.List[t.Of[place]]
}

// Written returns where the code at a place was written: the nearest cause in the binding
// itself, or what the line table has, of which only the line is known. The file is 0 if
// neither is known.
func (p *Profile) Written(place uint32) (columns.FileID, columns.Extent) {
	s, l := &p.Symbols, &p.Locations[place]
	if l.Block != 0 {
		for _, c := range s.Causes(&s.Blocks[l.Block]) {
			sp := &s.Spans[c.Span]
			if sp.File != 0 && (sp.Binding == 0 || s.Bindings[sp.Binding].Source == s.Bindings[p.Owner(place)].Source) {
				return sp.File, sp.Extent
			}
		}
	}
	file, line := p.position(place)
	return file, columns.Extent{Line: line}
}

// Around returns the nearest cause of the code at a place that has a source, of whatever binding: of a library's function that was
// specialised for a program, where the program uses it. The file is 0 if there is none.
func (p *Profile) Around(place uint32) (columns.FileID, columns.Extent) {
	s := &p.Symbols
	for _, c := range s.Causes(&s.Blocks[p.Locations[place].Block]) {
		if sp := &s.Spans[c.Span]; sp.File != 0 {
			return sp.File, sp.Extent
		}
	}
	return 0, columns.Extent{}
}

// MadeIn is the binding whose code makes thunks that have the code at a place, where that is the run-time system's own and one
// line makes all of them; else nil.
func (p *Profile) MadeIn(place uint32) *columns.Binding {
	s, l := &p.Symbols, &p.Locations[place]
	lines := s.Lines(l)
	if l.Category != eventlog.CategorySTG || l.Block != 0 || len(lines) != 1 || lines[0].Binding == 0 {
		return nil
	}
	if b := &s.Bindings[lines[0].Binding]; b.Category == eventlog.CategoryHaskell {
		return b
	}
	return nil
}

package profile

import "ccagent/profile/columns"

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

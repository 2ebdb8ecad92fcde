package profile

import (
	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// item is a member of a place's cause set before it is mapped to a level: a source span,
// a binding for code without notes, or only a category.
type item struct {
	span     columns.SpanID
	binding  columns.BindingID // of the span, otherwise of the code; 0 if unknown
	kind     Kind
	category eventlog.Category
	search   bool // it is code of the run-time system of a functional-logic program; see curry.go
	waiting  bool // threads of the collector wait for each other here; see collector.go
	// named is the element's name where it is none of a category's; see rtsallocation.go and wait.go.
	named string
}

// items calls yield for each member of a place's cause set.
func (p *Profile) items(id uint32, yield func(it item)) {
	if p.search.of != nil {
		found := yield
		yield = func(it item) {
			it.search = p.Searches(it.binding)
			found(it)
		}
	}
	l := &p.Locations[id]
	s := &p.Symbols
	owner := p.Owner(id)
	some := false
	if l.Block != 0 && l.Quality != eventlog.QualityNear {
		bl := &s.Blocks[l.Block]
		for _, c := range s.Causes(bl) {
			if c.Span == 0 {
				continue
			}
			some = true
			yield(item{span: c.Span, binding: s.Bindings[s.Spans[c.Span].Binding].Source, kind: KindSource, category: eventlog.CategoryHaskell})
		}
	}
	if some {
		return
	}
	switch {
	case p.Places[id].Class == columns.PlaceLeaf:
		yield(item{kind: KindCategory, category: l.Category, named: leafElement(p.Places[id])})
	case l.Category == eventlog.CategoryHaskell && owner != 0 && l.Quality == eventlog.QualityNear:
		yield(item{binding: owner, kind: KindNear, category: l.Category})
	case l.Category == eventlog.CategoryHaskell && owner != 0:
		yield(item{binding: s.Bindings[owner].Source, kind: KindSource, category: l.Category})
	case owner != 0 && rtsAllocates[s.Bindings[owner].Name] != "" && l.Category != eventlog.CategoryHaskell:
		yield(item{binding: owner, kind: KindCategory, category: l.Category, named: rtsAllocates[s.Bindings[owner].Name]})
	case p.interprets(owner, l.Category):
		yield(item{binding: owner, kind: KindCategory, category: l.Category, named: bytecodeElement})
	case p.waits(id):
		// Time of the collector, and of its waiting: both rows have it.
		yield(item{binding: owner, kind: KindCategory, category: eventlog.CategoryGC, waiting: true})
		yield(item{binding: owner, kind: KindCategory, category: eventlog.CategoryGC})
	default:
		yield(item{binding: owner, kind: KindCategory, category: l.Category})
	}
}

// categoryElement returns the name of the element for code without source. Haskell code
// without any symbol counts as (STG), as the STG machine's own code does.
func categoryElement(c eventlog.Category) string {
	switch c {
	case eventlog.CategoryGC:
		return "(GC)"
	case eventlog.CategoryHaskell, eventlog.CategorySTG:
		return "(STG)"
	case eventlog.CategoryRTS:
		return "(RTS)"
	case eventlog.CategoryForeign:
		return "(foreign)"
	case eventlog.CategoryKernel:
		return "(kernel)"
	default:
		return "(unresolved)"
	}
}

// hiddenElement is the element of samples whose frames are all hidden.
const hiddenElement = "(hidden)"

// ModuleOfFile returns for each file a binding that lies in it. It gives the module and
// package of spans whose own binding is unknown.
func (p *Profile) ModuleOfFile() []columns.BindingID {
	p.fileModules.once.Do(func() {
		s := &p.Symbols
		of := make([]columns.BindingID, len(s.Files))
		for i := range s.Spans {
			if f, b := s.Spans[i].File, s.Spans[i].Binding; f != 0 && of[f] == 0 && s.Bindings[b].Module != "" {
				of[f] = b
			}
		}
		p.fileModules.of = of
	})
	return p.fileModules.of
}

// CauseLine is an element of a cause set with the line of its nearest span.
type CauseLine struct {
	Element *Element
	Line    uint32 // 0 if unknown
}

// CauseLines appends to dst the elements of a place at a level, nearest first, as Hot
// attributes them. It appends nothing for a place without code or with all causes hidden.
func (s *Selection) CauseLines(dst []CauseLine, level Level, place columns.PlaceID) []CauseLine {
	ix := s.index(level)
	p := s.Profile
	for _, id := range ix.of(uint32(place)) {
		e := &ix.elements[id]
		c := CauseLine{Element: e, Line: e.Span.Line}
		if level == LevelBinding && e.Kind == KindSource {
			c.Line = 0
			p.items(uint32(place), func(it item) {
				if c.Line == 0 && it.span != 0 && it.binding == e.Binding {
					c.Line = p.Symbols.Spans[it.span].Line
				}
			})
			if c.Line == 0 {
				c.Line = e.Span.Line
			}
		}
		dst = append(dst, c)
	}
	return dst
}

package profile

import (
	"strings"

	"ccagent/eventlog"
)

// item is one member of a place's cause set before a level is chosen: a source
// span, or for code without notes its binding, or nothing but a category.
type item struct {
	span     SpanID
	binding  BindingID // of the span; else the code's own; 0 if unknown
	kind     Kind
	category eventlog.Category
}

// items calls yield for the cause set of a place. owner is the procedure whose
// code the place is.
func (p *Profile) items(id uint32, yield func(it item)) {
	l := &p.locs[id]
	s := &p.symbols
	owner := p.owner(id)
	some := false
	if l.block != 0 && l.quality != eventlog.QualityNear {
		bl := &s.blocks[l.block]
		for _, c := range s.causes[bl.causes[0]:bl.causes[1]] {
			if c.Span == 0 {
				continue
			}
			some = true
			yield(item{span: c.Span, binding: s.bindings[s.spans[c.Span].Binding].Source, kind: KindSource, category: eventlog.CategoryHaskell})
		}
	}
	if some {
		return
	}
	switch {
	case l.category == eventlog.CategoryHaskell && owner != 0 && l.quality == eventlog.QualityNear:
		yield(item{binding: owner, kind: KindNear, category: l.category})
	case l.category == eventlog.CategoryHaskell && owner != 0:
		yield(item{binding: s.bindings[owner].Source, kind: KindSource, category: l.category})
	default:
		yield(item{binding: owner, kind: KindCategory, category: l.category})
	}
}

// owner is the procedure that a place's code belongs to; 0 if unknown.
func (p *Profile) owner(id uint32) BindingID {
	l := &p.locs[id]
	if l.block != 0 {
		if b := p.symbols.blocks[l.block].Binding; b != 0 {
			return b
		}
	}
	return l.binding
}

// categoryElement names what has no source. The runtime system's own code,
// Haskell's machine and Haskell code without any symbol are all (STG).
func categoryElement(c eventlog.Category) string {
	switch c {
	case eventlog.CategoryGC:
		return "(GC)"
	case eventlog.CategoryHaskell, eventlog.CategorySTG, eventlog.CategoryRTS:
		return "(STG)"
	case eventlog.CategoryForeign:
		return "(foreign)"
	case eventlog.CategoryKernel:
		return "(kernel)"
	default:
		return "(unresolved)"
	}
}

// hiddenElement holds samples all of whose frames are hidden.
const hiddenElement = "(hidden)"

// bindingName is a binding as a Haskell programmer writes it.
func bindingName(b *Binding) string {
	name := b.Name
	if name == "" {
		name = b.Symbol
	}
	switch {
	case b.Module == "":
		return name
	case name == "":
		return b.Module + ".?"
	case isDescription(name):
		return b.Module + " " + name
	default:
		return b.Module + "." + name
	}
}

// isDescription reports whether a binding's name is no name but says what the
// code is: "(local code)".
func isDescription(name string) bool {
	return strings.HasPrefix(name, "(") && strings.Contains(name, " ")
}

// nearName names code of which only the symbol before it is known. It must not
// be taken for that symbol.
func nearName(b *Binding) string {
	name := b.Name
	if name == "" {
		name = b.Symbol
	}
	switch {
	case name == "":
		return b.Module + " (unnamed)"
	case b.Module != "" && isDescription(name):
		return b.Module + " " + name
	case b.Module == "":
		return "(near " + name + ")"
	default:
		return b.Module + " (near " + name + ")"
	}
}

// moduleOfFile gives for each file a binding that lies in it, to tell the
// module and package of spans whose own binding is unknown.
func (p *Profile) moduleOfFile() []BindingID {
	p.fileModules.once.Do(func() {
		s := &p.symbols
		of := make([]BindingID, len(s.files))
		for i := range s.spans {
			if f, b := s.spans[i].File, s.spans[i].Binding; f != 0 && of[f] == 0 && s.bindings[b].Module != "" {
				of[f] = b
			}
		}
		p.fileModules.of = of
	})
	return p.fileModules.of
}

package naming

import (
	"strings"

	"ccagent/eventlog"
	"ccagent/symbolize/evidence"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/hssource"
	"ccagent/symbolize/sources"
)

// exported names a procedure by its linkage name, and finds the source binding it was
// made from.
func (n *Namer) exported(p *evidence.Procedure) (uint32, error) {
	k := key{pkg: p.Linkage.Package, mod: p.Linkage.Module, name: p.Linkage.Name}
	if id, ok := n.bindings.find(k); ok {
		return id, nil
	}
	at, err := n.Source(p.Position)
	if err != nil {
		return 0, err
	}
	var own *sources.File
	if p.File != 0 {
		if own, err = n.files.File(p.File); err != nil {
			return 0, err
		}
	}
	if id, ok := n.bindings.find(k); ok { // the position's is the same
		return id, nil
	}
	b := eventlog.Binding{
		Symbol: p.Symbol, Package: p.Linkage.Package, Module: p.Linkage.Module, Name: p.Linkage.Name,
		Category: eventlog.CategoryHaskell,
	}
	if p.Linkage.Kind == hsname.KindConInfo {
		b.Detail = "constructor"
		return n.bindings.add(k, b)
	}
	is := func(id uint32) bool { return n.bindings.named[id] == named{p.Linkage.Module, p.Linkage.Name} }
	if at != 0 && is(at) {
		return at, nil
	}
	if b.Parent, b.Detail, err = n.madeFrom(p, own.Text(), at); err != nil {
		return 0, err
	}
	if b.Parent != 0 && is(b.Parent) {
		return b.Parent, nil
	}
	return n.bindings.add(k, b)
}

// madeFrom finds the source binding that GHC made a procedure of, and says in words
// how: by the declarations in the source, by where its note lies, by the name
// itself, by what refers to it. Parent 0 means that it is one itself, or that
// it is unknown.
func (n *Namer) madeFrom(p *evidence.Procedure, text *hssource.Module, at uint32) (parent uint32, words string, err error) {
	l := p.Linkage
	o := hsname.Explain(l.Name)
	declares := func(name string) bool { return text != nil && text.Declares(name) }
	switch {
	case declares(l.Name):
		return 0, "", nil
	case at != 0:
		if o.Words == "" {
			o.Words = "made by GHC from"
		}
		return at, o.Words, nil
	case o.Instance != "":
		parent, err = n.bindings.source(l.Package, l.Module, hsname.Member(o.Source, o.Instance, n.symbols.IsClass), "")
		return parent, o.Words, err
	case o.Words != "" && o.Source != "":
		for _, name := range []string{o.Source, strings.TrimRight(o.Source, "0123456789")} {
			if name != "" && (declares(name) || n.evident(l, name)) {
				parent, err = n.source(l.Package, l.Module, name)
				return parent, o.Words, err
			}
		}
	}
	if text != nil {
		if name, words := derived(text, l.Name); name != "" {
			parent, err = n.source(l.Package, l.Module, name)
			return parent, words, err
		}
	}
	// A numbered name is a local function's: it says less than where it was.
	numbered := o.Path == "" && strings.TrimRight(o.Source, "0123456789") != o.Source
	if p.Adopted && (numbered || !o.Specialised()) {
		if parent, err = n.enclosing(p.Context); parent != 0 || err != nil {
			words = "used only by"
			if o.Source != "" && o.Words != "" {
				words = o.Words + " " + o.Source + ", " + words
			}
			return parent, words, err
		}
	}
	switch {
	case o.Words == "" || o.Source == "":
		return 0, o.Words, nil
	case o.Specialised():
		// Of an imported function, most likely: this module has none of the name.
		parent, err = n.bindings.source(l.Package, l.Module, o.Source+specialisedSuffix, "")
	default:
		parent, err = n.source(l.Package, l.Module, o.Source)
	}
	return parent, o.Words, err
}

// evident reports whether a module has a binding of that name: a symbol of its
// own stands for it.
func (n *Namer) evident(l hsname.Name, name string) bool {
	base := hsname.Linkage(l.Unit, l.Module, name)
	return n.symbols.Defines(base+"_closure") || n.symbols.Defines(base+"_info")
}

// derived finds the declaration that GHC named something after: "main" for
// "main9" (floated out of it) and for "main_go" (local to it).
func derived(text *hssource.Module, name string) (source, words string) {
	if base := strings.TrimRight(name, "0123456789"); base != name && text.Declares(base) {
		return base, "floated out of"
	}
	for i := len(name) - 1; i > 0; i-- {
		if name[i] == '_' && text.Declares(name[:i]) {
			return name[:i], name[i+1:] + ", local to"
		}
	}
	return "", ""
}

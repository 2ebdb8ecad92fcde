package symbolize

import (
	"strings"

	"ccagent/eventlog"
	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/hsname"
	"ccagent/symbolize/hssource"
)

// external names an exported procedure, and finds the source binding it was
// made from. p is nil where only the symbol is known.
func (m *moduleRun) external(symbol string, n hsname.Name, p *dwarfindex.Proc) (uint32, error) {
	if id, ok := m.r.bindings.ids[externalKey(n)]; ok {
		return id, nil
	}
	var at uint32
	var own *sourceFile
	var err error
	if p != nil {
		if at, err = m.position(p.Pos); err != nil {
			return 0, err
		}
		if own, err = m.unitFile(p.Unit); err != nil {
			return 0, err
		}
	}
	return m.externalAt(symbol, n, p, own, at)
}

func externalKey(n hsname.Name) bindingKey {
	return bindingKey{pkg: n.Package, mod: n.Module, name: n.Name}
}

// externalAt names an exported procedure whose note lies in the source binding
// at, of the file own; 0 and nil if that is not known.
func (m *moduleRun) externalAt(symbol string, n hsname.Name, p *dwarfindex.Proc, own *sourceFile, at uint32) (uint32, error) {
	k := externalKey(n)
	if id, ok := m.r.bindings.ids[k]; ok {
		return id, nil
	}
	b := eventlog.Binding{Symbol: symbol, Package: n.Package, Module: n.Module, Name: n.Name, Category: eventlog.CategoryHaskell}
	if n.Kind == hsname.KindConInfo {
		b.Detail = "constructor"
		return m.r.bindings.add(k, b)
	}
	var err error
	if at != 0 && m.r.bindings.named[at] == (named{n.Module, n.Name}) {
		return at, nil // it is that source binding
	}
	b.Parent, b.Detail, err = m.madeFrom(n, p, own, at)
	if err != nil {
		return 0, err
	}
	if b.Parent != 0 && m.r.bindings.named[b.Parent] == (named{n.Module, n.Name}) {
		return b.Parent, nil
	}
	return m.r.bindings.add(k, b)
}

// madeFrom finds the source binding that GHC made a name of, and says in words
// how: by the declarations in the source, by where its note lies, by the name
// itself, by what refers to it. Parent 0 means that it is one itself, or that
// nothing tells.
func (m *moduleRun) madeFrom(n hsname.Name, p *dwarfindex.Proc, own *sourceFile, at uint32) (parent uint32, words string, err error) {
	o := hsname.Explain(n.Name)
	declares := func(name string) bool { return own != nil && own.text != nil && own.text.Declares(name) }
	switch {
	case declares(n.Name):
		return 0, "", nil
	case at != 0:
		if o.Words == "" {
			o.Words = "made by GHC from"
		}
		return at, o.Words, nil
	case o.Instance != "":
		parent, err = m.r.bindings.source(n.Package, n.Module, instanceName(o, m.syms.isClass), "")
		return parent, o.Words, err
	case o.Words != "" && o.Source != "":
		for _, name := range []string{o.Source, strings.TrimRight(o.Source, "0123456789")} {
			if name != "" && (declares(name) || m.evident(n, name)) {
				parent, err = m.sourceBinding(n.Package, n.Module, name)
				return parent, o.Words, err
			}
		}
	}
	if own != nil && own.text != nil {
		if name, words := derived(own.text, n.Name); name != "" {
			parent, err = m.sourceBinding(n.Package, n.Module, name)
			return parent, words, err
		}
	}
	// A numbered name is a local function's: it says less than where it was.
	numbered := o.Path == "" && strings.TrimRight(o.Source, "0123456789") != o.Source
	if p != nil && p.Adopted && (numbered || !o.Specialised()) {
		if parent, err = m.enclosingSource(p.TickParent); parent != 0 || err != nil {
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
		parent, err = m.r.bindings.source(n.Package, n.Module, o.Source+specialisedName, "")
	default:
		parent, err = m.sourceBinding(n.Package, n.Module, o.Source)
	}
	return parent, o.Words, err
}

// specialisedName follows the names of functions that are known by their
// specialisations only.
const specialisedName = " (specialised)"

// instanceName is an instance, or a method of it, as people read it:
// "compare (instance Ord Shape)".
func instanceName(o hsname.Origin, isClass func(string) bool) string {
	name := "(instance " + hsname.Instance(o.Instance, isClass) + ")"
	if o.Source != "" {
		name = o.Source + " " + name
	}
	return name
}

// below names what is local to a binding: "show.go (instance Show Shape)".
func below(outer, path string) string {
	if name, where, ok := strings.Cut(outer, " ("); ok {
		return name + path + " (" + where
	}
	if strings.HasPrefix(outer, "(") && strings.Contains(outer, " ") {
		return strings.TrimPrefix(path, ".") + " " + outer
	}
	return outer + path
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

package profile

import (
	"slices"

	"ccagent/profile/columns"
	"ccagent/profile/curry"
)

// searchElement is the element of the run-time system of a functional-logic program: choices,
// constraints, decisions and search, in Haskell code that no Curry programmer wrote.
const searchElement = "(search)"

// searchCode is what a profile knows of a program that the Curry compiler KiCS2 made; the zero
// value of any other.
type searchCode struct {
	of     []bool              // by binding: it is code of search
	joined []columns.BindingID // by binding: that for both versions of its function
}

// withCurryNames returns a log with the names of a Curry program's code as Curry has them, and what
// of it is search. The log itself if it has no such program: one with code of a module Curry_… and
// of the run-time system, or in which the agent has found constructors of KiCS2's.
func withCurryNames(l *columns.Log) (*columns.Log, searchCode) {
	generated, runtime := map[string]*columns.Binding{}, l.Search.Windows > 0 // by Curry's name of the module
	for i := range l.Symbols.Bindings {
		b := &l.Symbols.Bindings[i]
		if module, is := curry.Module(b.Module); is {
			generated[module] = b
		} else {
			runtime = runtime || curry.Runtime(b.Module)
		}
	}
	if len(generated) == 0 || !runtime {
		return l, searchCode{}
	}
	out := *l
	out.Symbols.Bindings = slices.Clone(l.Symbols.Bindings)
	bs := out.Symbols.Bindings
	code := searchCode{make([]bool, len(bs)), make([]columns.BindingID, len(bs))}
	type function struct{ pkg, module, name string }
	first := map[function]columns.BindingID{}
	for i := range bs {
		b := &bs[i]
		code.joined[i] = columns.BindingID(i)
		code.of[i] = curry.Searches(b.Module, b.Name)
		module, _ := curry.Module(b.Module)
		name, version := curry.Function(b.Name)
		if code.of[i] {
			b.Module = module
			continue
		}
		b.Module, b.Name = module, name
		if like := generated[module]; b.Package == "" && version != curry.Neither && like != nil {
			b.Package, b.Program = like.Package, like.Program // known by a note that names Curry's file
		}
		k := function{b.Package, module, name}
		if at, ok := first[k]; ok {
			code.joined[i] = at
		} else if version != curry.Neither {
			first[k] = columns.BindingID(i)
		}
	}
	for i := range bs { // after joining, which goes by the name alone
		if _, version := curry.Function(l.Symbols.Bindings[i].Name); version == curry.NonDeterministic && !code.of[i] {
			bs[i].Name += curry.NonDeterministicMark
		}
	}
	return &out, code
}

// IsCurry reports whether the log is of a program that the Curry compiler KiCS2 made.
func (p *Profile) IsCurry() bool { return p.search.of != nil }

// Searches reports whether a binding is code of search.
func (p *Profile) Searches(b columns.BindingID) bool {
	return p.search.of != nil && p.search.of[b]
}

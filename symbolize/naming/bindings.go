package naming

import (
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/symbolize/hsname"

	"github.com/ianlancetaylor/demangle"
)

// Bindings gives ids to bindings and writes each into the log once, its parent first.
type Bindings struct {
	emit  func(eventlog.Event) error
	after uint32 // last id in use before
	ids   map[key]uint32
	// Program is the log's module whose own code is being named; 0 where programs are not distinguished
	// apart.
	Program uint32
	roots   map[uint32]uint32 // id to the source binding at the end of its parents
	named   map[uint32]named
}

type named struct{ module, name string }

// key identifies a binding: Haskell's by their names, internal ones and C's by their
// module's symbol.
type key struct {
	module  uint32 // of the log; 0 for exported names of Haskell's libraries
	pkg     string
	mod     string
	name    string
	foreign bool
}

// NewBindings makes Bindings whose ids follow after.
func NewBindings(emit func(eventlog.Event) error, after uint32) *Bindings {
	return &Bindings{emit: emit, after: after, ids: map[key]uint32{}, roots: map[uint32]uint32{}, named: map[uint32]named{}}
}

// Len is the number of bindings.
func (t *Bindings) Len() int { return len(t.ids) }

// OwnPackage is the package of a program's own modules, which each program has.
const OwnPackage = "main"

// find gives the id of a binding that was added.
func (t *Bindings) find(k key) (uint32, bool) {
	if k.pkg == OwnPackage {
		k.module = t.Program
	}
	id, ok := t.ids[k]
	return id, ok
}

func (t *Bindings) add(k key, b eventlog.Binding) (uint32, error) {
	if id, ok := t.find(k); ok {
		return id, nil
	}
	if k.pkg == OwnPackage {
		k.module = t.Program
	}
	if b.Package == OwnPackage {
		b.Program = t.Program
	}
	id := t.after + uint32(len(t.ids)+1)
	b.ID, b.Symbol, b.Package, b.Module = id, eventlog.CleanName(b.Symbol), eventlog.CleanName(b.Package), eventlog.CleanName(b.Module)
	b.Name, b.Detail = eventlog.CleanName(b.Name), eventlog.CleanName(b.Detail)
	t.ids[k] = id
	t.roots[id] = id
	if b.Parent != 0 {
		t.roots[id] = t.roots[b.Parent]
	}
	t.named[id] = named{b.Module, b.Name}
	return id, t.emit(&b)
}

// source is a source binding: one that a programmer wrote.
func (t *Bindings) source(pkg, mod, name, symbol string) (uint32, error) {
	k := key{pkg: pkg, mod: mod, name: name}
	return t.add(k, eventlog.Binding{Symbol: symbol, Package: pkg, Module: mod, Name: name, Category: eventlog.CategoryHaskell})
}

// Foreign is a C function, or code of the run-time system or the kernel.
func (t *Bindings) Foreign(module uint32, symbol string, category eventlog.Category) (uint32, error) {
	k := key{module: module, name: symbol, foreign: true}
	if id, ok := t.ids[k]; ok {
		return id, nil
	}
	b := eventlog.Binding{Symbol: symbol, Name: foreignName(symbol), Category: category}
	return t.add(k, b)
}

// specialised gives the imported function that a binding is known to be a
// specialisation of; 0 if there is none.
func (t *Bindings) specialised(id uint32) uint32 {
	if root := t.roots[id]; strings.HasSuffix(t.named[root].name, specialisedSuffix) {
		return root
	}
	return 0
}

// specialisedSuffix follows the names of functions that are known by their
// specialisations only.
const specialisedSuffix = " (specialised)"

// foreignName demangles C++ and Rust names, and undoes GHC's wrappers of
// capi calls.
func foreignName(symbol string) string {
	if rest, ok := strings.CutPrefix(symbol, "ghczuwrapperZC"); ok {
		if i := strings.LastIndex(rest, "ZC"); i >= 0 {
			if name, ok := hsname.Decode(rest[i+2:]); ok && name != "" {
				return name
			}
		}
	}
	if strings.HasPrefix(symbol, "_Z") || strings.HasPrefix(symbol, "_R") {
		if len(symbol) < eventlog.MaxName {
			return demangle.Filter(symbol, demangle.NoParams, demangle.MaxLength(10))
		}
	}
	if strings.HasPrefix(symbol, ghc.CmmPrefix) { // Cmm: the suffix only says what table it is
		for _, s := range []string{"_info", "_ret", "_entry"} {
			if name, ok := strings.CutSuffix(symbol, s); ok {
				return name
			}
		}
	}
	return symbol
}

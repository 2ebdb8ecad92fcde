package symbolize

import (
	"strings"
	"unicode/utf8"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/symbolize/hsname"

	"github.com/ianlancetaylor/demangle"
)

// bindings gives ids to bindings and emits each once, its parent first.
type bindings struct {
	emit  func(eventlog.Event) error
	after uint32 // last id in use before
	ids   map[bindingKey]uint32
	roots map[uint32]uint32 // id to the source binding at the end of its parents
	named map[uint32]named
}

type named struct{ module, name string }

// bindingKey identifies a binding: Haskell's by their names, internal ones and
// C's by their module's symbol.
type bindingKey struct {
	module  uint32 // of the log; 0 for Haskell's external names
	pkg     string
	mod     string
	name    string
	foreign bool
}

func newBindings(emit func(eventlog.Event) error, after uint32) *bindings {
	return &bindings{emit: emit, after: after, ids: map[bindingKey]uint32{}, roots: map[uint32]uint32{}, named: map[uint32]named{}}
}

const maxName = 4096

// clean makes a name from a file fit for the log.
func clean(s string) string {
	if len(s) > maxName {
		s = s[:maxName]
	}
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "�")
	}
	return s
}

func (t *bindings) add(k bindingKey, b eventlog.Binding) (uint32, error) {
	if id, ok := t.ids[k]; ok {
		return id, nil
	}
	id := t.after + uint32(len(t.ids)+1)
	b.ID, b.Symbol, b.Package, b.Module = id, clean(b.Symbol), clean(b.Package), clean(b.Module)
	b.Name, b.Detail = clean(b.Name), clean(b.Detail)
	t.ids[k] = id
	t.roots[id] = id
	if b.Parent != 0 {
		t.roots[id] = t.roots[b.Parent]
	}
	t.named[id] = named{b.Module, b.Name}
	return id, t.emit(&b)
}

// source is a source binding: one that a programmer wrote.
func (t *bindings) source(pkg, mod, name, symbol string) (uint32, error) {
	k := bindingKey{pkg: pkg, mod: mod, name: name}
	return t.add(k, eventlog.Binding{Symbol: symbol, Package: pkg, Module: mod, Name: name, Category: eventlog.CategoryHaskell})
}

// foreign is a C function, or code of the run-time system or the kernel.
func (t *bindings) foreign(module uint32, symbol string, category eventlog.Category) (uint32, error) {
	k := bindingKey{module: module, name: symbol, foreign: true}
	if id, ok := t.ids[k]; ok {
		return id, nil
	}
	b := eventlog.Binding{Symbol: symbol, Name: foreignName(symbol), Category: category}
	return t.add(k, b)
}

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
		if len(symbol) < maxName {
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

package closures

import (
	"ccagent/eventlog"
	"ccagent/heap"
	"ccagent/internal/ghc"
)

// maxClosures bounds the info tables that are distinguished; a program may make up as many as it
// likes.
const maxClosures = 1 << 17

// Place is a module address.
type Place struct {
	Module uint32
	Addr   uint64
}

// Definition is an info table in the log.
type Definition struct {
	eventlog.Closure
	written bool // to this log
}

// Registry holds the info tables of the closures that were found.
type Registry struct {
	at   map[Place]*Definition
	last uint32 // id
}

// NewRegistry makes a registry without info tables.
func NewRegistry() *Registry { return &Registry{at: map[Place]*Definition{}} }

// ForgetWritten begins another log.
func (r *Registry) ForgetWritten() {
	for _, d := range r.at {
		d.written = false
	}
}

// Of returns the definition of an info table; nil if there are too many. The name is asked for
// once, of constructors.
func (r *Registry) Of(at Place, info heap.Info, name func() string) *Definition {
	d := r.at[at]
	if d == nil && len(r.at) < maxClosures {
		r.last++
		d = &Definition{Closure: eventlog.Closure{ID: r.last, Module: at.Module, Addr: at.Addr, Type: uint32(info.Type)}}
		if info.Type.In(ghc.Constr, ghc.ConstrNoCAF) {
			d.Name = eventlog.CleanName(name())
		}
		r.at[at] = d
	}
	return d
}

// Write writes the definition by emit if the log does not have it, and gives the code that is to be
// named to code.
func (d *Definition) Write(emit func(eventlog.Event) error, code func(module uint32, addr uint64)) error {
	if d.written {
		return nil
	}
	d.written = true
	def := d.Closure
	code(d.Module, d.Addr)
	return emit(&def)
}

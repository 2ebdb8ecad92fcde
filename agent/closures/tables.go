package closures

import (
	"io"

	"ccagent/agent/process"
	"ccagent/heap"
)

// maxTables bounds the info tables that are remembered of one process.
const maxTables = 1 << 17

// Table is what is known of a word of the heap.
type Table struct {
	Info heap.Info
	// OK is set if the word is the info pointer of a closure.
	OK bool
	// Place is the info table's address; of module 0 if no file has it.
	Place Place

	mapping *process.Mapping
}

var noTable Table

// Tables reads the info tables of a process image, and remembers them.
type Tables struct {
	// Profiled is set in the profiling way.
	Profiled bool
	// Made reads info tables that no file has: those of code that the run-time system or GHCi has loaded
	// or made itself. It is nil if these are not to be read.
	Made io.ReaderAt

	mappingOf func(addr uint64) *process.Mapping
	known     map[uint64]*Table // by run-time address
}

// NewTables makes tables of an image whose code is mapped as mappingOf says.
func NewTables(profiled bool, mappingOf func(addr uint64) *process.Mapping) *Tables {
	return &Tables{Profiled: profiled, mappingOf: mappingOf, known: map[uint64]*Table{}}
}

// moduleFile reads a module's file by module addresses: info tables do not differ from there.
type moduleFile struct{ *process.Module }

func (m moduleFile) ReadAt(b []byte, at int64) (int, error) {
	offset, ok := m.FileOffset(uint64(at))
	if !ok || m.File == nil {
		return 0, io.EOF
	}
	return m.File.ReadAt(b, int64(offset))
}

// Look looks a word up that may be an info pointer.
func (t *Tables) Look(word uint64) *Table {
	if k := t.known[word]; k != nil {
		return k
	}
	k := &noTable
	if m := t.mappingOf(word); m != nil {
		if info, ok := heap.ReadInfo(moduleFile{m.Module}, word-m.Bias); ok {
			k = &Table{Info: info, OK: true, Place: Place{m.Module.ID, word - m.Bias}, mapping: m}
		}
	} else if t.Made == nil {
		return k // most words are no addresses of code
	} else if info, ok := heap.ReadInfo(t.Made, word); ok {
		k = &Table{Info: info, OK: true, Place: Place{0, word}}
	}
	if len(t.known) < maxTables {
		t.known[word] = k
	}
	return k
}

// EachMade visits the info tables that no file has, of those that were looked up.
func (t *Tables) EachMade(f func(pointer uint64)) {
	for word, k := range t.known {
		if k.OK && k.mapping == nil {
			f(word)
		}
	}
}

// Name reads the name of a constructor by its info pointer; it is empty if it cannot be read.
func (t *Tables) Name(word uint64) string {
	k := t.Look(word)
	switch {
	case !k.OK:
		return ""
	case k.mapping == nil:
		return heap.ConstructorName(t.Made, word, t.Profiled)
	}
	return heap.ConstructorName(moduleFile{k.mapping.Module}, k.Place.Addr, t.Profiled || k.mapping.Module.Binary.Profiled())
}

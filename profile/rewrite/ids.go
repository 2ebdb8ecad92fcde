package rewrite

import (
	"slices"

	"ccagent/eventlog"
)

// table assigns new ids to one kind of definition, for all logs. Equal definitions get
// the same id.
type table[K comparable] struct {
	next uint32
	keys map[K]uint32
}

func newTable[K comparable](first uint32) *table[K] {
	return &table[K]{next: first, keys: make(map[K]uint32)}
}

// ids maps one log's ids of a kind to the table's.
type ids[K comparable] struct {
	*table[K]
	dense  []slot // of the ids below maxDense, as far as there are any
	sparse map[uint32]slot
}

// slot is what is known of one id of a log.
type slot struct {
	id       uint32 // the new one, if it is referred to
	referred bool
	defined  bool
}

// maxDense bounds the ids that are looked up by number. Our own logs count from 0 or 1.
const maxDense = 1 << 16

func newIDs[K comparable](t *table[K]) *ids[K] { return &ids[K]{table: t} }

func (t *ids[K]) get(old uint32) slot {
	if old >= maxDense {
		return t.sparse[old]
	}
	if int(old) < len(t.dense) {
		return t.dense[old]
	}
	return slot{}
}

func (t *ids[K]) set(old uint32, s slot) {
	if old >= maxDense {
		if t.sparse == nil {
			t.sparse = make(map[uint32]slot)
		}
		t.sparse[old] = s
		return
	}
	if more := int(old) + 1 - len(t.dense); more > 0 {
		t.dense = append(t.dense, make([]slot, more)...)
	}
	t.dense[old] = s
}

// ref returns the new id for a reference; the definition may follow later.
func (t *ids[K]) ref(old uint32) uint32 {
	s := t.get(old)
	if !s.referred {
		s.id, s.referred = t.next, true
		t.next++
		t.set(old, s)
	}
	return s.id
}

// optional is like ref, but maps 0, which means none, to 0.
func (t *ids[K]) optional(old uint32) uint32 {
	if old == 0 {
		return 0
	}
	return t.ref(old)
}

// define returns the new id of a definition, and whether to write the definition. It is
// not written if an equal one was written before, or if the log defines the id twice.
func (t *ids[K]) define(old uint32, key K) (id uint32, write bool) {
	s := t.get(old)
	if s.defined {
		return s.id, false
	}
	s.defined = true
	switch id, known := t.keys[key]; {
	case s.referred:
		if !known {
			t.keys[key] = s.id
		}
		write = true
	case known:
		s.id, s.referred = id, true
	default:
		s.id, s.referred, write = t.next, true, true
		t.next++
		t.keys[key] = s.id
	}
	t.set(old, s)
	return s.id, write
}

// eventKey is what makes two logs' events one: weights are in the unit, at whatever rate the event
// was sampled.
type eventKey struct{ requested, granted, unit string }

type moduleKey struct {
	path, buildID string
	size          uint64
	modTime       int64
}

type fileKey struct {
	path string
	size uint64
}

type coreKey struct {
	binding uint32
	name    string
	size    uint64
}

type blockKey struct {
	module, binding uint32
	lo, hi          uint64
}

// tables are the id tables of the log being written.
type tables struct {
	events   *table[eventKey]
	modules  *table[moduleKey]
	files    *table[fileKey]
	bindings *table[eventlog.Binding]
	spans    *table[eventlog.Span]
	blocks   *table[blockKey]
	cores    *table[coreKey]
	centres  *table[eventlog.CentreDef]
	stacks   *table[eventlog.CentreStack]
	closures *table[eventlog.Closure]
	node     uint32 // the next free id
	// symbolised has the modules whose ModuleSymbols were written, located the places whose
	// Locations were: logs of one build repeat both.
	symbolised map[uint32]bool
	located    map[location]bool
}

type location struct {
	module uint32
	addr   uint64
}

func newTables() *tables {
	return &tables{
		events: newTable[eventKey](0), modules: newTable[moduleKey](1), files: newTable[fileKey](1),
		bindings: newTable[eventlog.Binding](1), spans: newTable[eventlog.Span](1), blocks: newTable[blockKey](1), cores: newTable[coreKey](1),
		centres: newTable[eventlog.CentreDef](1), stacks: newTable[eventlog.CentreStack](1), closures: newTable[eventlog.Closure](1), node: 1,
		symbolised: make(map[uint32]bool), located: make(map[location]bool),
	}
}

// mapping translates the ids in one log's own events.
type mapping struct {
	events   *ids[eventKey]
	modules  *ids[moduleKey]
	files    *ids[fileKey]
	bindings *ids[eventlog.Binding]
	spans    *ids[eventlog.Span]
	blocks   *ids[blockKey]
	cores    *ids[coreKey]
	centres  *ids[eventlog.CentreDef]
	stacks   *ids[eventlog.CentreStack]
	closures *ids[eventlog.Closure]
	texts    map[uint32]bool // files whose text has been written
	dumps    map[uint32]bool // Core whose text has been written
	all      *tables
}

func (t *tables) mapping() *mapping {
	return &mapping{
		newIDs(t.events), newIDs(t.modules), newIDs(t.files), newIDs(t.bindings), newIDs(t.spans), newIDs(t.blocks),
		newIDs(t.cores), newIDs(t.centres), newIDs(t.stacks), newIDs(t.closures), make(map[uint32]bool), make(map[uint32]bool), t,
	}
}

// definition replaces the ids in a definition, in place. It reports whether the event is
// a definition, and whether to write it.
func (m *mapping) definition(ev eventlog.Event) (is, write bool) {
	switch ev := ev.(type) {
	case *eventlog.EventDef:
		ev.Index, write = m.events.define(ev.Index, eventKey{ev.Requested, ev.Granted, ev.Unit})
	case *eventlog.Module:
		ev.ID, write = m.modules.define(ev.ID, moduleKey{ev.Path, string(ev.BuildID), ev.Size, ev.ModTime})
	case *eventlog.Mapping:
		ev.Module, write = m.modules.optional(ev.Module), true
	case *eventlog.ModuleSymbols:
		ev.Module = m.modules.optional(ev.Module)
		write = !m.all.symbolised[ev.Module]
		m.all.symbolised[ev.Module] = true
	case *eventlog.File:
		old := ev.ID
		ev.ID, write = m.files.define(old, fileKey{ev.Path, ev.TextSize})
		m.texts[old] = write
	case *eventlog.FileText:
		if write = m.texts[ev.File]; write {
			ev.File = m.files.ref(ev.File)
		}
	case *eventlog.Binding:
		ev.Parent, ev.Program = m.bindings.optional(ev.Parent), m.modules.optional(ev.Program)
		key := *ev
		key.ID = 0
		ev.ID, write = m.bindings.define(ev.ID, key)
	case *eventlog.Span:
		ev.File, ev.Binding = m.files.optional(ev.File), m.bindings.optional(ev.Binding)
		key := *ev
		key.ID = 0
		ev.ID, write = m.spans.define(ev.ID, key)
	case *eventlog.Block:
		m.block(ev)
		ev.ID, write = m.blocks.define(ev.ID, blockKey{ev.Module, ev.Binding, ev.Lo, ev.Hi})
	case *eventlog.Locations:
		m.locations(ev)
		write = len(ev.Locations) > 0
	case *eventlog.Core:
		ev.Binding, ev.File = m.bindings.optional(ev.Binding), m.files.optional(ev.File)
		for i := range ev.Notes {
			ev.Notes[i].Span = m.spans.optional(ev.Notes[i].Span)
		}
		for i := range ev.Also {
			ev.Also[i] = m.bindings.optional(ev.Also[i])
		}
		old := ev.ID
		ev.ID, write = m.cores.define(old, coreKey{ev.Binding, ev.Name, ev.TextSize})
		m.dumps[old] = write
	case *eventlog.CoreText:
		if write = m.dumps[ev.Core]; write {
			ev.Core = m.cores.ref(ev.Core)
		}
	case *eventlog.CentreDef:
		key := *ev
		key.ID = 0
		ev.ID, write = m.centres.define(ev.ID, key)
	case *eventlog.CentreStack:
		ev.Parent, ev.Centre = m.stacks.optional(ev.Parent), m.centres.optional(ev.Centre)
		key := *ev
		key.ID = 0
		ev.ID, write = m.stacks.define(ev.ID, key)
	case *eventlog.Closure:
		ev.Module = m.modules.optional(ev.Module)
		key := *ev
		key.ID = 0
		ev.ID, write = m.closures.define(ev.ID, key)
	default:
		return false, false
	}
	return true, write
}

func (m *mapping) block(ev *eventlog.Block) {
	ev.Module, ev.Binding = m.modules.optional(ev.Module), m.bindings.optional(ev.Binding)
	for i, e := range ev.Enclosing {
		ev.Enclosing[i] = m.bindings.optional(e)
	}
	for i := range ev.Causes {
		ev.Causes[i].Span = m.spans.optional(ev.Causes[i].Span)
	}
}

// locations leaves those that are new.
func (m *mapping) locations(ev *eventlog.Locations) {
	ev.Module = m.modules.optional(ev.Module)
	ev.Locations = slices.DeleteFunc(ev.Locations, func(l eventlog.Location) bool {
		at := location{ev.Module, l.Addr}
		again := m.all.located[at]
		m.all.located[at] = true
		return again
	})
	for i := range ev.Locations {
		l := &ev.Locations[i]
		l.Block, l.Binding = m.blocks.optional(l.Block), m.bindings.optional(l.Binding)
		for j := range l.Lines {
			ln := &l.Lines[j]
			ln.Binding, ln.File = m.bindings.optional(ln.Binding), m.files.optional(ln.File)
		}
	}
}

package nursery

import (
	"io"
	"slices"

	"ccagent/agent/process"
	"ccagent/eventlog"
	"ccagent/heap"
	"ccagent/internal/ghc"
)

// maxClosures bounds the info tables that are distinguished, and maxTables those that are remembered
// of one process; a program may make up as many as it likes.
const (
	maxClosures = 1 << 17
	maxTables   = 1 << 17
)

// place is a module address.
type place struct {
	module uint32
	addr   uint64
}

// definition is an info table in the log.
type definition struct {
	eventlog.Closure
	written bool // to this log
}

// closures are the info tables that sampled blocks had.
type closures struct {
	at   map[place]*definition
	last uint32 // id
}

func newClosures() *closures { return &closures{at: map[place]*definition{}} }

// forgetWritten begins another log.
func (c *closures) forgetWritten() {
	for _, d := range c.at {
		d.written = false
	}
}

// of returns the definition of an info table; nil if there are too many.
func (c *closures) of(at place, info heap.Info, name func() string) *definition {
	d := c.at[at]
	if d == nil && len(c.at) < maxClosures {
		c.last++
		d = &definition{Closure: eventlog.Closure{ID: c.last, Module: at.module, Addr: at.addr, Type: uint32(info.Type)}}
		if info.Type.In(ghc.Constr, ghc.ConstrNoCAF) {
			d.Name = eventlog.CleanName(name())
		}
		c.at[at] = d
	}
	return d
}

// table is what is known of a word in a block.
type table struct {
	info heap.Info
	ok   bool
	def  *definition
}

// walker walks the blocks of one process image.
type walker struct {
	im     *process.Image
	layout heap.Layout
	all    *closures
	tables map[uint64]*table // by run-time address
}

func newWalker(im *process.Image, layout heap.Layout, all *closures) walker {
	return walker{im: im, layout: layout, all: all, tables: map[uint64]*table{}}
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

// look looks a word up that may be an info pointer.
func (w *walker) look(word uint64) *table {
	if t := w.tables[word]; t != nil {
		return t
	}
	m := w.im.MappingOf(word)
	if m == nil {
		return &noTable // most words are no addresses of code
	}
	t := &noTable
	if info, ok := heap.ReadInfo(moduleFile{m.Module}, word-m.Bias); ok {
		name := func() string {
			return heap.ConstructorName(moduleFile{m.Module}, word-m.Bias, m.Module.Binary.Profiled() || w.im.RTS.Binary.Profiled())
		}
		if def := w.all.of(place{m.Module.ID, word - m.Bias}, info, name); def != nil {
			t = &table{info: info, ok: true, def: def}
		}
	}
	if len(w.tables) < maxTables {
		w.tables[word] = t
	}
	return t
}

var noTable table

// count walks a block's words and returns what they hold by closure. Definitions that the log
// does not have yet are emitted, and code that is to be named is given to code.
func (w *walker) count(words []uint64, emit func(eventlog.Event) error, code func(module uint32, addr uint64)) ([]eventlog.ClosureCount, error) {
	var counts []eventlog.ClosureCount
	at := map[uint32]int{}
	add := func(id uint32, bytes int) {
		i, ok := at[id]
		if !ok {
			i = len(counts)
			at[id] = i
			counts = append(counts, eventlog.ClosureCount{Closure: id})
		}
		counts[i].Count++
		counts[i].Bytes += uint32(bytes)
	}
	var err error
	unread := w.layout.Walk(words, func(word uint64) (heap.Info, bool) {
		t := w.look(word)
		return t.info, t.ok
	}, func(c heap.Closure) {
		d := w.look(c.Pointer).def
		if d == nil {
			add(0, 8*(c.Words+c.Slop))
			return
		}
		if !d.written && err == nil {
			d.written = true
			def := d.Closure
			err = emit(&def)
			code(d.Module, d.Addr)
		}
		add(d.ID, 8*(c.Words+c.Slop))
	})
	if unread > 0 {
		add(0, 8*unread)
	}
	slices.SortFunc(counts, func(a, b eventlog.ClosureCount) int { return int(b.Bytes) - int(a.Bytes) })
	return counts, err
}

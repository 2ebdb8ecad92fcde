package nursery

import (
	"slices"

	"ccagent/agent/closures"
	"ccagent/agent/process"
	"ccagent/eventlog"
	"ccagent/heap"
)

// walker walks the blocks of one process image.
type walker struct {
	layout heap.Layout
	all    *closures.Registry
	tables *closures.Tables
}

func newWalker(im *process.Image, layout heap.Layout, all *closures.Registry) walker {
	return walker{layout: layout, all: all, tables: closures.NewTables(im.RTS.Binary.Profiled(), im.MappingOf)}
}

// definition is that of an info pointer; nil if there is none.
func (w *walker) definition(word uint64) *closures.Definition {
	t := w.tables.Look(word)
	if !t.OK {
		return nil
	}
	return w.all.Of(t.Place, t.Info, func() string { return w.tables.Name(word) })
}

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
		t := w.tables.Look(word)
		return t.Info, t.OK
	}, func(c heap.Closure) {
		d := w.definition(c.Pointer)
		if d == nil {
			add(0, 8*(c.Words+c.Slop))
			return
		}
		if err == nil {
			err = d.Write(emit, code)
		}
		add(d.ID, 8*(c.Words+c.Slop))
	})
	if unread > 0 {
		add(0, 8*unread)
	}
	slices.SortFunc(counts, func(a, b eventlog.ClosureCount) int { return int(b.Bytes) - int(a.Bytes) })
	return counts, err
}

package census

import (
	"ccagent/agent/closures"
	"ccagent/eventlog"
	"ccagent/heap"
)

// Kinds is what was counted by info table.
type Kinds struct {
	all                 []kind // the largest first, maxKinds of them at the most
	pinned, pinnedBytes uint64
	rest, restBytes     uint64 // of other info tables
}

// kind is what the closures of an info table have.
type kind struct {
	pointer               uint64
	info                  heap.Info
	number, bytes, margin uint64
}

// maxKinds bounds the info tables of one census that are in the log, and kindsAtOnce how many are in one event: a program
// has some hundreds to a few thousand.
const (
	maxKinds    = 4096
	kindsAtOnce = 1024
)

// Kinds divides what was counted by info table, with the same bytes as the bands have.
func (c *Census) Kinds(profiled bool) *Kinds {
	t := c.Tally
	k := &Kinds{pinned: t.Pinned, pinnedBytes: counted(t.PinnedWords, t.Pinned, profiled)}
	for i, n := range t.Counts() {
		bytes := counted(n.Words, n.Number, profiled)
		if i >= maxKinds {
			k.rest += n.Number
			k.restBytes += bytes
			continue
		}
		of := kind{pointer: n.Pointer, info: n.Info, number: n.Number, bytes: bytes}
		if c.Draw != nil {
			of.margin = c.Draw.Kinds[n.Pointer]
		}
		k.all = append(k.all, of)
	}
	return k
}

// A KindLog takes what is written of kinds: events, by Emit, and code that is to be named.
type KindLog struct {
	Emit     func(eventlog.Event) error
	Code     func(module uint32, addr uint64)
	Registry *closures.Registry
}

// Write writes the kinds of a process's census, after the info tables that the log does not have yet. The census's events are
// to follow.
func (k *Kinds) Write(to KindLog, pid uint32, tables *closures.Tables) error {
	e := &eventlog.HeapKinds{PID: pid, Pinned: k.pinned, PinnedBytes: k.pinnedBytes, Rest: k.rest, RestBytes: k.restBytes}
	var all []eventlog.HeapKind
	for i := range k.all {
		of := &k.all[i]
		var d *closures.Definition
		if at := tables.Look(of.pointer).Place; at.Module != 0 {
			d = to.Registry.Of(at, of.info, func() string { return tables.Name(of.pointer) })
		}
		if d == nil {
			e.Rest += of.number
			e.RestBytes += of.bytes
			continue
		}
		if err := d.Write(to.Emit, to.Code); err != nil {
			return err
		}
		all = append(all, eventlog.HeapKind{Closure: d.ID, Count: of.number, Bytes: of.bytes, Margin: of.margin})
	}
	for {
		n := min(len(all), kindsAtOnce)
		e.Kinds, all = all[:n], all[n:]
		if err := to.Emit(e); err != nil || len(all) == 0 {
			return err
		}
		e = &eventlog.HeapKinds{PID: pid}
	}
}

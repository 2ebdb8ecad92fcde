package columns

import (
	"ccagent/eventlog"
	"ccagent/internal/ghc"
)

// Closure is an info table that closures in sampled blocks have.
type Closure struct {
	Type   ghc.ClosureType
	Name   string // of a constructor, as its description has it; empty if unknown
	Place  uint32 // of the info pointer
	Module uint32 // the log's module id
}

// NurseryBlock is a sampled block of a nursery.
type NurseryBlock struct {
	Time       uint64
	PID        uint32
	Capability uint32
	Places     uint64 // for how many blocks it stands
	Total      uint64 // bytes that its capability had allocated
	Used, Read uint64 // bytes
	counts     [2]uint32
}

// ClosureCount is what a block has of one closure.
type ClosureCount struct {
	Closure uint32 // index in Log.Closures; 0 is what could not be read
	Count   uint32
	Bytes   uint32
}

// Nurseries are the sampled blocks of a log, in its order.
type Nurseries struct {
	Blocks []NurseryBlock
	// Closures are the info tables. The first stands for what could not be read.
	Closures []Closure
	counts   []ClosureCount
}

// Counts returns what a block has, by closure.
func (n *Nurseries) Counts(b *NurseryBlock) []ClosureCount { return n.counts[b.counts[0]:b.counts[1]] }

// maxCounts bounds what is kept of all blocks.
const maxCounts = 1 << 26

// nurseryTable collects the sampled blocks of nurseries.
type nurseryTable struct {
	p        *Log
	closures ids
}

func (t *nurseryTable) closure(ev *eventlog.Closure, nodes *nodeTable) {
	n := &t.p.Nurseries
	if len(n.Closures) == 0 {
		n.Closures = make([]Closure, 1)
	}
	if _, ok := t.closures.add(ev.ID); !ok {
		t.p.Accounting.Redefined++
		return
	}
	n.Closures = append(n.Closures, Closure{
		Type: ghc.ClosureType(ev.Type), Name: ev.Name, Module: ev.Module,
		Place: nodes.place(Place{Class: PlaceUser, Module: ev.Module, Addr: ev.Addr}),
	})
}

func (t *nurseryTable) nurseryBlock(time uint64, ev *eventlog.NurseryBlock) {
	n := &t.p.Nurseries
	sum := uint64(0)
	for _, c := range ev.Closures {
		sum += uint64(c.Bytes)
	}
	if len(n.counts)+len(ev.Closures) > maxCounts || sum > ev.Read || ev.Read > ev.Used {
		t.p.Accounting.Dropped++
		return
	}
	if len(n.Closures) == 0 {
		n.Closures = make([]Closure, 1)
	}
	to := NurseryBlock{
		Time: time, PID: ev.PID, Capability: ev.Capability, Places: ev.Places, Total: ev.Total, Used: ev.Used, Read: ev.Read,
	}
	to.counts[0] = uint32(len(n.counts))
	for _, c := range ev.Closures {
		id := uint32(0)
		if c.Closure != 0 {
			var ok bool
			if id, ok = t.closures.find(c.Closure); !ok {
				t.p.Accounting.Undefined.Closures++
				id = 0
			}
		}
		n.counts = append(n.counts, ClosureCount{id, c.Count, c.Bytes})
	}
	to.counts[1] = uint32(len(n.counts))
	n.Blocks = append(n.Blocks, to)
}

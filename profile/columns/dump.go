package columns

import (
	"slices"

	"ccagent/eventlog"
)

// Dump is what the threads of a process did at a moment.
// Its blockers' nodes are indices in Log.Nodes.
type Dump struct {
	Time uint64
	eventlog.ThreadDump
	Threads  []DumpedThread
	Blockers []eventlog.Blocker
	OS       []eventlog.OSThread
}

// DumpedThread is a thread of a dump. Its Node is the index of the leaf in Log.Nodes.
type DumpedThread struct {
	eventlog.HaskellThread
}

// maxDumped bounds the threads, and the blockers, that are kept of a log.
const maxDumped = 1 << 22

// dumpTable collects dumps.
type dumpTable struct {
	p    *Log
	kept int
}

func (t *dumpTable) begin(time uint64, ev *eventlog.ThreadDump) {
	d := Dump{Time: time, ThreadDump: *ev}
	d.Notes = slices.Clone(ev.Notes)
	t.p.Dumps = append(t.p.Dumps, d)
}

// last is the dump that events belong to; nil if there is none, or no room.
func (t *dumpTable) last() *Dump {
	if len(t.p.Dumps) == 0 || t.kept >= maxDumped {
		t.p.Accounting.Dropped++
		return nil
	}
	t.kept++
	return &t.p.Dumps[len(t.p.Dumps)-1]
}

func (t *dumpTable) blocker(ev *eventlog.Blocker, nodes *nodeTable) {
	if d := t.last(); d != nil {
		b := *ev
		node, ok := nodes.resolve(ev.Node)
		if !ok {
			t.p.Accounting.Undefined.Nodes++
			node = 0
		}
		b.Node = node
		b.Queue, b.Holders, b.Variables = slices.Clone(ev.Queue), slices.Clone(ev.Holders), slices.Clone(ev.Variables)
		t.kept += (len(b.Queue) + len(b.Holders) + len(b.Variables)) / 8
		d.Blockers = append(d.Blockers, b)
	}
}

func (t *dumpTable) thread(ev *eventlog.HaskellThread, nodes *nodeTable) {
	d := t.last()
	if d == nil {
		return
	}
	th := DumpedThread{*ev}
	node, ok := nodes.resolve(ev.Node)
	if !ok {
		t.p.Accounting.Undefined.Nodes++
		node = 0
	}
	th.Node = node
	d.Threads = append(d.Threads, th)
}

func (t *dumpTable) os(ev *eventlog.OSThread) {
	if d := t.last(); d != nil {
		d.OS = append(d.OS, *ev)
	}
}

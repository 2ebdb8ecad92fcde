package columns

import (
	"slices"

	"ccagent/eventlog"
)

// HeapGraph is a census of a heap with its pointers: which closures and roots keep which others alive. Closures are indices in
// Nurseries.Closures, of which the first stands for what is not known; roots are indices in Roots,
// −1 for none.
type HeapGraph struct {
	Time uint64
	eventlog.HeapGraph
	Bands    []HeapGraphBand
	Roots    []HeapRoot
	Branches []HeapBranch
	Paths    []HeapPath
	Stuck    []eventlog.HeapStuck // threads that nothing can wake

	roots map[uint32]int
}

// LastGraph is the graph of the last census that has one; nil if none has.
func (p *Log) LastGraph() *HeapGraph {
	if n := len(p.HeapGraphs); n > 0 {
		return &p.HeapGraphs[n-1]
	}
	return nil
}

// HeapGraphBand is the closures of one info table.
type HeapGraphBand struct {
	Closure uint32
	eventlog.HeapBand
}

// HeapRoot is why closures are alive.
type HeapRoot struct {
	Code uint32 // closure of a CAF
	eventlog.HeapRoot
}

// HeapBranch is closures in the tree of dominators. The first stands for all, and is its own parent.
type HeapBranch struct {
	Parent   int
	Closure  uint32
	Root     int
	Count    uint64
	Bytes    uint64
	Retained uint64
}

// HeapPath is a shortest path from a root to a closure.
type HeapPath struct {
	Closure  uint32
	Root     int
	Count    uint64
	Bytes    uint64
	Retained uint64
	Steps    []HeapStep
}

// HeapStep is closures on a path, one after another.
type HeapStep struct {
	Closure uint32
	Times   uint32
	Frame   uint32 // closure of a frame's code; 0 for none
	Skipped uint32
}

// maxGraph bounds the parts of graphs that are kept of a log.
const maxGraph = 1 << 20

// graphTable collects graphs.
type graphTable struct {
	p    *Log
	kept int
}

func (t *graphTable) begin(time uint64, ev *eventlog.HeapGraph) {
	g := HeapGraph{Time: time, HeapGraph: *ev, roots: map[uint32]int{}}
	g.Notes = slices.Clone(ev.Notes)
	t.p.HeapGraphs = append(t.p.HeapGraphs, g)
}

// last is the graph that events belong to; nil if there is none, or no room.
func (t *graphTable) last() *HeapGraph {
	if len(t.p.HeapGraphs) == 0 || t.kept >= maxGraph {
		t.p.Accounting.Dropped++
		return nil
	}
	t.kept++
	return &t.p.HeapGraphs[len(t.p.HeapGraphs)-1]
}

// closure is the index of a closure that was defined before; 0 if it was not.
func (t *graphTable) closure(closures *ids, id uint32) uint32 {
	if id == 0 {
		return 0
	}
	i, ok := closures.find(id)
	if !ok {
		t.p.Accounting.Undefined.Closures++
		return 0
	}
	return i
}

func (g *HeapGraph) root(id uint32) int {
	if i, ok := g.roots[id]; ok && id != 0 {
		return i
	}
	return -1
}

func (t *graphTable) band(ev *eventlog.HeapBand, closures *ids) {
	if g := t.last(); g != nil {
		g.Bands = append(g.Bands, HeapGraphBand{t.closure(closures, ev.Closure), *ev})
	}
}

func (t *graphTable) root(ev *eventlog.HeapRoot, closures *ids) {
	if g := t.last(); g != nil {
		g.roots[ev.ID] = len(g.Roots)
		g.Roots = append(g.Roots, HeapRoot{t.closure(closures, ev.Closure), *ev})
	}
}

func (t *graphTable) branch(ev *eventlog.HeapBranch, closures *ids) {
	g := t.last()
	if g == nil {
		return
	}
	if int(ev.Parent) > max(0, len(g.Branches)-1) {
		t.p.Accounting.Dropped++
		return
	}
	g.Branches = append(g.Branches, HeapBranch{
		Parent: int(ev.Parent), Closure: t.closure(closures, ev.Closure), Root: g.root(ev.Root), Count: ev.Count, Bytes: ev.Bytes, Retained: ev.Retained,
	})
}

func (t *graphTable) path(ev *eventlog.HeapPath, closures *ids) {
	g := t.last()
	if g == nil {
		return
	}
	p := HeapPath{Closure: t.closure(closures, ev.Closure), Root: g.root(ev.Root), Count: ev.Count, Bytes: ev.Bytes, Retained: ev.Retained}
	t.kept += len(ev.Steps)
	for _, s := range ev.Steps {
		p.Steps = append(p.Steps, HeapStep{t.closure(closures, s.Closure), s.Times, t.closure(closures, s.Frame), s.Skipped})
	}
	g.Paths = append(g.Paths, p)
}

func (t *graphTable) stuck(ev *eventlog.HeapStuck) {
	if g := t.last(); g != nil {
		g.Stuck = append(g.Stuck, *ev)
	}
}

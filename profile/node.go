package profile

import (
	"sort"

	"ccagent/eventlog"
)

// nodes are the stack prefixes, by dense index: 0 is the empty stack, and a
// node's parent is always before it. So a tree cannot have cycles, whatever
// the log says.
type nodes struct {
	parent []uint32
	kind   []eventlog.FrameKind
	place  []uint32
}

// PlaceID numbers the places of a profile; 0 is no place.
type PlaceID uint32

// place is what a frame shows: an address of a module, or that frames are left out.
type place struct {
	class  placeClass
	module uint32 // the log's module id
	addr   uint64 // module address, or how many frames repeat for placeFolded
}

type placeClass uint8

const (
	placeNone    placeClass = iota
	placeUser               // an address in user space
	placeKernel             // a kernel address
	placeSkipped            // frames that were left out
	placeFolded             // repeated frames that were left out
	placeContext            // the border to the thread's context
)

// nodeSegment is a run of ids that the log defined without a gap.
type nodeSegment struct{ first, n, index uint32 }

// nodeTable takes the log's nodes. A damaged log may miss some, so ids map to
// indices by runs and not by themselves.
type nodeTable struct {
	nodes
	places   []place
	placeIDs map[place]uint32
	segments []nodeSegment
}

func newNodeTable() nodeTable {
	return nodeTable{
		nodes:    nodes{parent: []uint32{0}, kind: []eventlog.FrameKind{0}, place: []uint32{0}},
		places:   []place{{}},
		placeIDs: make(map[place]uint32),
	}
}

// resolve gives the index of a node id.
func (t *nodeTable) resolve(id uint32) (uint32, bool) {
	if id == 0 {
		return 0, true
	}
	if n := len(t.segments); n > 0 {
		// One segment is the rule.
		if s := t.segments[n-1]; id >= s.first {
			return s.index + id - s.first, id-s.first < s.n
		}
	}
	i := sort.Search(len(t.segments), func(i int) bool { return t.segments[i].first > id }) - 1
	if i < 0 {
		return 0, false
	}
	s := t.segments[i]
	return s.index + id - s.first, id-s.first < s.n
}

// add takes a Nodes event. It reports how many nodes it refused (ids that do
// not rise) and how many have parents that are not defined: those become roots.
func (t *nodeTable) add(ev *eventlog.Nodes) (refused, orphans int) {
	next := uint64(1)
	if n := len(t.segments); n > 0 {
		s := t.segments[n-1]
		next = uint64(s.first) + uint64(s.n)
	}
	if uint64(ev.First) < next || uint64(ev.First)+uint64(len(ev.Nodes)) > 1<<32 ||
		uint64(len(t.parent))+uint64(len(ev.Nodes)) > 1<<31 {
		return len(ev.Nodes), 0
	}
	if n := len(t.segments); n > 0 && uint64(ev.First) == next {
		t.segments[n-1].n += uint32(len(ev.Nodes))
	} else {
		t.segments = append(t.segments, nodeSegment{ev.First, uint32(len(ev.Nodes)), uint32(len(t.parent))})
	}
	for i := range ev.Nodes {
		n := &ev.Nodes[i]
		self := uint32(len(t.parent))
		parent, ok := t.resolve(n.Parent)
		if !ok || parent >= self {
			parent = 0
			orphans++
		}
		t.parent = append(t.parent, parent)
		t.kind = append(t.kind, n.Kind)
		t.place = append(t.place, t.intern(n))
	}
	return 0, orphans
}

func (t *nodeTable) intern(n *eventlog.Node) uint32 {
	p := place{class: placeUser, module: n.Module, addr: n.Addr}
	switch n.Kind {
	case eventlog.FrameKernel:
		p = place{class: placeKernel, addr: n.Addr}
	case eventlog.FrameSkipped:
		p = place{class: placeSkipped}
	case eventlog.FrameFolded:
		p = place{class: placeFolded, addr: n.Addr}
	case eventlog.FrameContext:
		p = place{class: placeContext}
	}
	id, ok := t.placeIDs[p]
	if !ok {
		id = uint32(len(t.places))
		t.places = append(t.places, p)
		t.placeIDs[p] = id
	}
	return id
}

// structural reports whether a frame only structures the stack: it stands for
// no code that somebody wrote and has no causes.
func structural(k eventlog.FrameKind) bool {
	switch k {
	case eventlog.FrameUpdate, eventlog.FrameCatch, eventlog.FrameSTM, eventlog.FrameRetFun,
		eventlog.FrameUnderflow, eventlog.FrameStop, eventlog.FrameAnn, eventlog.FrameFolded:
		return true
	}
	return false
}

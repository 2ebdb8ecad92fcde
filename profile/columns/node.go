package columns

import (
	"sort"

	"ccagent/eventlog"
)

// Nodes are the stack prefixes, by dense index. Index 0 is the empty stack. A node's
// parent always has a lower index, so there are no cycles, whatever the log contains.
type Nodes struct {
	Parent []uint32
	Kind   []eventlog.FrameKind
	Place  []uint32
}

// PlaceID numbers the places of a log; 0 is no place.
type PlaceID uint32

// Place is what a frame shows: an address of a module, or a marker for frames left out.
type Place struct {
	Class  PlaceClass
	Module uint32 // the log's module id
	Addr   uint64 // module address; for PlaceFolded the number of repeated frames
}

// PlaceClass is the kind of a Place.
type PlaceClass uint8

const (
	PlaceNone    PlaceClass = iota
	PlaceUser               // an address in user space
	PlaceKernel             // a kernel address
	PlaceSkipped            // frames that were left out
	PlaceFolded             // repeated frames that were left out
	PlaceContext            // the border between the stack and the thread's context
	PlaceLeaf               // a leaf without code: Addr is an eventlog.ThreadState, or Ended and an eventlog.TransactionEnd
)

// Ended is the bit of the address of a PlaceLeaf that says how a transaction's attempt has ended.
const Ended = 1 << 8

// Code reports whether a place is an address of code.
func (c PlaceClass) Code() bool { return c == PlaceUser || c == PlaceKernel }

// Named reports whether a place has elements of its own: code, and leaves without code.
func (c PlaceClass) Named() bool { return c.Code() || c == PlaceLeaf }

// nodeSegment is a run of consecutive node ids in the log.
type nodeSegment struct{ first, n, index uint32 }

// nodeTable collects the log's nodes. A damaged log may lack some, so ids are mapped to
// indices by runs of ids and are not indices themselves.
type nodeTable struct {
	Nodes
	places   []Place
	placeIDs map[Place]uint32
	segments []nodeSegment
}

func newNodeTable() nodeTable {
	return nodeTable{
		Nodes:    Nodes{Parent: []uint32{0}, Kind: []eventlog.FrameKind{0}, Place: []uint32{0}},
		places:   []Place{{}},
		placeIDs: make(map[Place]uint32),
	}
}

// resolve returns the index of a node id.
func (t *nodeTable) resolve(id uint32) (uint32, bool) {
	if id == 0 {
		return 0, true
	}
	if n := len(t.segments); n > 0 {
		// Most logs have one segment.
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

// add adds a Nodes event. It returns the number of refused nodes (their ids do not
// increase) and of orphans (their parents are not defined), which become roots.
func (t *nodeTable) add(ev *eventlog.Nodes) (refused, orphans int) {
	next := uint64(1)
	if n := len(t.segments); n > 0 {
		s := t.segments[n-1]
		next = uint64(s.first) + uint64(s.n)
	}
	if uint64(ev.First) < next || uint64(ev.First)+uint64(len(ev.Nodes)) > 1<<32 ||
		uint64(len(t.Parent))+uint64(len(ev.Nodes)) > 1<<31 {
		return len(ev.Nodes), 0
	}
	if n := len(t.segments); n > 0 && uint64(ev.First) == next {
		t.segments[n-1].n += uint32(len(ev.Nodes))
	} else {
		t.segments = append(t.segments, nodeSegment{ev.First, uint32(len(ev.Nodes)), uint32(len(t.Parent))})
	}
	for i := range ev.Nodes {
		n := &ev.Nodes[i]
		self := uint32(len(t.Parent))
		parent, ok := t.resolve(n.Parent)
		if !ok || parent >= self {
			parent = 0
			orphans++
		}
		t.Parent = append(t.Parent, parent)
		t.Kind = append(t.Kind, n.Kind)
		t.Place = append(t.Place, t.intern(n))
	}
	return 0, orphans
}

func (t *nodeTable) intern(n *eventlog.Node) uint32 {
	p := Place{Class: PlaceUser, Module: n.Module, Addr: n.Addr}
	switch n.Kind {
	case eventlog.FrameKernel:
		p = Place{Class: PlaceKernel, Addr: n.Addr}
	case eventlog.FrameSkipped:
		p = Place{Class: PlaceSkipped}
	case eventlog.FrameFolded:
		p = Place{Class: PlaceFolded, Addr: n.Addr}
	case eventlog.FrameContext:
		p = Place{Class: PlaceContext}
	case eventlog.FrameWait:
		p = Place{Class: PlaceLeaf, Addr: n.Addr &^ Ended}
	case eventlog.FrameTransaction:
		p = Place{Class: PlaceLeaf, Addr: n.Addr | Ended}
	}
	return t.place(p)
}

// place returns the number of a place.
func (t *nodeTable) place(p Place) uint32 {
	id, ok := t.placeIDs[p]
	if !ok {
		id = uint32(len(t.places))
		t.places = append(t.places, p)
		t.placeIDs[p] = id
	}
	return id
}

// Structural reports whether a frame only structures the stack: it does not correspond to
// any source code and has no causes.
func Structural(k eventlog.FrameKind) bool {
	switch k {
	case eventlog.FrameUpdate, eventlog.FrameCatch, eventlog.FrameSTM, eventlog.FrameRetFun,
		eventlog.FrameUnderflow, eventlog.FrameStop, eventlog.FrameAnn, eventlog.FrameFolded:
		return true
	}
	return false
}

// Incomplete reports whether a stack's root is missing. A stop reason that says there was
// no Haskell context is not incomplete: there was no stack to walk.
func Incomplete(st eventlog.StopReason) bool {
	return !st.Complete() && st != eventlog.StopNoHaskell && st != eventlog.StopNoUserContext
}

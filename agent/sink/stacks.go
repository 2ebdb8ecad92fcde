package sink

import (
	"ccagent/bpf"
	"ccagent/eventlog"
)

// maxStackNodes bounds the remembered stack prefixes: about 60 MB. When they
// are spent, all are forgotten and later stacks are defined anew.
const maxStackNodes = 1 << 19

// prefix is a recorded frame on top of a known stack.
type prefix struct {
	incarnation uint32 // of the process: addresses mean something only within it
	parent      uint32
	frame       uint64 // kind and run-time address
}

// stacks turns recorded stacks into nodes of the log's prefix tree.
type stacks struct {
	known   map[prefix]uint32
	next    uint32
	pending eventlog.Nodes
	// last is the stack interned before, leaf first, with the node of each
	// frame: consecutive samples mostly share all but a few leaf frames.
	last      []uint64
	lastNodes []uint32
	lastOf    uint32 // process incarnation; 0 for none
}

func newStacks() *stacks { return &stacks{known: map[prefix]uint32{}, next: 1} }

// nodesPerEvent keeps one Nodes event well below the format's limit.
const nodesPerEvent = 1024

// intern returns the node of a stack, frames leaf first, after emitting the
// nodes that are new.
func (st *stacks) intern(incarnation uint32, frames []uint64,
	locate func(addr uint64) (uint32, uint64, error), emit func(*eventlog.Nodes) error) (uint32, error) {
	if len(st.known) >= maxStackNodes {
		clear(st.known)
		st.lastOf = 0
	}
	node, shared := st.shared(incarnation, frames)
	st.pending.First, st.pending.Nodes = st.next, st.pending.Nodes[:0]
	st.remember(incarnation, frames, shared)
	for i := len(frames) - 1 - shared; i >= 0; i-- {
		key := prefix{incarnation, node, frames[i]}
		known, ok := st.known[key]
		if ok {
			node = known
			st.lastNodes[i] = node
			continue
		}
		n := eventlog.Node{Parent: node, Kind: eventlog.FrameKind(frames[i] >> bpf.FrameKindShift)}
		addr := frames[i] & bpf.FrameAddressMask
		switch {
		case n.Kind == eventlog.FrameKernel:
			n.Addr = addr | ^uint64(bpf.FrameAddressMask)
		case !n.Kind.HasAddress():
			n.Addr = addr
		default:
			var err error
			if n.Module, n.Addr, err = locate(addr); err != nil {
				return 0, err
			}
		}
		node = st.next
		st.next++
		st.known[key] = node
		st.lastNodes[i] = node
		st.pending.Nodes = append(st.pending.Nodes, n)
		if len(st.pending.Nodes) == nodesPerEvent {
			if err := emit(&st.pending); err != nil {
				return 0, err
			}
			st.pending.First, st.pending.Nodes = st.next, st.pending.Nodes[:0]
		}
	}
	if len(st.pending.Nodes) > 0 {
		if err := emit(&st.pending); err != nil {
			return 0, err
		}
	}
	return node, nil
}

// shared counts the root-most frames that the stack has in common with the
// last one, and gives the node of the last of them.
func (st *stacks) shared(incarnation uint32, frames []uint64) (node uint32, n int) {
	if st.lastOf != incarnation {
		return 0, 0
	}
	for n < len(frames) && n < len(st.last) && frames[len(frames)-1-n] == st.last[len(st.last)-1-n] {
		node = st.lastNodes[len(st.last)-1-n]
		n++
	}
	return node, n
}

// remember makes the stack the last one; the nodes of its shared frames are
// known already.
func (st *stacks) remember(incarnation uint32, frames []uint64, shared int) {
	nodes := st.lastNodes
	if cap(nodes) < len(frames) {
		nodes = make([]uint32, len(frames), 2*len(frames))
	}
	nodes = nodes[:len(frames)]
	copy(nodes[len(frames)-shared:], st.lastNodes[len(st.lastNodes)-shared:])
	st.last, st.lastNodes, st.lastOf = append(st.last[:0], frames...), nodes, incarnation
}

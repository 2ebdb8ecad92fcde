package agent

import (
	"ccagent/bpf"
	"ccagent/eventlog"
)

// maxStackNodes bounds the remembered stack prefixes: about 60 MB. When they
// are spent, all are forgotten and later stacks are defined anew.
const maxStackNodes = 1 << 19

// prefix is a recorded frame on top of a known stack.
type prefix struct {
	generation uint32 // of the image: addresses mean something only within it
	parent     uint32
	frame      uint64 // kind and run-time address
}

// stacks turns recorded stacks into nodes of the log's prefix tree.
type stacks struct {
	known   map[prefix]uint32
	next    uint32
	pending eventlog.Nodes
}

func newStacks() *stacks { return &stacks{known: map[prefix]uint32{}, next: 1} }

// nodesPerEvent keeps one Nodes event well below the format's limit.
const nodesPerEvent = 1024

// intern gives the node of a stack, frames leaf first, after emitting the
// nodes that are new.
func (st *stacks) intern(im *image, frames []uint64,
	locate func(addr uint64) (uint32, uint64, error), emit func(*eventlog.Nodes) error) (uint32, error) {
	if len(st.known) >= maxStackNodes {
		clear(st.known)
	}
	var node uint32
	st.pending.First, st.pending.Nodes = st.next, st.pending.Nodes[:0]
	for i := len(frames) - 1; i >= 0; i-- {
		key := prefix{im.generation, node, frames[i]}
		if known, ok := st.known[key]; ok {
			node = known
			continue
		}
		n := eventlog.Node{Parent: node, Kind: eventlog.FrameKind(frames[i] >> bpf.FrameKindShift)}
		addr := frames[i] & bpf.FrameAddressMask
		switch n.Kind {
		case eventlog.FrameKernel:
			n.Addr = addr | ^uint64(bpf.FrameAddressMask)
		case eventlog.FrameSkipped, eventlog.FrameContext:
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

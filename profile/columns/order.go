package columns

import "ccagent/eventlog"

// Caller returns the frame below a node, 0 for none. Frames rootwards of a context mark
// are not callers, so the mark is the root of a tree of its own.
func (n *Nodes) Caller(node uint32) uint32 {
	if n.Kind[node] == eventlog.FrameContext {
		return 0
	}
	return n.Parent[node]
}

// OnStack reports whether a frame of a kind is on a node's stack.
func (n *Nodes) OnStack(node uint32, kind eventlog.FrameKind) bool {
	for i := node; i != 0; i = n.Parent[i] {
		if n.Kind[i] == kind {
			return true
		}
		if n.Kind[i] == eventlog.FrameContext {
			return false
		}
	}
	return false
}

// Order is the stack tree in depth-first order.
type Order struct {
	Pre []uint32 // nodes, each before its descendants
	End []uint32 // by position in Pre: the first position after the node's descendants
}

// DepthFirst returns the depth-first order of the nodes.
func (n *Nodes) DepthFirst() *Order {
	o := &Order{}
	total := len(n.Parent)
	first, next := make([]uint32, total), make([]uint32, total)
	for i := total - 1; i > 0; i-- {
		up := n.Caller(uint32(i))
		next[i], first[up] = first[up], uint32(i)
	}
	o.Pre = make([]uint32, 0, total-1)
	o.End = make([]uint32, total-1)
	var open []uint32 // positions in Pre
	for node := first[0]; ; {
		if node != 0 {
			open = append(open, uint32(len(o.Pre)))
			o.Pre = append(o.Pre, node)
			node = first[node]
			continue
		}
		if len(open) == 0 {
			break
		}
		at := open[len(open)-1]
		open = open[:len(open)-1]
		o.End[at] = uint32(len(o.Pre))
		node = next[o.Pre[at]]
	}
	return o
}

package sink

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ccagent/bpf"
	"ccagent/eventlog"
)

// tree collects emitted nodes as a reader would.
type tree map[uint32]eventlog.Node

func (tr tree) add(t *testing.T, n *eventlog.Nodes) {
	for i, node := range n.Nodes {
		id := n.First + uint32(i)
		if _, twice := tr[id]; twice {
			t.Fatalf("node %d is defined twice", id)
		}
		if node.Parent != 0 {
			if _, ok := tr[node.Parent]; !ok {
				t.Fatalf("node %d is on top of %d, which is not defined yet", id, node.Parent)
			}
		}
		tr[id] = node
	}
}

// frames returns the addresses and kinds from a node to the root.
func (tr tree) frames(id uint32) []uint64 {
	var out []uint64
	for ; id != 0; id = tr[id].Parent {
		out = append(out, tr[id].Addr&bpf.FrameAddressMask|uint64(tr[id].Kind)<<bpf.FrameKindShift)
	}
	return out
}

// What is interned comes out of the log's tree again, whatever came before.
func TestInternedStacksAreWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	st, log := newStacks(), tree{}
	locate := func(addr uint64) (uint32, uint64, error) { return 7, addr, nil }
	stack := []uint64{1}
	for range 3000 {
		// Stacks grow and shrink at the leaf, mostly.
		stack = slices.Clone(stack[r.IntN(len(stack)+1):])
		for n := r.IntN(8); n >= 0; n-- {
			kind := uint64(r.IntN(int(eventlog.FrameFolded) + 1))
			stack = slices.Insert(stack, 0, uint64(r.IntN(20)+1)|kind<<bpf.FrameKindShift)
		}
		node, err := st.intern(uint32(1+r.IntN(2)), stack, locate, func(n *eventlog.Nodes) error {
			log.add(t, n)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got := log.frames(node); !slices.Equal(got, stack) {
			t.Fatalf("interned %x, the log has %x", stack, got)
		}
	}
}

func TestInternDefinesOnce(t *testing.T) {
	st := newStacks()
	defined := 0
	intern := func(frames ...uint64) {
		_, err := st.intern(1, frames,
			func(addr uint64) (uint32, uint64, error) { return 0, addr, nil },
			func(n *eventlog.Nodes) error { defined += len(n.Nodes); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	intern(3, 2, 1)
	intern(3, 2, 1)
	intern(4, 2, 1)
	intern(3, 2, 1)
	intern()
	intern(2, 1)
	if defined != 4 {
		t.Errorf("%d nodes were defined, want 4", defined)
	}
}

// A long stack is defined in several events.
func TestInternSplitsLongStacks(t *testing.T) {
	st, log := newStacks(), tree{}
	stack := make([]uint64, 3*nodesPerEvent)
	for i := range stack {
		stack[i] = uint64(i + 1)
	}
	events := 0
	node, err := st.intern(1, stack,
		func(addr uint64) (uint32, uint64, error) { return 0, addr, nil },
		func(n *eventlog.Nodes) error { events++; log.add(t, n); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if events != 3 || !slices.Equal(log.frames(node), stack) {
		t.Errorf("%d events give a stack of %d frames", events, len(log.frames(node)))
	}
}

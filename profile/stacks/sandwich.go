package stacks

import (
	"cmp"
	"slices"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// Sandwich returns the callers and callees of a function, over all stacks of a tree with
// its roots at the top. Nodes[0] of each is the function, with the weight of all samples
// that have it on their stack. Each sample counts once, at the occurrence nearest to the
// root. In callers, which extend rootwards, Self is the weight of the stacks that begin
// at the node.
func (t *Tree) Sandwich(f *profile.Frame) (callers, callees *Tree) {
	up, down := newMerge(f, t.Total), newMerge(f, t.Total)
	const outside = nowhere
	at := make([]int32, len(t.Nodes))     // by node: of callees
	rooted := make([]int32, len(t.Nodes)) // by node: of callers, the end of the stack's way up
	for i := range t.Nodes {
		n := &t.Nodes[i]
		at[i] = outside
		if n.Parent >= 0 {
			at[i], rooted[i] = at[n.Parent], rooted[n.Parent]
		}
		switch {
		case at[i] != outside:
			at[i] = down.child(at[i], n)
		case n.Frame != f:
			continue
		default: // the occurrence nearest to the root
			at[i] = 0
			caller := int32(0)
			up.add(0, n.Total, n.Samples)
			for a := n.Parent; a > 0; a = t.Nodes[a].Parent {
				caller = up.child(caller, &t.Nodes[a])
				up.add(caller, n.Total, n.Samples)
			}
			up.nodes[caller].Self = columns.SatAdd(up.nodes[caller].Self, n.Total)
			rooted[i] = caller
		}
		d := &down.nodes[at[i]]
		d.Self = columns.SatAdd(d.Self, n.Self)
		d.Folded = columns.SatAdd(d.Folded, n.Folded)
		if at[i] != 0 || n.Frame == f {
			down.add(at[i], n.Total, n.Samples)
			d.Forced = columns.SatAdd(d.Forced, n.Forced)
		}
	}
	callers, callees = up.finish(), down.finish()
	for i := range at {
		if at[i] == outside {
			rooted[i] = nowhere
		}
	}
	callers.At, callees.At = moved(t.At, rooted), moved(t.At, at)
	return callers, callees
}

// mergedTree is a tree built from parts of another one.
type mergedTree struct {
	nodes []Node
	index map[mergedKey]int32
	total uint64
}

type mergedKey struct {
	parent int32
	frame  *profile.Frame
}

func newMerge(f *profile.Frame, total uint64) *mergedTree {
	return &mergedTree{nodes: []Node{{Frame: f, Name: f.Name, Parent: -1}}, index: make(map[mergedKey]int32), total: total}
}

func (m *mergedTree) child(parent int32, like *Node) int32 {
	k := mergedKey{parent, like.Frame}
	id, ok := m.index[k]
	if !ok {
		id = int32(len(m.nodes))
		m.nodes = append(m.nodes, Node{Frame: like.Frame, Name: like.Name, Parent: parent})
		m.index[k] = id
	}
	return id
}

func (m *mergedTree) add(id int32, weight, samples uint64) {
	n := &m.nodes[id]
	n.Total = columns.SatAdd(n.Total, weight)
	n.Samples += samples
}

func (m *mergedTree) finish() *Tree {
	t := &Tree{Nodes: m.nodes, Total: m.total}
	for i := 1; i < len(t.Nodes); i++ {
		up := &t.Nodes[t.Nodes[i].Parent]
		up.Children = append(up.Children, int32(i))
	}
	for i := range t.Nodes {
		slices.SortFunc(t.Nodes[i].Children, func(x, y int32) int {
			a, b := &t.Nodes[x], &t.Nodes[y]
			return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name), cmp.Compare(x, y))
		})
	}
	return t
}

// Function finds the frame of a function by the name shown in trees, or else by the part
// of the name after a dot. It returns nil if there is none or several; names lists them
// if there are several.
func (t *Tree) Function(name string) (f *profile.Frame, names []string) {
	tails := make(map[*profile.Frame]bool)
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if i == 0 {
			continue
		}
		if n.Name == name {
			return n.Frame, nil
		}
		if len(n.Name) > len(name) && n.Name[len(n.Name)-len(name):] == name && n.Name[len(n.Name)-len(name)-1] == '.' && !tails[n.Frame] {
			tails[n.Frame] = true
			f = n.Frame
			names = append(names, n.Name)
		}
	}
	if len(names) == 1 {
		return f, nil
	}
	slices.Sort(names)
	return nil, names
}

package stacks

import (
	"cmp"
	"math"
	"slices"

	"ccagent/profile"
)

// Pair is the call tree of two groups of runs, A and B. Nodes[0] is the root; a node comes after
// its parent. Nodes are matched by the names on the way to them.
type Pair struct {
	Nodes []PairNode
	Runs  [2]int // of A and B
}

// PairNode is a frame with its callers in both groups. Shares are of each run's total, and of
// several runs the mean: runs that lasted differently are compared by what they are made of.
type PairNode struct {
	Frame    *profile.Frame // of one side; nil if it stands for no function
	Name     string
	Parent   int32   // −1 for the root
	Children []int32 // by the larger of their shares, largest first
	Share    [2]float64
	Self     [2]float64 // the part of Share that ends here
	Weight   [2]float64 // mean weight of a run
	// Low and High are the 95 % interval of B's share less A's, of the noise of sampling alone:
	// how runs differ is not in it. Zero for nodes that are too small on both sides.
	Low, High float64
}

// Change is B's share less A's.
func (n *PairNode) Change() float64 { return n.Share[1] - n.Share[0] }

// Differs reports whether the change is more than the noise of sampling.
func (n *PairNode) Differs() bool { return n.Low > 0 || n.High < 0 }

// Only returns the side that alone has the node, and whether one does.
func (n *PairNode) Only() (side int, ok bool) {
	switch {
	case n.Share[0] == 0 && n.Share[1] > 0:
		return 1, true
	case n.Share[1] == 0 && n.Share[0] > 0:
		return 0, true
	}
	return 0, false
}

type pairKey struct {
	parent            int32
	kind              profile.Kind
	name, module, pkg string
}

// pairer adds trees to a Pair.
type pairer struct {
	*Pair
	index map[pairKey]int32
	// Squared distances from the mean shares to the ends of their intervals, by node and side.
	// above is less what a node has that no run of the side saw, which unseen sums up.
	below, above [][2]float64
	unseen       [2]float64
	least        float64
}

// PairOf compares the call trees of two groups of runs. Intervals are computed for nodes with at
// least a fraction of a run's total.
func PairOf(a, b []*profile.Selection, least float64) *Pair {
	c := &pairer{Pair: &Pair{Runs: [2]int{len(a), len(b)}, Nodes: []PairNode{{Parent: -1, Name: "(root)"}}}, index: map[pairKey]int32{}, least: least}
	c.below, c.above = make([][2]float64, 1), make([][2]float64, 1)
	for side, runs := range [2][]*profile.Selection{a, b} {
		for _, s := range runs {
			c.add(side, s, 1/float64(len(runs)))
		}
	}
	c.finish()
	return c.Pair
}

// add adds a run, which counts for a part of its side.
func (c *pairer) add(side int, s *profile.Selection, part float64) {
	t := TreeOf(s, Options{})
	if t.Total == 0 {
		return
	}
	sure := t.Sure(s, c.least)
	unseen := square(part * s.Batched().Unseen())
	c.unseen[side] += unseen
	at := make([]int32, len(t.Nodes))
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if i > 0 {
			at[i] = c.node(at[n.Parent], n)
		}
		o := &c.Nodes[at[i]]
		share := s.Fraction(n.Total)
		o.Share[side] += part * share
		o.Self[side] += part * s.Fraction(n.Self)
		o.Weight[side] += part * float64(n.Total)
		if share < c.least {
			c.below[at[i]][side] += square(part * share)
			continue
		}
		c.below[at[i]][side] += square(part * (share - sure[i].Low))
		c.above[at[i]][side] += square(part*(sure[i].High-share)) - unseen
	}
	c.Nodes[0].Name = t.Nodes[0].Name
}

func (c *pairer) node(parent int32, n *Node) int32 {
	k := pairKey{parent: parent, name: n.Name}
	if f := n.Frame; f != nil {
		k.kind, k.module, k.pkg = f.Kind, f.Module, f.Package
	}
	id, ok := c.index[k]
	if !ok {
		id = int32(len(c.Nodes))
		c.Nodes = append(c.Nodes, PairNode{Frame: n.Frame, Name: n.Name, Parent: parent})
		c.below, c.above = append(c.below, [2]float64{}), append(c.above, [2]float64{})
		c.index[k] = id
		c.Nodes[parent].Children = append(c.Nodes[parent].Children, id)
	}
	return id
}

// finish makes the intervals of changes: those of two independent shares, of which each has an
// interval of its own, by Newcombe, "Interval estimation for the difference between independent
// proportions", Statistics in Medicine 17 (1998), method 10.
func (c *pairer) finish() {
	for i := range c.Nodes {
		n := &c.Nodes[i]
		slices.SortStableFunc(n.Children, func(x, y int32) int {
			return cmp.Compare(max(c.Nodes[y].Share[0], c.Nodes[y].Share[1]), max(c.Nodes[x].Share[0], c.Nodes[x].Share[1]))
		})
		if i == 0 || max(n.Share[0], n.Share[1]) < c.least {
			continue
		}
		n.Low = n.Change() - math.Sqrt(c.below[i][1]+c.unseen[0]+c.above[i][0])
		n.High = n.Change() + math.Sqrt(c.unseen[1]+c.above[i][1]+c.below[i][0])
	}
}

func square(v float64) float64 { return v * v }

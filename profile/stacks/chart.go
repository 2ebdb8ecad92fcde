package stacks

import (
	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Chart is a selection's stacks over time, as a flame chart shows them: the path that had the most
// weight in each of equal columns.
type Chart struct {
	From, To, Step uint64 // ns; the last column may extend beyond To
	Tree           *Tree  // of the samples in From to To
	Columns        []ChartColumn
}

// ChartColumn is a stretch of time.
type ChartColumn struct {
	Samples, Weight uint64
	// Lost is the number of samples that were lost or not taken.
	Lost uint64
	// Why says of a column without samples why nobody knows what ran; "" of one in which nothing did.
	Why string
	// Path is the nodes of the tree, root's child first: at each step the child with the most weight. Of is
	// each one's part of the column's weight.
	Path []int32
	Of   []float64
}

// ChartRun is columns that follow each other and have the same path.
type ChartRun struct {
	From, To int // columns, To exclusive
	Node     int32
	Depth    int // of the node, from 0
}

// ChartOf computes a chart of a selection's event, stacks and threads in a window, which replaces
// the selection's own range.
func ChartOf(s *profile.Selection, window profile.Range, n int) *Chart {
	p := s.Profile
	c := &Chart{From: window.From, To: window.To}
	if c.To == 0 || c.To > p.Duration {
		c.To = p.Duration + 1
	}
	c.From = min(c.From, c.To)
	n = max(1, min(n, 1<<12))
	c.Step = max(1, (c.To-c.From+uint64(n)-1)/uint64(n))
	c.Columns = make([]ChartColumn, n)
	f := s.Filter
	f.Range = profile.Range{From: c.From, To: max(c.To, 1)}
	in := p.Select(f)
	c.Tree = TreeOf(in, Options{})
	column := func(t uint64) int { return min(int((t-c.From)/c.Step), n-1) }
	weight := make([]map[int32]uint64, n) // by the node at which samples end
	if p.Duration > 0 {
		for site, x := range in.EachSample() {
			i := column(x.Time)
			c.Columns[i].Samples++
			c.Columns[i].Weight = columns.SatAdd(c.Columns[i].Weight, x.Weight)
			if at := c.Tree.At[site]; at > 0 {
				if weight[i] == nil {
					weight[i] = map[int32]uint64{}
				}
				weight[i][at] = columns.SatAdd(weight[i][at], x.Weight)
			}
		}
	}
	for i := range p.Losses {
		l := &p.Losses[i]
		if s.Event >= 0 && l.Event == p.Events[s.Event].Index && l.Reason != eventlog.LossSideBand && l.Time >= c.From && l.Time < c.To {
			x := &c.Columns[column(l.Time)]
			x.Lost = columns.SatAdd(x.Lost, l.Count)
		}
	}
	ps := paths{c.Tree, make([]uint64, len(c.Tree.Nodes)), make([]int32, len(c.Tree.Nodes))}
	for i := range c.Columns {
		ps.find(&c.Columns[i], i, weight[i])
	}
	c.doubt(in)
	return c
}

// doubt says of which columns nobody knows what ran.
func (c *Chart) doubt(in *profile.Selection) {
	samples, weight := make([]uint64, len(c.Columns)), make([]uint64, len(c.Columns))
	for i := range c.Columns {
		samples[i], weight[i] = c.Columns[i].Samples, c.Columns[i].Weight
	}
	unseen := in.Unseen(samples, weight, c.Step)
	for i := range c.Columns {
		x := &c.Columns[i]
		from := c.From + uint64(i)*c.Step
		to := max(from, min(from+c.Step, c.To))
		switch {
		case x.Samples > 0:
		case x.Lost > 0:
			x.Why = "samples were lost"
		case to > from && in.Profile.Unrecorded(from, to)*2 >= to-from:
			x.Why = in.Profile.WhyUnrecorded()
		case unseen != nil && unseen[i]:
			x.Why = "samples were further apart"
		}
	}
}

// paths finds columns' paths, one after the other.
type paths struct {
	tree  *Tree
	total []uint64 // by node, of the column that it was seen in last
	seen  []int32  // by node: 1 + that column
}

// find finds the way from the root along which most of a column's weight lies, given the weight that ends at each node.
func (p *paths) find(x *ChartColumn, column int, ends map[int32]uint64) {
	t, stamp := p.tree, int32(column)+1
	for at, w := range ends {
		for n := at; n >= 0; n = t.Nodes[n].Parent {
			if p.seen[n] != stamp {
				p.seen[n], p.total[n] = stamp, 0
			}
			p.total[n] = columns.SatAdd(p.total[n], w)
		}
	}
	for at := int32(0); ; {
		best, most := int32(-1), ends[at] // what ends here may be most
		for _, k := range t.Nodes[at].Children {
			if w := p.total[k]; p.seen[k] == stamp && (w > most || w == most && (best < 0 || k < best)) {
				best, most = k, w
			}
		}
		if best < 0 {
			return
		}
		x.Path = append(x.Path, best)
		x.Of = append(x.Of, float64(most)/float64(max(x.Weight, 1)))
		at = best
	}
}

// Runs gives the blocks of a chart, by depth and then by time: columns that follow each other and have the
// same node at a depth, and so the same path to it.
func (c *Chart) Runs() []ChartRun {
	var out []ChartRun
	for depth := 0; ; depth++ {
		before := len(out)
		for i := range c.Columns {
			path := c.Columns[i].Path
			if depth >= len(path) {
				continue
			}
			if k := len(out) - 1; k >= before && out[k].To == i && out[k].Node == path[depth] {
				out[k].To++
				continue
			}
			out = append(out, ChartRun{From: i, To: i + 1, Node: path[depth], Depth: depth})
		}
		if len(out) == before {
			return out
		}
	}
}

// Unknown reports whether nobody knows what ran in a column.
func (x *ChartColumn) Unknown() bool { return x.Why != "" }

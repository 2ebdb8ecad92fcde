package stacks

import (
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
)

// nowhere is the node of sites whose samples a tree does not have.
const nowhere = -1

// Sure says how sure a node's figures are.
type Sure struct {
	profile.Sure // of Total; tied if the order after the sibling before it is within noise
	// Self is of the node's Self. It is zero where that is zero by definition, at the inner nodes
	// of an inverted tree.
	Self interval.Interval
}

// Sure returns how sure the figures of a tree's nodes are, by node. Nodes below a fraction of the
// selection are left out: they have the zero Sure.
func (t *Tree) Sure(s *profile.Selection, least float64) []Sure {
	c := &sureTree{t: t, b: s.Batched(), out: make([]Sure, len(t.Nodes))}
	c.unseen = interval.Interval{High: c.b.Unseen()}
	c.least = uint64(least * float64(t.Total))
	c.first = make([]int32, len(t.Nodes)+1)
	for _, n := range t.At {
		if n != nowhere {
			c.first[n+1]++
		}
	}
	for n := range t.Nodes {
		c.first[n+1] += c.first[n]
	}
	c.sites = make([]columns.SiteID, c.first[len(t.Nodes)])
	next := make([]int32, len(t.Nodes))
	for site, n := range t.At {
		if n != nowhere {
			c.sites[c.first[n]+next[n]] = columns.SiteID(site)
			next[n]++
		}
	}
	var root interval.Part
	c.node(0, 0, &root)
	c.out[0].Interval = interval.Interval{Low: 1, High: 1, Effective: c.b.Effective()}
	if t.Nodes[0].Total < t.Total {
		c.out[0].Interval = c.b.Share(&root) // of a function's callers or callees
	}
	c.alike(0)
	return c.out
}

// sureTree adds up samples from the leaves of a tree to its root. It needs memory for two
// parts a level, not for each node.
type sureTree struct {
	t     *Tree
	b     *profile.Batched
	out   []Sure
	least uint64
	first []int32          // by node: its own sites are sites[first[n]:first[n+1]]
	sites []columns.SiteID // sorted by the node at which they end
	parts [][2]interval.Part

	own    interval.Part     // of the node that is summed up
	unseen interval.Interval // of a figure of zero
}

// node sums up a node's samples into p.
func (c *sureTree) node(id int32, depth int, p *interval.Part) {
	c.b.Reset(&c.own)
	for _, site := range c.sites[c.first[id]:c.first[id+1]] {
		c.b.Add(&c.own, site)
	}
	c.out[id].Self = c.self(&c.t.Nodes[id])
	c.b.Reset(p)
	p.Add(&c.own)
	c.children(id, depth, p)
}

// self is the interval of a node's Self, whose samples are in own; but for one that is all of the
// node's: see alike.
func (c *sureTree) self(n *Node) interval.Interval {
	switch {
	case c.t.inverted && n.Self == 0:
		return interval.Interval{}
	case n.Self == 0:
		return c.unseen
	case n.Self == n.Total:
		return interval.Interval{}
	}
	return c.b.Share(&c.own)
}

// alike gives a node that is all self the interval of its total for both: one takes long.
func (c *sureTree) alike(id int32) {
	if n := &c.t.Nodes[id]; n.Self > 0 && n.Self == n.Total {
		c.out[id].Self = c.out[id].Interval
	}
}

// rest adds a node's samples to p, and does so for small nodes above it, too.
func (c *sureTree) rest(id int32, depth int, p *interval.Part) {
	for _, site := range c.sites[c.first[id]:c.first[id+1]] {
		c.b.Add(p, site)
	}
	c.children(id, depth, p)
}

// children adds what is below a node to p.
func (c *sureTree) children(id int32, depth int, p *interval.Part) {
	n := &c.t.Nodes[id]
	if len(n.Children) == 0 {
		return
	}
	if depth == len(c.parts) {
		c.parts = append(c.parts, [2]interval.Part{})
	}
	// The parts move when the list grows, so they are kept here while the children are
	// summed up.
	pair := c.parts[depth]
	now, before := &pair[0], &pair[1]
	var none interval.Part
	for i, k := range n.Children {
		if c.t.Nodes[k].Total < c.least {
			c.rest(k, depth+1, p)
			continue
		}
		c.node(k, depth+1, now)
		c.out[k].Interval = c.b.Share(now)
		c.alike(k)
		c.out[k].Tied = i > 0 && !c.b.Ordered(before, now, &none)
		p.Add(now)
		now, before = before, now
	}
	c.parts[depth] = pair
}

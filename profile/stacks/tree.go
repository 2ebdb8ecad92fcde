package stacks

import (
	"cmp"
	"fmt"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Options determine how stacks become a call tree.
type Options struct {
	// Invert puts leaves at the top, with their callers below them.
	Invert bool
	// AllFrames shows the frames that only structure the stack and the STG machine's
	// own return frames, and does not combine recursion. By default, adjacent frames
	// of the same binding are one: they are its pending case continuations or its
	// direct recursion.
	AllFrames bool
	// MaxDepth bounds the tree's depth; 0 means DefaultDepth, below 0 no bound.
	MaxDepth int
	// Least is the fraction of the selection below which an inverted tree does not
	// distinguish callers: a smaller node has one child that stands for all deeper
	// frames. An inverted tree of many stacks would otherwise be far larger than the
	// original.
	Least float64
}

// DefaultDepth is more than a user looks at, and within the nesting limits of JSON
// parsers.
const DefaultDepth = 200

// Tree is a call tree. Nodes[0] is the root; a node comes after its parent.
type Tree struct {
	Nodes []Node
	// Total is the selection's weight.
	Total uint64
	// At is the node at which the samples of each site end: it and the nodes above it
	// in the tree have them. −1 for sites that the tree does not have.
	At []int32
	// inverted: only the leaves, at the top, have a Self.
	inverted bool
}

// Node is a frame with its callers.
type Node struct {
	Frame  *profile.Frame
	Name   string // the frame's name, or the number of frames skipped
	Parent int32  // −1 for the root
	// Self is the weight of samples that end here; Total includes the nodes below in
	// the tree. In an inverted tree only the leaves, at the top, have a Self.
	Self, Total uint64
	Samples     uint64 // number of samples in Total
	// Forced is the part of Total that was reached through an update frame: the frame
	// evaluates a thunk that its caller forced.
	Forced uint64
	// Folded is the part of Total in stacks from which repetitions of this frame, and
	// of those that follow, were left out when recording.
	Folded   uint64
	Children []int32 // by Total, largest first
}

// TreeOf returns the selection's call tree.
func TreeOf(s *profile.Selection, o Options) *Tree {
	down := o
	if o.Invert {
		down.MaxDepth = -1 // the bound is of frames from the leaf, which may be deep
	}
	b := newBuilder(s, down, 0)
	b.opts = o
	b.at = make([]int32, len(s.Count))
	for site := range b.at {
		b.at[site] = nowhere
	}
	b.topDown()
	if o.Invert {
		b = b.inverted()
	}
	return b.finish()
}

type key struct {
	parent int32
	frame  uint32
}

// node is a Node while the tree is built. Trees of many stacks have millions.
type node struct {
	parent  int32
	frame   uint32
	depth   int32
	limit   bool // stands for all deeper frames
	self    uint64
	total   uint64
	samples uint64
	forced  uint64
	folded  uint64
}

type builder struct {
	s      *profile.Selection
	p      *profile.Profile
	opts   Options
	limit  int32
	frames *profile.Frames
	nodes  []node
	index  map[key]int32
	words  map[int32][2]uint64 // by node of skipped frames: least and most words
	at     []int32             // by site: see Tree.At
}

func newBuilder(s *profile.Selection, o Options, nodes int) *builder {
	b := &builder{
		s: s, p: s.Profile, opts: o, frames: s.Frames(),
		index: make(map[key]int32, nodes), words: make(map[int32][2]uint64),
	}
	switch {
	case o.MaxDepth == 0:
		b.limit = DefaultDepth
	case o.MaxDepth > 0:
		b.limit = int32(o.MaxDepth)
	default:
		b.limit = 1 << 30
	}
	b.nodes = append(make([]node, 0, nodes+1), node{parent: -1})
	return b
}

// child returns a child of a node, and creates it if needed. All frames beyond the depth
// limit are one node.
func (b *builder) child(parent int32, frame uint32) int32 {
	if b.nodes[parent].limit {
		return parent
	}
	deep := b.nodes[parent].depth >= b.limit
	if deep {
		frame = profile.FrameDeeper
	}
	k := key{parent, frame}
	id, ok := b.index[k]
	if !ok {
		id = int32(len(b.nodes))
		b.nodes = append(b.nodes, node{parent: parent, frame: frame, depth: b.nodes[parent].depth + 1, limit: deep})
		b.index[k] = id
	}
	return id
}

// topDown maps every node of the log that has weight to a node of the tree. Incomplete
// stacks have a separate root for each stop reason.
func (b *builder) topDown() {
	s, p := b.s, b.p
	classes := make(map[int][]int) // stop reason, or −1 for stacks that count as complete → sites
	for site, n := range s.Count {
		if n == 0 {
			continue
		}
		class := -1
		if st := p.Sites[site].Stop; columns.Incomplete(st) && p.Sites[site].Node != 0 {
			class = min(int(st), len(columns.Event{}.Stops)-1)
		}
		classes[class] = append(classes[class], site)
	}
	for class := -1; class < len(columns.Event{}.Stops); class++ {
		sites := classes[class]
		if len(sites) == 0 {
			continue
		}
		root := int32(0)
		if class >= 0 {
			root = b.child(0, uint32(profile.FrameCut+class))
		}
		b.class(root, sites)
	}
}

func (b *builder) class(root int32, sites []int) {
	s, p := b.s, b.p
	// attach returns the log node at which a site's cost appears in the tree.
	attach := func(site int) uint32 {
		if leaf := s.Leaf[site]; s.CountsBytes() && leaf != 0 {
			return leaf
		}
		return p.Sites[site].Node
	}
	used := make([]bool, len(p.Nodes.Parent))
	weight := make([]uint64, len(p.Nodes.Parent))
	for _, site := range sites {
		n := attach(site)
		weight[n] = columns.SatAdd(weight[n], s.Weight[site])
		for ; n != 0 && !used[n]; n = p.Nodes.Caller(n) {
			used[n] = true
		}
	}
	for n := len(weight) - 1; n > 0; n-- {
		if up := p.Nodes.Caller(uint32(n)); up != 0 {
			weight[up] = columns.SatAdd(weight[up], weight[n])
		}
	}
	at := make([]int32, len(p.Nodes.Parent))
	forced := make([]bool, len(p.Nodes.Parent))
	folded := make([]bool, len(p.Nodes.Parent))
	visible := make([]int8, len(p.Places))
	at[0] = root
	for n := uint32(1); int(n) < len(at); n++ {
		if !used[n] {
			continue
		}
		up := p.Nodes.Caller(n)
		at[n], forced[n], folded[n] = at[up], forced[up], folded[up]
		switch p.Nodes.Kind[n] {
		case eventlog.FrameUpdate:
			forced[n] = true
		case eventlog.FrameFolded:
			folded[n] = true
		}
		if !b.shows(n, visible) {
			continue
		}
		frame := b.frameOf(n)
		if frame == profile.FrameSkippedWords {
			at[n] = b.child(at[up], frame)
			continue
		}
		if again := b.recurs(at[up], frame); again != 0 {
			at[n], forced[n], folded[n] = again, false, false
			continue
		}
		if b.opts.AllFrames || at[up] == 0 || b.nodes[at[up]].frame != frame {
			at[n] = b.child(at[up], frame)
			if forced[n] && at[n] != at[up] {
				t := &b.nodes[at[n]]
				t.forced = columns.SatAdd(t.forced, weight[n])
			}
		}
		if folded[n] && at[n] != at[up] {
			t := &b.nodes[at[n]]
			t.folded = columns.SatAdd(t.folded, weight[n])
		}
		forced[n], folded[n] = false, false
		if frame == b.frames.Of[p.Nodes.Place[n]] {
			for _, inlined := range b.frames.Inlined[columns.PlaceID(p.Nodes.Place[n])] {
				at[n] = b.child(at[n], inlined)
			}
		}
	}
	for _, site := range sites {
		st := p.Sites[site]
		if w, ok := p.SkippedWords[uint32(site)]; ok {
			b.skipped(at, st.Node, w)
		}
		t := at[attach(site)]
		switch {
		case st.Kernel && !p.Nodes.OnStack(st.Node, eventlog.FrameKernel):
			t = b.child(t, profile.FrameKernel)
		case st.Node == 0:
			t = b.child(t, profile.FrameUnresolved)
		}
		b.nodes[t].self = columns.SatAdd(b.nodes[t].self, s.Weight[site])
		b.nodes[t].samples += s.Count[site]
		b.at[site] = t
	}
}

// shows reports whether a frame of the log appears in the tree.
func (b *builder) shows(n uint32, visible []int8) bool {
	p := b.p
	k, pl := p.Nodes.Kind[n], p.Nodes.Place[n]
	switch {
	case k == eventlog.FrameContext:
		return false
	case k == eventlog.FrameSkipped:
		return true
	case k == eventlog.FrameFolded:
		return b.opts.AllFrames
	case !b.s.Visible(pl, visible):
		return false
	case b.opts.AllFrames:
		return true
	case columns.Structural(k):
		return false
	}
	// Return frames of the STG machine (stg_ap_v_info and similar) only connect
	// callers, but those of bytecode stand for functions that are interpreted; as a leaf, such code is where the time is spent.
	return k == eventlog.FramePC || k == eventlog.FrameRetBCO || p.Locations[pl].Category != eventlog.CategorySTG
}

func (b *builder) frameOf(n uint32) uint32 {
	switch b.p.Nodes.Kind[n] {
	case eventlog.FrameSkipped:
		return profile.FrameSkippedWords
	case eventlog.FrameFolded:
		return profile.FrameRepeats
	}
	return b.frames.Of[b.p.Nodes.Place[n]]
}

// skipped names the frame that stands for the missing part of a stack after the size of
// that part.
func (b *builder) skipped(at []int32, node uint32, words [2]uint64) {
	for n := node; n != 0; n = b.p.Nodes.Parent[n] {
		if b.p.Nodes.Kind[n] == eventlog.FrameSkipped {
			b.missing(at[n], words)
			return
		}
	}
}

func (b *builder) missing(id int32, words [2]uint64) {
	if b.nodes[id].frame != profile.FrameSkippedWords {
		return
	}
	if w, ok := b.words[id]; ok {
		words = [2]uint64{min(w[0], words[0]), max(w[1], words[1])}
	}
	b.words[id] = words
}

// inverted builds the tree with leaves at the top from a tree with roots at the top.
func (b *builder) inverted() *builder {
	if b.opts.Least > 0 {
		return b.invertedLargest()
	}
	inv := newBuilder(b.s, b.opts, 2*len(b.nodes))
	to := make([]int32, len(b.nodes)) // where a node's own samples end
	for i := range b.nodes {
		n := &b.nodes[i]
		if n.samples == 0 {
			continue
		}
		inv.atRoot(n, i == 0)
		at := int32(0)
		for up := int32(i); up > 0; up = b.nodes[up].parent {
			at = inv.child(at, b.nodes[up].frame)
			t := &inv.nodes[at]
			if t.depth == 1 {
				t.self = columns.SatAdd(t.self, n.self)
			}
			t.total = columns.SatAdd(t.total, n.self)
			t.samples += n.samples
			if w, ok := b.words[up]; ok {
				inv.missing(at, w)
			}
			if t.limit {
				break
			}
		}
		to[i] = at
	}
	inv.at = moved(b.at, to)
	return inv
}

// moved returns the nodes of sites in a tree that has other nodes in the place of some.
func moved(at, to []int32) []int32 {
	out := make([]int32, len(at))
	for site, n := range at {
		out[site] = nowhere
		if n != nowhere {
			out[site] = to[n]
		}
	}
	return out
}

// atRoot adds a node's own samples to an inverted tree's root. They are the root's own
// samples only if the node is the root, too.
func (b *builder) atRoot(n *node, own bool) {
	r := &b.nodes[0]
	r.total = columns.SatAdd(r.total, n.self)
	r.samples += n.samples
	if own {
		r.self = columns.SatAdd(r.self, n.self)
	}
}

// invertedLargest inverts level by level, and only expands nodes that are large enough.
func (b *builder) invertedLargest() *builder {
	least := uint64(b.opts.Least * float64(b.s.Total))
	inv := newBuilder(b.s, b.opts, 1<<12)
	to := make([]int32, len(b.nodes)) // where a node's own samples end
	// A cursor is a stack being inverted: the node with its samples, and its current
	// frame.
	type cursor struct{ leaf, at int32 }
	type group struct {
		node    int32
		cursors []cursor
	}
	root := group{node: 0}
	for i := range b.nodes {
		n := &b.nodes[i]
		if n.samples == 0 {
			continue
		}
		inv.atRoot(n, i == 0)
		if i == 0 {
			continue
		}
		root.cursors = append(root.cursors, cursor{int32(i), int32(i)})
	}
	for open := []group{root}; len(open) > 0; {
		g := open[len(open)-1]
		open = open[:len(open)-1]
		below := make(map[int32][]cursor)
		var order []int32
		small := g.node != 0 && inv.nodes[g.node].total < least
		for _, c := range g.cursors {
			if c.at <= 0 {
				continue // the root has no caller
			}
			n, frame := &b.nodes[c.leaf], b.nodes[c.at].frame
			if small {
				frame = profile.FrameDeeper
			}
			at := inv.child(g.node, frame)
			to[c.leaf] = at
			t := &inv.nodes[at]
			if t.depth == 1 {
				t.self = columns.SatAdd(t.self, n.self)
			}
			t.total = columns.SatAdd(t.total, n.self)
			t.samples += n.samples
			if w, ok := b.words[c.at]; ok {
				inv.missing(at, w)
			}
			if small || t.limit {
				continue
			}
			if _, ok := below[at]; !ok {
				order = append(order, at)
			}
			below[at] = append(below[at], cursor{c.leaf, b.nodes[c.at].parent})
		}
		for _, at := range order {
			open = append(open, group{at, below[at]})
		}
	}
	inv.at = moved(b.at, to)
	return inv
}

func (b *builder) finish() *Tree {
	if !b.opts.Invert {
		for i := len(b.nodes) - 1; i >= 0; i-- {
			n := &b.nodes[i]
			n.total = columns.SatAdd(n.total, n.self)
			if n.parent >= 0 {
				up := &b.nodes[n.parent]
				up.total = columns.SatAdd(up.total, n.total)
				up.samples += n.samples
			}
		}
	}
	if b.s.Filter.FoldRecursion {
		b.prune()
	}
	t := &Tree{Nodes: make([]Node, len(b.nodes)), Total: b.s.Total, At: b.at, inverted: b.opts.Invert}
	// All children are in one array, those of a node adjacent.
	counts := make([]int32, len(b.nodes))
	for i := range b.nodes[1:] {
		counts[b.nodes[i+1].parent]++
	}
	children := make([]int32, len(b.nodes))
	for i := range b.nodes {
		n := &b.nodes[i]
		frame := &b.frames.List[n.frame]
		t.Nodes[i] = Node{
			Frame: frame, Name: frame.Name, Parent: n.parent,
			Self: n.self, Total: n.total, Samples: n.samples, Forced: n.forced, Folded: n.folded,
			Children: children[:0:counts[i]],
		}
		children = children[counts[i]:]
		if n.frame == profile.FrameSkippedWords {
			t.Nodes[i].Name = skippedName(b.words[int32(i)])
		}
		if n.parent >= 0 {
			up := &t.Nodes[n.parent]
			up.Children = append(up.Children, int32(i))
		}
	}
	for i := range t.Nodes {
		if len(t.Nodes[i].Children) < 2 {
			continue
		}
		slices.SortFunc(t.Nodes[i].Children, func(x, y int32) int {
			a, b := &t.Nodes[x], &t.Nodes[y]
			return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(a.Name, b.Name), cmp.Compare(x, y))
		})
	}
	return t
}

func skippedName(words [2]uint64) string {
	switch {
	case words[1] == 0:
		return "… words skipped"
	case words[0] == words[1]:
		return fmt.Sprintf("… %d words skipped", words[0])
	}
	return fmt.Sprintf("… %d–%d words skipped", words[0], words[1])
}

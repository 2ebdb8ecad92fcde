package profile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ccagent/eventlog"
)

// TreeOptions say how stacks become a call tree.
type TreeOptions struct {
	// Invert puts leaves at the top and callers under them.
	Invert bool
	// AllFrames shows the frames that only structure the stack and the STG
	// machine's own return frames, and leaves recursion unfolded. By default
	// neighbouring frames of one binding are one: they are its pending case
	// continuations or its direct recursion.
	AllFrames bool
	// MaxDepth bounds the tree's depth; 0 means DefaultDepth, below 0 no bound.
	MaxDepth int
}

// DefaultDepth is deeper than a reader follows and not deeper than readers of
// JSON nest.
const DefaultDepth = 200

// Tree is a call tree. Nodes[0] is the root; a node's parent is before it.
type Tree struct {
	Nodes []TreeNode
	// Total is the selection's.
	Total uint64
}

// TreeNode is a frame with its callers.
type TreeNode struct {
	Frame  *Frame
	Name   string // the frame's, or how much was skipped
	Parent int32  // −1 for the root
	// Self is the weight of samples that end here, Total with all above them.
	// Of an inverted tree only the leaves, at the top, have a Self.
	Self, Total uint64
	Samples     uint64 // that Total is the weight of
	// Forced is the part of Total that came here by way of an update frame: the
	// frame evaluates a thunk that its caller forced.
	Forced uint64
	// Folded is the part of Total in stacks of which repetitions of this frame,
	// and what follows, were left out when they were recorded.
	Folded   uint64
	Children []int32 // by Total, largest first

	frame        uint32
	words        [2]uint64 // of skipped frames: fewest and most
	depth        int32
	descendLimit bool
}

// Tree builds the selection's call tree.
func (s *Selection) Tree(o TreeOptions) *Tree {
	b := &treeBuilder{s: s, p: s.Profile, opts: o, frames: s.Profile.frameTable(), index: make(map[treeKey]int32)}
	switch {
	case o.MaxDepth == 0:
		b.limit = DefaultDepth
	case o.MaxDepth > 0:
		b.limit = int32(o.MaxDepth)
	default:
		b.limit = 1 << 30
	}
	b.nodes = []TreeNode{{Parent: -1}}
	b.topDown()
	if o.Invert {
		b = b.inverted()
	}
	return b.finish()
}

type treeKey struct {
	parent int32
	frame  uint32
}

type treeBuilder struct {
	s      *Selection
	p      *Profile
	opts   TreeOptions
	limit  int32
	frames *frameTable
	nodes  []TreeNode
	index  map[treeKey]int32
}

// child finds or makes a node. Beyond the depth limit all is one node.
func (b *treeBuilder) child(parent int32, frame uint32) int32 {
	if b.nodes[parent].descendLimit {
		return parent
	}
	deep := b.nodes[parent].depth >= b.limit
	if deep {
		frame = frameDeeper
	}
	k := treeKey{parent, frame}
	id, ok := b.index[k]
	if !ok {
		id = int32(len(b.nodes))
		b.nodes = append(b.nodes, TreeNode{Parent: parent, frame: frame, depth: b.nodes[parent].depth + 1, descendLimit: deep})
		b.index[k] = id
	}
	return id
}

// topDown maps every node of the log that bears weight to a node of the tree.
// Samples whose stack is incomplete have a root of their own for each reason.
func (b *treeBuilder) topDown() {
	s, p := b.s, b.p
	classes := make(map[int][]int) // stop reason, or −1 for stacks to be taken as whole → sites
	for site, n := range s.count {
		if n == 0 {
			continue
		}
		class := -1
		if st := p.sites[site].Stop; incomplete(st) && p.sites[site].Node != 0 {
			class = min(int(st), len(Event{}.Stops)-1)
		}
		classes[class] = append(classes[class], site)
	}
	for class := -1; class < len(Event{}.Stops); class++ {
		sites := classes[class]
		if len(sites) == 0 {
			continue
		}
		root := int32(0)
		if class >= 0 {
			root = b.child(0, uint32(frameCut+class))
		}
		b.class(root, sites)
	}
}

// incomplete reports whether a stack's root is missing. Where the registers
// hold no Haskell context there is no stack to be had.
func incomplete(st eventlog.StopReason) bool {
	return !st.Complete() && st != eventlog.StopNoHaskell && st != eventlog.StopNoUserContext
}

func (b *treeBuilder) class(root int32, sites []int) {
	s, p := b.s, b.p
	order := p.treeOrder()
	// attach is where a site's cost stands on the tree.
	attach := func(site int) uint32 {
		if leaf := s.leaf[site]; s.CountsBytes() && leaf != 0 {
			return leaf
		}
		return p.sites[site].Node
	}
	used := make([]bool, len(p.nodes.parent))
	weight := make([]uint64, len(p.nodes.parent))
	for _, site := range sites {
		n := attach(site)
		weight[n] = satAdd(weight[n], s.weight[site])
		for ; n != 0 && !used[n]; n = order.parent(p, n) {
			used[n] = true
		}
	}
	for n := len(weight) - 1; n > 0; n-- {
		if up := order.parent(p, uint32(n)); up != 0 {
			weight[up] = satAdd(weight[up], weight[n])
		}
	}
	at := make([]int32, len(p.nodes.parent))
	forced := make([]bool, len(p.nodes.parent))
	folded := make([]bool, len(p.nodes.parent))
	visible := make([]int8, len(p.places))
	at[0] = root
	for n := uint32(1); int(n) < len(at); n++ {
		if !used[n] {
			continue
		}
		up := order.parent(p, n)
		at[n], forced[n], folded[n] = at[up], forced[up], folded[up]
		switch p.nodes.kind[n] {
		case eventlog.FrameUpdate:
			forced[n] = true
		case eventlog.FrameFolded:
			folded[n] = true
		}
		if !b.shows(n, visible) {
			continue
		}
		frame := b.frameOf(n)
		if frame == frameSkippedWords {
			at[n] = b.child(at[up], frame)
			continue
		}
		if b.opts.AllFrames || at[up] == 0 || b.nodes[at[up]].frame != frame {
			at[n] = b.child(at[up], frame)
			if forced[n] && at[n] != at[up] {
				t := &b.nodes[at[n]]
				t.Forced = satAdd(t.Forced, weight[n])
			}
		}
		if folded[n] && at[n] != at[up] {
			t := &b.nodes[at[n]]
			t.Folded = satAdd(t.Folded, weight[n])
		}
		forced[n], folded[n] = false, false
	}
	for _, site := range sites {
		st := p.sites[site]
		if w, ok := p.words[uint32(site)]; ok {
			b.skipped(at, st.Node, w)
		}
		t := at[attach(site)]
		switch {
		case st.Kernel && !p.onPath(st.Node, eventlog.FrameKernel):
			t = b.child(t, frameKernel)
		case st.Node == 0:
			t = b.child(t, frameUnresolved)
		}
		b.nodes[t].Self = satAdd(b.nodes[t].Self, s.weight[site])
		b.nodes[t].Samples += s.count[site]
	}
}

// shows reports whether a frame of the log is one of the tree.
func (b *treeBuilder) shows(n uint32, visible []int8) bool {
	p := b.p
	k, pl := p.nodes.kind[n], p.nodes.place[n]
	switch {
	case k == eventlog.FrameContext:
		return false
	case k == eventlog.FrameSkipped:
		return true
	case k == eventlog.FrameFolded:
		return b.opts.AllFrames
	case !b.s.visible(pl, visible):
		return false
	case b.opts.AllFrames:
		return true
	case structural(k):
		return false
	}
	// The machine's return frames (stg_ap_v_info and the like) are the glue
	// between callers; as the leaf it is where the time goes.
	return k == eventlog.FramePC || p.locs[pl].category != eventlog.CategorySTG
}

func (b *treeBuilder) frameOf(n uint32) uint32 {
	switch b.p.nodes.kind[n] {
	case eventlog.FrameSkipped:
		return frameSkippedWords
	case eventlog.FrameFolded:
		return frameRepeats
	}
	return b.frames.of[b.p.nodes.place[n]]
}

// skipped tells the frame that stands for what a stack is missing how much
// that is.
func (b *treeBuilder) skipped(at []int32, node uint32, words [2]uint64) {
	for n := node; n != 0; n = b.p.nodes.parent[n] {
		if b.p.nodes.kind[n] == eventlog.FrameSkipped {
			b.nodes[at[n]].missing(words)
			return
		}
	}
}

func (n *TreeNode) missing(words [2]uint64) {
	if n.frame != frameSkippedWords {
		return
	}
	if n.words[1] == 0 || words[0] < n.words[0] {
		n.words[0] = words[0]
	}
	n.words[1] = max(n.words[1], words[1])
}

// inverted builds the tree that has the leaves at the top from one that has
// the roots there.
func (b *treeBuilder) inverted() *treeBuilder {
	inv := &treeBuilder{s: b.s, p: b.p, opts: b.opts, limit: b.limit, frames: b.frames, index: make(map[treeKey]int32)}
	inv.nodes = []TreeNode{{Parent: -1}}
	for i := range b.nodes {
		n := &b.nodes[i]
		if n.Samples == 0 {
			continue
		}
		at := int32(0)
		for up := int32(i); up > 0; up = b.nodes[up].Parent {
			at = inv.child(at, b.nodes[up].frame)
			t := &inv.nodes[at]
			if t.depth == 1 {
				t.Self = satAdd(t.Self, n.Self)
			}
			if w := b.nodes[up].words; w[1] != 0 {
				t.missing(w)
			}
			t.Total = satAdd(t.Total, n.Self)
			t.Samples += n.Samples
			if t.descendLimit {
				break
			}
		}
		inv.nodes[0].Total = satAdd(inv.nodes[0].Total, n.Self)
		inv.nodes[0].Samples += n.Samples
		if i == 0 {
			inv.nodes[0].Self = satAdd(inv.nodes[0].Self, n.Self)
		}
	}
	return inv
}

func (b *treeBuilder) finish() *Tree {
	t := &Tree{Nodes: b.nodes, Total: b.s.Total}
	for i := len(t.Nodes) - 1; i >= 0; i-- {
		n := &t.Nodes[i]
		n.Frame = &b.frames.frames[n.frame]
		n.Name = n.Frame.Name
		if n.frame == frameSkippedWords {
			n.Name = skippedName(n.words)
		}
		if !b.opts.Invert {
			n.Total = satAdd(n.Total, n.Self)
		}
		if i == 0 {
			break
		}
		up := &t.Nodes[n.Parent]
		if !b.opts.Invert {
			up.Total = satAdd(up.Total, n.Total)
			up.Samples += n.Samples
		}
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

func skippedName(words [2]uint64) string {
	switch {
	case words[1] == 0:
		return "… words skipped"
	case words[0] == words[1]:
		return fmt.Sprintf("… %d words skipped", words[0])
	}
	return fmt.Sprintf("… %d–%d words skipped", words[0], words[1])
}

// Folded calls yield for each stack that bears weight, root first, joined by
// semicolons as flame graph tools read it, in the order of their names.
func (t *Tree) Folded(yield func(stack string, weight uint64)) {
	type line struct {
		stack  string
		weight uint64
	}
	var lines []line
	var names []string
	for i := range t.Nodes {
		if t.Nodes[i].Self == 0 {
			continue
		}
		names = names[:0]
		for n := int32(i); n > 0; n = t.Nodes[n].Parent {
			names = append(names, foldedName(t.Nodes[n].Name))
		}
		if i == 0 {
			names = append(names, "(hidden)")
		}
		slices.Reverse(names)
		lines = append(lines, line{strings.Join(names, ";"), t.Nodes[i].Self})
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.stack, b.stack) })
	for _, l := range lines {
		yield(l.stack, l.weight)
	}
}

// foldedName keeps a name from being taken for two frames or a line's end.
func foldedName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ':'
		case r < ' ' || r == 0x7f:
			return '_'
		}
		return r
	}, s)
}

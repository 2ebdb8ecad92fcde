package flame

import (
	"fmt"
	"image"
	"slices"
	"strings"

	"ccagent/internal/format"
	"ccagent/ui/keymap"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// flamePane draws call trees as blocks as wide as their weight: what calls the
// function in the middle above it, what it calls below. The node under the
// cursor is the tree pane's.
type flamePane struct {
	c      *screen.Context
	zoom   uint64 // path of the node that fills the width; 0 is the root
	blocks []flameBlock
	first  int // rows scrolled away below the middle
	cut    int // blocks on the last row whose callees, or callers, are not drawn
}

// flameBlock is a node as drawn.
type flameBlock struct {
	tree *Tree
	node int32
	r    widget.Rect
}

// drawTree draws a tree below the zoomed node, with its callers above it in
// rows of the whole width. at is the node under the cursor.
func (f *flamePane) drawTree(p *widget.Painter, in widget.Rect, t *treePane, at int32, focus bool) {
	f.blocks, f.cut = f.blocks[:0], 0
	root := f.root(t)
	var above []int32
	for n := t.tree.Nodes[root].Parent; n >= 0; n = t.tree.Nodes[n].Parent {
		above = append(above, int32(n))
	}
	// Of many callers the nearest.
	show := min(len(above), max(0, in.Dy()/3))
	y := in.Min.Y
	for i := show - 1; i >= 0; i-- {
		f.block(p, t, above[i], widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, above[i] == at, focus)
		y++
	}
	// The cursor stays in sight, however deep.
	deep := f.depth(t, root, at)
	rows := in.Max.Y - y
	f.first = max(0, min(f.first, deep))
	if deep >= f.first+rows {
		f.first = deep - rows + 1
	}
	f.spread(p, t, root, widget.Rect{Min: image.Pt(in.Min.X, y), Max: in.Max}, in.Min.X, in.Max.X, -f.first, 1, at, focus)
}

// drawSandwich draws callers upwards from the middle, and callees downwards.
func (f *flamePane) drawSandwich(p *widget.Painter, in widget.Rect, callers, callees *treePane, focusUp, focus bool) {
	f.blocks, f.cut = f.blocks[:0], 0
	up := min(in.Dy()/2, maxDepth(callers.tree))
	middle := in.Min.Y + up
	if free := in.Max.Y - middle - 1 - maxDepth(callees.tree); free > 0 {
		middle = min(in.Max.Y-1, min(in.Min.Y+maxDepth(callers.tree), middle+free))
	}
	atUp, atDown := int32(-1), callees.node()
	if focusUp {
		atUp, atDown = callers.node(), -1
	}
	f.spread(p, callers, 0, widget.Rect{Min: in.Min, Max: image.Pt(in.Max.X, middle+1)}, in.Min.X, in.Max.X, 0, -1, atUp, focus)
	f.spread(p, callees, 0, widget.Rect{Min: image.Pt(in.Min.X, middle), Max: in.Max}, in.Min.X, in.Max.X, 0, 1, atDown, focus)
}

// maxDepth is how many rows a tree takes below its root.
func maxDepth(t *Tree) int {
	depth := make([]int, len(t.Nodes))
	most := 0
	for i := 1; i < len(t.Nodes); i++ {
		depth[i] = depth[t.Nodes[i].Parent] + 1
		most = max(most, depth[i])
	}
	return most
}

// root is the zoomed node, or the tree's root if that is gone.
func (f *flamePane) root(t *treePane) int32 {
	if f.zoom == 0 {
		return 0
	}
	for i, path := range t.paths {
		if path == f.zoom {
			return int32(i)
		}
	}
	return 0
}

// depth is how many rows below root a node is; 0 if it is not below.
func (f *flamePane) depth(t *treePane, root, n int32) int {
	d := 0
	for ; n >= 0 && n != root; n = int32(t.tree.Nodes[n].Parent) {
		d++
	}
	if n < 0 {
		return 0
	}
	return d
}

// spread draws a node over the columns x1 to x2 in row of r, counted from its
// top or, with by −1, from its bottom; and its children in the rows after that.
// It visits only nodes that are on screen.
func (f *flamePane) spread(p *widget.Painter, t *treePane, n int32, r widget.Rect, x1, x2, row, by int, at int32, focus bool) {
	if row >= r.Dy() || x2 <= x1 {
		return
	}
	if row >= 0 {
		y := r.Min.Y + row
		if by < 0 {
			y = r.Max.Y - 1 - row
		}
		f.block(p, t, n, widget.Rect{Min: image.Pt(x1, y), Max: image.Pt(x2, y+1)}, n == at, focus)
	}
	node := &t.tree.Nodes[n]
	if row == r.Dy()-1 && slices.ContainsFunc(node.Kids, func(k int32) bool { return t.tree.Nodes[k].Total*t.c.Base >= t.c.Minimum }) {
		f.cut++
		y := r.Max.Y - 1
		if by < 0 {
			y = r.Min.Y
		}
		if x2-x1 >= 3 {
			p.Mark(x2-1, y, p.Glyphs.More)
		}
		return
	}
	if node.Total <= 0 {
		return
	}
	width, sum := float64(x2-x1), 0.0
	from := x1
	for _, k := range node.Kids {
		kid := &t.tree.Nodes[k]
		if kid.Total*t.c.Base < t.c.Minimum {
			continue
		}
		sum += kid.Total
		to := min(x2, x1+int(sum/node.Total*width+0.5))
		if to > from {
			f.spread(p, t, k, r, from, to, row+1, by, at, focus)
		}
		from = max(from, to)
	}
}

// leastLabel is the room that a name which does not fit needs: with less it says nothing.
const leastLabel = 8

// beside draws at the right of the details, which are the row of in below graph, what a search found,
// or that blocks go on below the last row.
func (f *flamePane) beside(p *widget.Painter, in, graph widget.Rect, t *treePane) {
	if graph == in {
		return
	}
	text := ""
	if s := t.found(); s.nodes > 0 {
		text = fmt.Sprintf("  /%s/ %d of %s, %s of the samples ", f.c.Search.Text, s.at, format.Count(uint64(s.nodes)), format.Share(s.share*f.c.Base))
	} else if f.cut > 0 {
		text = fmt.Sprintf("  %s below: j follows, z gives room ", format.Plural(uint64(f.cut), "block"))
	}
	if w := p.Width(text); w > 0 && w <= in.Dx()/2 {
		p.Right(in.Min.X, in.Max.X, graph.Max.Y, text, p.Theme.Key)
	}
}

// where says where a node's function is written, or what it is part of.
func where(n *TreeNode) string {
	switch {
	case n.Line > 0 && n.Path != "":
		return fmt.Sprintf("  %s:%d", n.Path, n.Line)
	case n.Module != "" && n.Module != strings.Trim(n.Name, "()"):
		return "  " + n.Module
	}
	return ""
}

// block draws one node.
func (f *flamePane) block(p *widget.Painter, t *treePane, n int32, r widget.Rect, selected, focus bool) {
	node := &t.tree.Nodes[n]
	f.blocks = append(f.blocks, flameBlock{t.tree, n, r})
	th := p.Theme
	st, edge := th.FlameIdle, th.FlameEdge
	if l := theme.HeatLevel(node.Self * f.c.Base); l > 0 {
		st = th.Flame[l-1]
		edge.Bg = st.Bg
	}
	if re := f.c.Search.RE; re != nil {
		st, edge = th.FlameIdle, th.FlameEdge // heat would hide what was searched for
		if re.MatchString(node.Name) {
			st, edge = th.Match, th.Match
		}
	}
	if selected {
		st = th.Selected
		if !focus {
			st = th.SelectedIdle
		}
		edge = st
	}
	p.Fill(r, st)
	x, y := r.Min.X, r.Min.Y
	mark := p.Glyphs.V
	if selected {
		mark = p.Glyphs.Pointer
	}
	p.Cell(x, y, mark, edge)
	if r.Dx() < 4 {
		return
	}
	text, room := t.name(node), r.Dx()-1
	share := " " + format.Share(node.Total*f.c.Base)
	if rest, ok := strings.CutPrefix(text, node.Module); ok && p.Width(text) > room && node.Module != "" && len(rest) > 1 && (rest[0] == '.' || rest[0] == ' ') {
		text = rest[1:] // leave out the module before the name
	}
	if p.Width(text)+len(share) < room {
		text += share
	}
	if p.Width(text) <= room || room >= leastLabel {
		x = p.Name(x+1, y, r.Max.X, text, st)
	}
	if th.Plain { // without colours, fill the block to show its width
		for ; x < r.Max.X; x++ {
			p.Cell(x, y, p.Glyphs.Light, th.Dim)
		}
	}
}

// details draws what is known of the block under a tree's cursor in the last row of r, if that has
// room, and returns the rest of it.
func (s *Screen) details(p *widget.Painter, r widget.Rect, t *treePane) widget.Rect {
	n := t.node()
	if r.Dy() < 5 || n < 0 {
		return r
	}
	r.Max.Y--
	node, base := &t.tree.Nodes[n], s.c.Base
	share := format.Share(node.Total*base) + " " + s.c.Weight(node.Total)
	if node.PlusMinus > 0 {
		share += " " + format.PlusMinus(node.Total, node.PlusMinus*base)
	}
	second := "self "
	if t == s.callers {
		second = "stack starts here "
	}
	x := p.Text(r.Min.X+1, r.Max.Y, r.Max.X, share+"   "+second+format.Share(node.Self*base)+"   ", p.Theme.Dim)
	x = p.Name(x, r.Max.Y, r.Max.X, t.name(node), p.Theme.Text)
	if node.Path != "" && node.Line > 0 {
		if where := fmt.Sprintf("  %s:%d", node.Path, node.Line); x+p.Width(where) <= r.Max.X {
			p.Text(x, r.Max.Y, r.Max.X, where, p.Theme.Dim)
		}
	}
	return r
}

// at is the block at a place on the screen.
func (f *flamePane) at(m screen.Mouse) (flameBlock, bool) {
	for _, b := range f.blocks {
		if screen.Inside(b.r, m) {
			return b, true
		}
	}
	return flameBlock{}, false
}

// neighbour is the node that an arrow key leads to: along the blocks of its row, to
// its caller, or to its largest callee. down is whether callees are below.
func neighbour(t *Tree, n int32, a keymap.Action, down bool) int32 {
	node := &t.Nodes[n]
	toParent, toKid := keymap.Up, keymap.Down
	if !down {
		toParent, toKid = toKid, toParent
	}
	switch a {
	case toParent:
		if node.Parent >= 0 {
			return int32(node.Parent)
		}
	case toKid:
		if len(node.Kids) > 0 {
			return node.Kids[0]
		}
	case keymap.Left, keymap.Right:
		return cousin(t, n, a == keymap.Right)
	}
	return n
}

// cousin is the next node of the same depth to one side.
func cousin(t *Tree, n int32, right bool) int32 {
	up := 0
	for at := n; t.Nodes[at].Parent >= 0; at = int32(t.Nodes[at].Parent) {
		kids := t.Nodes[t.Nodes[at].Parent].Kids
		i := 0
		for kids[i] != at {
			i++
		}
		up++
		for step := 1; ; step++ {
			j := i + step
			if !right {
				j = i - step
			}
			if j < 0 || j >= len(kids) {
				break
			}
			if found := descend(t, kids[j], up-1, right); found >= 0 {
				return found
			}
		}
	}
	return n
}

// descend finds the first, or last, node some levels below another; −1 if there
// is none.
func descend(t *Tree, n int32, levels int, first bool) int32 {
	if levels == 0 {
		return n
	}
	kids := t.Nodes[n].Kids
	for i := range kids {
		k := kids[i]
		if !first {
			k = kids[len(kids)-1-i]
		}
		if found := descend(t, k, levels-1, first); found >= 0 {
			return found
		}
	}
	return -1
}

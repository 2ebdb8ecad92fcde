package flame

import (
	"fmt"
	"image"
	"strings"

	"ccagent/internal/format"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
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
	f.spread(p, t, root, widget.Rect{Min: image.Pt(in.Min.X, y), Max: in.Max}, f.first, 1, at, focus)
}

// drawSandwich draws callers upwards from the middle, and callees downwards.
func (f *flamePane) drawSandwich(p *widget.Painter, in widget.Rect, callers, callees *treePane, focusUp, focus bool) {
	f.blocks, f.cut = f.blocks[:0], 0
	up := min(in.Dy()/2, pane.Depth(shapeOf(callers), 0))
	middle := in.Min.Y + up
	if free := in.Max.Y - middle - 1 - pane.Depth(shapeOf(callees), 0); free > 0 {
		middle = min(in.Max.Y-1, min(in.Min.Y+pane.Depth(shapeOf(callers), 0), middle+free))
	}
	atUp, atDown := int32(-1), callees.node()
	if focusUp {
		atUp, atDown = callers.node(), -1
	}
	f.spread(p, callers, 0, widget.Rect{Min: in.Min, Max: image.Pt(in.Max.X, middle+1)}, 0, -1, atUp, focus)
	f.spread(p, callees, 0, widget.Rect{Min: image.Pt(in.Min.X, middle), Max: in.Max}, 0, 1, atDown, focus)
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

// shape is a call tree as blocks: without the nodes below the least share that is shown.
type shape struct {
	*Tree
	base, minimum float64
}

// Parent implements pane.Shape.
func (s shape) Parent(n int32) int32 { return int32(s.Nodes[n].Parent) }

// Kids implements pane.Shape.
func (s shape) Kids(n int32) []int32 { return s.Nodes[n].Kids }

// Weight implements pane.Shape.
func (s shape) Weight(n int32) float64 {
	if t := s.Nodes[n].Total; n == 0 || t*s.base >= s.minimum {
		return t
	}
	return 0
}

func shapeOf(t *treePane) shape { return shape{t.tree, t.c.Base, t.c.Minimum} }

// spread draws a node over the width of r, first rows of it scrolled away, and what is below it: downwards or,
// with by −1, upwards.
func (f *flamePane) spread(p *widget.Painter, t *treePane, n int32, r widget.Rect, first, by int, at int32, focus bool) {
	pane.Spread(shapeOf(t), n, r, r.Min.X, r.Max.X, -first, by, func(b pane.Block) {
		f.block(p, t, b.Node, b.R, b.Node == at, focus)
		if b.More {
			f.cut++
			if b.R.Dx() >= 3 {
				p.Mark(b.R.Max.X-1, b.R.Min.Y, p.Glyphs.More)
			}
		}
	})
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
	self := format.Share(node.Self * base)
	if node.SelfPlusMinus > 0 && node.Self > 0 {
		self += " " + format.PlusMinus(node.Self, node.SelfPlusMinus*base)
	}
	x := p.Text(r.Min.X+1, r.Max.Y, r.Max.X, share+"   "+second+self+"   ", p.Theme.Dim)
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

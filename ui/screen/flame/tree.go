package flame

import (
	"fmt"
	"hash/maphash"
	"image"
	"regexp"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// treePane is a call tree as a list: of all stacks, or of a function's callers
// or callees.
type treePane struct {
	c      *screen.Context
	list   widget.List
	tree   *Tree
	paths  []uint64 // by node: names it and its ancestors, the same in every selection
	open   map[uint64]bool
	rows   []int32 // visible nodes
	depths []int
	cursor uint64 // path of the node under the cursor
	inner  widget.Rect
	most   float64 // the longest bar, as a share
	// counted is what the latest search found in a tree: nodes with their numbers.
	counted struct {
		tree  *Tree
		re    *regexp.Regexp
		order map[int32]int
		share float64
	}
}

func newTreePane(c *screen.Context) *treePane { return &treePane{c: c, open: make(map[uint64]bool)} }

var pathSeed = maphash.MakeSeed()

// take replaces the tree: open branches stay open, and the cursor stays on its function.
func (s *treePane) take(t *Tree) {
	if t == s.tree || t == nil {
		return
	}
	first := s.tree == nil || s.tree.Invert != t.Invert
	s.tree = t
	s.paths = make([]uint64, len(t.Nodes))
	var h maphash.Hash
	h.SetSeed(pathSeed)
	for i := range t.Nodes {
		n := &t.Nodes[i]
		h.Reset()
		if n.Parent >= 0 {
			maphash.WriteComparable(&h, s.paths[n.Parent])
		}
		h.WriteString(n.Module)
		h.WriteByte(0)
		h.WriteString(n.Name)
		s.paths[i] = h.Sum64()
	}
	if first || !s.open[s.paths[0]] {
		clear(s.open)
		s.openHot()
	}
	s.relist()
	s.find(s.cursor)
}

// find puts the cursor on a path's row, if that is listed.
func (s *treePane) find(path uint64) bool {
	for i, n := range s.rows {
		if s.paths[n] == path {
			s.list.Set(i)
			return true
		}
	}
	s.note()
	return false
}

// openHot opens the way down as long as one child has most of its parent's weight.
func (s *treePane) openHot() {
	n := int32(0)
	for range 200 {
		s.open[s.paths[n]] = true
		kids := s.tree.Nodes[n].Kids
		if len(kids) == 0 || s.tree.Nodes[kids[0]].Total < 0.5*s.tree.Nodes[n].Total {
			return
		}
		n = kids[0]
	}
}

// relist makes the list of visible nodes.
func (s *treePane) relist() {
	s.rows, s.depths = s.rows[:0], s.depths[:0]
	if s.tree == nil || len(s.tree.Nodes) == 0 {
		s.list.N = 0
		return
	}
	type at struct {
		node  int32
		depth int
	}
	stack := []at{{0, 0}}
	for len(stack) > 0 {
		t := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		s.rows, s.depths = append(s.rows, t.node), append(s.depths, t.depth)
		if !s.open[s.paths[t.node]] {
			continue
		}
		kids := s.tree.Nodes[t.node].Kids
		for i := len(kids) - 1; i >= 0; i-- {
			if s.tree.Nodes[kids[i]].Total*s.c.Base >= s.c.Minimum {
				stack = append(stack, at{kids[i], t.depth + 1})
			}
		}
	}
	s.list.N = len(s.rows)
	s.list.Set(s.list.Cursor)
}

// note remembers the node under the cursor.
func (s *treePane) note() {
	if n := s.node(); n >= 0 {
		s.cursor = s.paths[n]
		if t := &s.tree.Nodes[n]; t.File != 0 {
			s.c.File, s.c.Line = t.File, t.Line // for the source screen
		}
	}
}

// node is the one under the cursor, or −1.
func (s *treePane) node() int32 {
	if s.tree == nil || s.list.Cursor >= len(s.rows) {
		return -1
	}
	return s.rows[s.list.Cursor]
}

// reveal opens the way to a node and puts the cursor on it.
func (s *treePane) reveal(n int32) {
	for up := s.tree.Nodes[n].Parent; up >= 0; up = s.tree.Nodes[up].Parent {
		s.open[s.paths[up]] = true
	}
	s.relist()
	for i, r := range s.rows {
		if r == n {
			s.list.Set(i)
		}
	}
	s.note()
}

func (s *treePane) do(a keymap.Action) {
	if screen.MoveList(&s.list, a) {
		s.note()
		return
	}
	n := s.node()
	if n < 0 {
		return
	}
	t := &s.tree.Nodes[n]
	path := s.paths[n]
	switch a {
	case keymap.Open:
		s.toggle(!s.open[path])
	case keymap.Right:
		if !s.open[path] {
			s.toggle(true)
		} else if len(t.Kids) > 0 {
			s.list.Move(1)
		}
	case keymap.Left:
		if s.open[path] && len(t.Kids) > 0 {
			s.toggle(false)
		} else if t.Parent >= 0 {
			for i := s.list.Cursor; i >= 0; i-- {
				if int(s.rows[i]) == t.Parent {
					s.list.Set(i)
					break
				}
			}
		}
	}
	s.note()
}

func (s *treePane) toggle(open bool) {
	n := s.node()
	if open {
		s.open[s.paths[n]] = true
		// Down to where the tree branches, so that a chain opens at once.
		for kids := s.tree.Nodes[n].Kids; len(kids) == 1; kids = s.tree.Nodes[n].Kids {
			n = kids[0]
			s.open[s.paths[n]] = true
		}
	} else {
		delete(s.open, s.paths[n])
	}
	s.relist()
}

func (s *treePane) mouse(m screen.Mouse) {
	if screen.MouseList(&s.list, s.inner, m) && m.Double {
		s.toggle(!s.open[s.paths[s.node()]])
	}
	s.note()
}

// search looks through the whole tree and opens the way to what it finds.
func (s *treePane) search(p *screen.Pattern, by int) bool {
	if p.RE == nil || s.tree == nil || len(s.rows) == 0 {
		return false
	}
	order := s.preorder()
	at := 0
	for i, n := range order {
		if n == s.node() {
			at = i
		}
	}
	stepBy := by
	if by == 0 {
		stepBy = 1
	}
	at += by
	for range order {
		i := ((at % len(order)) + len(order)) % len(order)
		if n := order[i]; p.RE.MatchString(s.tree.Nodes[n].Name) {
			s.reveal(n)
			return true
		}
		at += stepBy
	}
	return false
}

func (s *treePane) preorder() []int32 {
	out := make([]int32, 0, len(s.tree.Nodes))
	stack := []int32{0}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		out = append(out, n)
		kids := s.tree.Nodes[n].Kids
		for i := len(kids) - 1; i >= 0; i-- {
			stack = append(stack, kids[i])
		}
	}
	return out
}

// found is what a search found in a tree.
type found struct {
	nodes, at int     // how many nodes match, and which of them, from 1, is under the cursor; 0 if none is
	share     float64 // of the samples with a match on the stack
}

// found counts the nodes that match the search; nothing without one.
func (s *treePane) found() found {
	re := s.c.Search.RE
	if re == nil || s.tree == nil {
		return found{}
	}
	if s.counted.tree != s.tree || s.counted.re != re {
		s.counted.tree, s.counted.re, s.counted.share = s.tree, re, 0
		s.counted.order = make(map[int32]int)
		below := make([]bool, len(s.tree.Nodes)) // a match is among its callers
		for _, n := range s.preorder() {
			node := &s.tree.Nodes[n]
			if node.Parent >= 0 {
				below[n] = below[node.Parent]
			}
			if !re.MatchString(node.Name) {
				continue
			}
			s.counted.order[n] = len(s.counted.order) + 1
			if !below[n] {
				s.counted.share += node.Total
			}
			below[n] = true
		}
	}
	return found{len(s.counted.order), s.counted.order[s.node()], s.counted.share}
}

// subject is the node under the cursor; of the whole tree's root there is none.
func (s *treePane) subject() screen.Subject {
	n := s.node()
	if n < 0 {
		return screen.Subject{Key: model.NoKey}
	}
	t := &s.tree.Nodes[n]
	out := screen.Subject{Key: model.NoKey, Path: t.Path, Line: t.Line, Symbol: t.Symbol}
	out.Row = fmt.Sprintf("%s\t%s\t%s", format.Share(t.Total*s.c.Base), format.Share(t.Self*s.c.Base), t.Name)
	if t.Category && t.Parent < 0 {
		return out
	}
	out.Name, out.Module, out.Package = t.Name, t.Module, t.Package
	switch {
	case t.Collapsed && t.Module == "":
		out.Level = profile.LevelPackage
	case t.Collapsed:
		out.Level = profile.LevelModule
	default:
		out.Function = !t.Category
	}
	return out
}

// draw draws the pane's box and the list. self names the second column.
func (s *treePane) draw(p *widget.Painter, r widget.Rect, title, note, self string, focus bool) {
	s.relist()
	p.Box(r, title, note, focus)
	in := r.Inset(1)
	if in.Empty() {
		return
	}
	if s.tree == nil {
		screen.DrawInstead(p, in, screen.Computing(p))
		return
	}
	bar := 0
	if in.Dx() >= 70 {
		bar = min(16, in.Dx()/8)
	}
	if in.Dy() >= 6 {
		x := p.Text(in.Min.X+1, in.Min.Y, in.Max.X, "  total "+sureHead(in.Dx()), p.Theme.Dim)
		if weights(in.Dx()) {
			p.Right(x, x+screen.WeightWidth-1, in.Min.Y, s.c.WeightHead(), p.Theme.Dim)
			x += screen.WeightWidth
		}
		x = p.Text(x, in.Min.Y, in.Max.X, fmt.Sprintf(" %6s ", self), p.Theme.Dim)
		if selfSures(in.Dx()) {
			x = p.Text(x, in.Min.Y, in.Max.X, sureHead(in.Dx()), p.Theme.Dim)
		}
		if bar > 0 {
			x = screen.BarHead(p, x, in.Min.Y, bar, "self", "below")
		}
		p.Text(x, in.Min.Y, in.Max.X, "function", p.Theme.Dim)
		in.Min.Y++
	}
	s.inner = in
	s.most = s.largest()
	s.list.Draw(in, func(i, y int) { s.drawRow(p, in, bar, i, y, focus) })
}

// sureWidth is the width of a total's interval: "±12.3".
const sureWidth = 5

// largest is the largest total of the listed nodes but for the root, whose bar would leave the
// others little of their column.
func (s *treePane) largest() float64 {
	most := 0.0
	for _, n := range s.rows {
		if n != 0 {
			most = max(most, s.tree.Nodes[n].Total)
		}
	}
	if most == 0 {
		return 1
	}
	return most
}

// weights reports whether there is room for weights beside names.
func weights(w int) bool { return w >= 90 }

// sures reports whether there is room for intervals beside names.
func sures(w int) bool { return w >= 56 }

// selfSures reports whether there is room for intervals of the second figure, too.
func selfSures(w int) bool { return w >= 100 }

func sureHead(w int) string {
	if sures(w) {
		return " ±95%" + " "
	}
	return ""
}

func (s *treePane) drawRow(p *widget.Painter, in widget.Rect, bar, i, y int, focus bool) {
	n := &s.tree.Nodes[s.rows[i]]
	t := p.Theme
	selected := i == s.list.Cursor
	x := in.Min.X
	if selected {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	x++
	total := n.Total * s.c.Base
	st := t.Text
	if l := theme.HeatLevel(total); l > 0 {
		st = t.Heat[l-1]
	}
	p.Right(x, x+7, y, format.Share(total), st)
	x += 8
	if sures(in.Dx()) {
		if n.Tied {
			p.Cell(x, y, p.Glyphs.Tied, t.Dim)
		}
		p.Right(x+1, x+sureWidth, y, format.PlusMinus(n.Total, n.PlusMinus*s.c.Base), t.Dim)
		x += sureWidth + 1
	}
	if weights(in.Dx()) {
		p.Right(x, x+screen.WeightWidth-1, y, s.c.Weight(n.Total), t.Text)
		x += screen.WeightWidth
	}
	p.Right(x, x+7, y, format.Share(n.Self*s.c.Base), t.Text)
	x += 8
	if selfSures(in.Dx()) {
		p.Right(x+1, x+sureWidth, y, format.PlusMinus(n.Self, n.SelfPlusMinus*s.c.Base), t.Dim)
		x += sureWidth + 1
	}
	if bar > 0 {
		p.Bar(x, y, bar, n.Self/s.most, n.Total/s.most)
		x += bar + 1
	}
	// Deep stacks are indented up to a third of the width, then counted.
	room := max(2, (in.Max.X-x)/3)
	depth := s.depths[i]
	if depth > room {
		label := fmt.Sprintf("%d%s", depth, p.Glyphs.More)
		p.Right(x, x+room, y, label, t.Dim)
		x += room
	} else {
		x += depth
	}
	mark := "  "
	if len(n.Kids) > 0 {
		mark = p.Glyphs.Closed + " "
		if s.open[s.paths[s.rows[i]]] {
			mark = p.Glyphs.Open + " "
		}
	}
	x = p.Text(x, y, in.Max.X, mark, t.Dim)
	st = t.Text
	if n.Category {
		st = t.Dim
	}
	if s.c.Search.RE != nil && s.c.Search.RE.MatchString(n.Name) {
		st = t.Match
	}
	x = p.Name(x, y, in.Max.X, s.name(n), st)
	more := where(n)
	if n.Forced*2 > n.Total {
		more = "  forced here" + more
	}
	if x+p.Width(more) < in.Max.X {
		p.Text(x, y, in.Max.X, more, t.Dim)
	}
	if selected {
		st := t.Selected
		if !focus {
			st = t.SelectedIdle
		}
		p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, st)
	}
}

// name is a node's, or the linker's for it.
func (s *treePane) name(n *TreeNode) string {
	if s.c.Raw && n.Symbol != "" {
		return n.Symbol
	}
	return n.Name
}

package view

import (
	"fmt"
	"hash/maphash"
	"image"

	"ccagent/profile"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// StackScreen is screen 3: the call tree, from the root down or, inverted, from
// the leaves up.
type StackScreen struct {
	c      *Context
	list   widget.List
	tree   *model.Tree
	paths  []uint64 // by node: names it and its ancestors, the same in every selection
	open   map[uint64]bool
	rows   []int32 // visible nodes
	depths []int
	cursor uint64 // path of the node under the cursor
	inner  widget.Rect
}

// NewStackScreen gives screen 3 on a context.
func NewStackScreen(c *Context) *StackScreen {
	return &StackScreen{c: c, open: make(map[uint64]bool)}
}

var pathSeed = maphash.MakeSeed()

// refresh takes over a new tree: what was open stays open, the cursor stays on
// its function.
func (s *StackScreen) refresh() {
	t := s.c.Data.Tree
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
	if first {
		clear(s.open)
		s.openHot()
	}
	s.relist()
	for i, n := range s.rows {
		if s.paths[n] == s.cursor {
			s.list.Set(i)
			return
		}
	}
	s.note()
}

// openHot opens the way down as long as one child has most of its parent's weight.
func (s *StackScreen) openHot() {
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
func (s *StackScreen) relist() {
	s.rows, s.depths = s.rows[:0], s.depths[:0]
	if len(s.tree.Nodes) == 0 {
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

func (s *StackScreen) note() {
	if n := s.node(); n >= 0 {
		s.cursor = s.paths[n]
		if t := &s.tree.Nodes[n]; t.File != 0 {
			s.c.File, s.c.Line = t.File, t.Line // so that screen 2 shows it
		}
	}
}

func (s *StackScreen) node() int32 {
	if s.tree == nil || s.list.Cursor >= len(s.rows) {
		return -1
	}
	return s.rows[s.list.Cursor]
}

// Why implements Screen.
func (s *StackScreen) Why(a keymap.Action) string {
	switch a {
	case keymap.NextPane, keymap.PrevPane, keymap.Zoom:
		return "this screen has one pane"
	case keymap.Sort:
		return "children are by total; i turns the tree"
	case keymap.Filter:
		return "a tree is searched with / and narrowed with f; & filters the hot list"
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight:
		return "the timeline is on the main screen; 1 goes there"
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		if n := s.node(); n <= 0 {
			return "select a function first"
		}
	}
	return ""
}

// Do implements Screen.
func (s *StackScreen) Do(a keymap.Action) string {
	s.refresh()
	if moveList(&s.list, a) {
		s.note()
		return ""
	}
	n := s.node()
	if n < 0 {
		return ""
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
	return ""
}

func (s *StackScreen) toggle(open bool) {
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

// Back implements Screen.
func (s *StackScreen) Back() bool { return false }

// Mouse implements Screen.
func (s *StackScreen) Mouse(m Mouse) string {
	switch m.Kind {
	case WheelUp, WheelDown:
		s.list.Scroll(wheel(m))
	case Press:
		if i := s.list.RowAt(s.inner, m.Y); i >= 0 {
			s.list.Set(i)
			if m.Double {
				s.toggle(!s.open[s.paths[s.node()]])
			}
		}
	}
	s.note()
	return ""
}

// Find implements Screen. It looks through the whole tree and opens the way to
// what it finds.
func (s *StackScreen) Find(p *Pattern, by int) bool {
	s.refresh()
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
			for up := s.tree.Nodes[n].Parent; up >= 0; up = s.tree.Nodes[up].Parent {
				s.open[s.paths[up]] = true
			}
			s.relist()
			for j, r := range s.rows {
				if r == n {
					s.list.Set(j)
				}
			}
			s.note()
			return true
		}
		at += stepBy
	}
	return false
}

func (s *StackScreen) preorder() []int32 {
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

// Subject implements Screen.
func (s *StackScreen) Subject() Subject {
	n := s.node()
	if n < 0 {
		return Subject{Key: model.NoKey}
	}
	t := &s.tree.Nodes[n]
	out := Subject{Key: model.NoKey, Path: t.Path, Line: t.Line, Symbol: t.Symbol}
	out.Row = fmt.Sprintf("%s\t%s\t%s", widget.Percent(t.Total*s.c.Base), widget.Percent(t.Self*s.c.Base), t.Name)
	if n > 0 {
		out.Name, out.Module, out.Package = t.Name, t.Module, t.Package
		switch {
		case t.Collapsed && t.Module == "":
			out.Level = profile.LevelPackage
		case t.Collapsed:
			out.Level = profile.LevelModule
		default:
			out.Function = !t.Category
		}
	}
	return out
}

// Needs implements Screen.
func (s *StackScreen) Needs(n *model.Need) { n.Tree, n.Invert = true, s.c.Invert }

// Draw implements Screen.
func (s *StackScreen) Draw(p *widget.Painter, f layout.Frame) {
	s.refresh()
	if s.tree != nil {
		s.relist()
	}
	title, note := "call tree  from the root down", "i inverts"
	if s.c.Invert {
		title, note = "call tree  from the leaves up: callers below", "i inverts"
	}
	p.Box(f.Body, title, note, true)
	in := f.Body.Inset(1)
	if in.Empty() {
		return
	}
	if s.tree == nil || s.tree != s.c.Data.Tree && s.c.Data.Tree == nil {
		p.Text(in.Min.X+1, in.Min.Y, in.Max.X, "computing…", p.Theme.Dim)
		return
	}
	bar := 0
	if in.Dx() >= 70 {
		bar = min(16, in.Dx()/8)
	}
	if in.Dy() >= 8 {
		x := p.Text(in.Min.X+1, in.Min.Y, in.Max.X, "  total    self ", p.Theme.Dim)
		if bar > 0 {
			p.Cell(x, in.Min.Y, p.Glyphs.Full, p.Theme.Only)
			p.Text(x+1, in.Min.Y, in.Max.X, "self", p.Theme.Dim)
			if bar >= 12 {
				p.Cell(x+6, in.Min.Y, p.Glyphs.Light, p.Theme.Shared)
				p.Text(x+7, in.Min.Y, in.Max.X, "below", p.Theme.Dim)
			}
			x += bar + 1
		}
		p.Text(x, in.Min.Y, in.Max.X, "function", p.Theme.Dim)
		in.Min.Y++
	}
	s.inner = in
	s.list.Draw(in, func(i, y int) { s.drawRow(p, in, bar, i, y) })
}

func (s *StackScreen) drawRow(p *widget.Painter, in widget.Rect, bar, i, y int) {
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
	p.Right(x, x+7, y, widget.Percent(total), st)
	p.Right(x+8, x+15, y, widget.Percent(n.Self*s.c.Base), t.Text)
	x += 16
	if bar > 0 {
		p.Bar(x, y, bar, n.Self*s.c.Base, total)
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
	name := n.Name
	if s.c.Raw && n.Symbol != "" {
		name = n.Symbol
	}
	x = p.Text(x, y, in.Max.X, name, st)
	var more string
	switch {
	case n.Line > 0 && n.Path != "":
		more = fmt.Sprintf("  %s:%d", n.Path, n.Line)
	case n.Module != "" && !n.Category:
		more = "  " + n.Module
	}
	if x+p.Width(more) < in.Max.X {
		p.Text(x, y, in.Max.X, more, t.Dim)
	}
	if selected {
		p.Tint(widget.Rect{Min: image.Pt(in.Min.X, y), Max: image.Pt(in.Max.X, y+1)}, t.Selected)
	}
}

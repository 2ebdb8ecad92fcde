// Package diffflame is the screen of the difference of two logs' stacks: a differential flame
// graph over the call paths that changed.
package diffflame

import (
	"errors"
	"hash/maphash"
	"math"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/stacks"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.DiffFlame, Tab: "DiffF", New: newScreen,
	Off: (*screen.Context).WhyNoDiff,
	Keys: keymap.Screen{
		Help: "differential flame graph: the stacks of two logs",
		Does: []keymap.Action{keymap.Mode, keymap.NonZero},
		Notes: []keymap.Note{
			{Action: keymap.Mode, Help: "of a differential flame graph: widths by B, by A or by both"},
			{Action: keymap.NonZero, Help: "of a differential flame graph: only paths that changed, or all"},
		},
	},
}

// widths decides whose shares the blocks' widths are.
type widths uint8

const (
	byB widths = iota
	byA
	byBoth // the mean, so that what one side alone has is seen
	allWidths
)

func (w widths) String() string { return [...]string{"B", "A", "both"}[w] }

// Screen is the call trees of two groups of logs on top of each other.
type Screen struct {
	c      *screen.Context
	by     widths
	all    bool // list what does not differ, too
	focus  int  // 0 the graph, 1 the list
	zoomed bool // the pane with the focus alone

	pair   *stacks.Pair
	paths  []uint64 // by node: names it and its ancestors, the same in every selection
	cursor uint64   // path of the node that is selected
	at     int32    // its node
	zoom   uint64   // path of the node that fills the width; 0 is the root
	blocks []pane.Block
	first  int // rows scrolled away

	list   widget.List
	rows   []int32 // nodes as listed
	depths []int
	seen   seen

	graph, table widget.Rect // as last drawn
}

// seen is what rows was made from.
type seen struct {
	pair    *stacks.Pair
	all     bool
	filter  screen.Pattern
	minimum float64
}

const (
	graphPane = iota
	listPane
)

func newScreen(c *screen.Context) screen.Screen { return &Screen{c: c} }

// latest is the latest answer; nil until there is one.
func (s *Screen) latest() *answer { return screen.Part[answer](s.c) }

var pathSeed = maphash.MakeSeed()

// refresh takes a new answer, and keeps the cursor on its path.
func (s *Screen) refresh() {
	a := s.latest()
	if a == nil {
		return
	}
	if a.pair == nil {
		s.pair, s.rows, s.list.N = nil, nil, 0
		s.seen = seen{}
		return
	}
	if s.pair != a.pair {
		s.pair = a.pair
		s.paths = make([]uint64, len(a.pair.Nodes))
		s.at = 0
		var h maphash.Hash
		h.SetSeed(pathSeed)
		for i := range a.pair.Nodes {
			n := &a.pair.Nodes[i]
			h.Reset()
			if n.Parent >= 0 {
				maphash.WriteComparable(&h, s.paths[n.Parent])
			}
			if n.Frame != nil {
				h.WriteString(n.Frame.Module)
			}
			h.WriteByte(0)
			h.WriteString(n.Name)
			s.paths[i] = h.Sum64()
			if s.paths[i] == s.cursor {
				s.at = int32(i)
			}
		}
	}
	if now := (seen{s.pair, s.all, s.c.Filter, s.c.Minimum}); now != s.seen {
		s.seen = now
		s.relist()
	}
}

// relist lists the paths that changed by more than noise, or all.
func (s *Screen) relist() {
	least := max(s.c.Minimum, leastSure)
	s.rows, s.depths = list(s.pair, func(n *stacks.PairNode) bool {
		return (s.all || n.Differs()) && max(n.Share[0], n.Share[1]) >= least && s.c.Filter.Match(n.Name)
	})
	s.list.N = len(s.rows)
	s.follow()
}

// list gives the root and the nodes that are wanted in the order of the tree, and how deep each is
// among them.
func list(pair *stacks.Pair, wanted func(*stacks.PairNode) bool) (nodes []int32, depths []int) {
	type at struct {
		node  int32
		depth int
	}
	for stack := []at{{0, 0}}; len(stack) > 0; {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		n := &pair.Nodes[x.node]
		if x.node == 0 || wanted(n) {
			nodes, depths = append(nodes, x.node), append(depths, x.depth)
			x.depth++
		}
		for i := len(n.Children) - 1; i >= 0; i-- {
			stack = append(stack, at{n.Children[i], x.depth})
		}
	}
	return nodes, depths
}

// follow puts the list's cursor on the node that is selected, or on the nearest above it.
func (s *Screen) follow() {
	for n := s.at; n >= 0; n = s.pair.Nodes[n].Parent {
		for i, r := range s.rows {
			if r == n {
				s.list.Set(i)
				return
			}
		}
	}
}

// choose selects a node.
func (s *Screen) choose(n int32) {
	s.at, s.cursor = n, s.paths[n]
	if f := s.pair.Nodes[n].Frame; f != nil && f.FileID != 0 {
		for i := range s.c.Profile.Files() { // the frame may be of another log
			if id := columns.FileID(i); s.c.Profile.File(id).Path == f.File {
				s.c.File, s.c.Line = id, int(f.Line)
				break
			}
		}
	}
}

// shape is the trees as blocks.
type shape struct {
	*stacks.Pair
	by      widths
	minimum float64
}

// Parent implements pane.Shape.
func (t shape) Parent(n int32) int32 { return t.Nodes[n].Parent }

// Kids implements pane.Shape.
func (t shape) Kids(n int32) []int32 { return t.Nodes[n].Children }

// Weight implements pane.Shape.
func (t shape) Weight(n int32) float64 {
	share := t.Nodes[n].Share
	var w float64
	switch t.by {
	case byB:
		w = share[1]
	case byA:
		w = share[0]
	default:
		w = (share[0] + share[1]) / 2
	}
	if n != 0 && w < t.minimum {
		return 0
	}
	return w
}

func (s *Screen) shape() shape { return shape{s.pair, s.by, s.c.Minimum} }

// Query implements Screen.
func (s *Screen) Query() model.Query { return s.c.Query(part{s.c.Compared}) }

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.Sort:
		return "paths are in the order of the tree; " + s.c.Key(screen.Diff) + " lists elements by what differs"
	case keymap.Invert, keymap.Sandwich:
		return "stacks are compared from the roots down; " + s.c.Key(screen.Stacks) + " turns those of one log"
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight, keymap.Bookmark, keymap.NextBookmark:
		return s.c.WhyNoTimeline()
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		if s.Subject().Name == "" {
			return "select a function first"
		}
	}
	return ""
}

// Do implements Screen.
func (s *Screen) Do(a keymap.Action) string {
	s.refresh()
	switch a {
	case keymap.NextPane, keymap.PrevPane:
		s.focus = listPane - s.focus
		return ""
	case keymap.Zoom:
		s.zoomed = !s.zoomed
		return ""
	case keymap.Mode:
		s.by = (s.by + 1) % allWidths
		return [...]string{"widths are shares of B", "widths are shares of A", "widths are the mean of A's and B's shares: what is gone or new has half of its own"}[s.by]
	case keymap.NonZero:
		s.all = !s.all
		if s.all {
			return "all paths"
		}
		return "only paths whose share changed by more than noise"
	}
	if s.pair == nil {
		return ""
	}
	if a == keymap.Open {
		if s.zoom == s.paths[s.at] {
			s.zoom = 0
		} else {
			s.zoom = s.paths[s.at]
		}
		s.first = 0
		return ""
	}
	if s.focus == graphPane {
		switch a {
		case keymap.Up, keymap.Down, keymap.Left, keymap.Right:
			s.choose(pane.Step(s.shape(), s.at, a, true))
			s.follow()
			return ""
		case keymap.Top:
			s.choose(0)
			s.follow()
			return ""
		}
	}
	if screen.MoveList(&s.list, a) && s.list.Cursor < len(s.rows) {
		s.choose(s.rows[s.list.Cursor])
	}
	return ""
}

// Back implements Screen.
func (s *Screen) Back() bool {
	switch {
	case s.zoomed:
		s.zoomed = false
	case s.zoom != 0:
		s.zoom = 0
	default:
		return false
	}
	return true
}

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	s.refresh()
	if s.pair == nil {
		return
	}
	if screen.Inside(s.table, m) {
		if screen.MouseList(&s.list, s.table, m) {
			s.focus = listPane
			if m.Double {
				s.Do(keymap.Open)
			}
		}
		if s.list.Cursor < len(s.rows) {
			s.choose(s.rows[s.list.Cursor])
		}
		return
	}
	if m.Kind != screen.Press || !screen.Inside(s.graph, m) {
		return
	}
	s.focus = graphPane
	for _, b := range s.blocks {
		if screen.Inside(b.R, m) {
			s.choose(b.Node)
			s.follow()
			if m.Double {
				s.Do(keymap.Open)
			}
			return
		}
	}
}

// Find implements Screen. It looks through the whole tree, in its order.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	s.refresh()
	if p.RE == nil || s.pair == nil {
		return false
	}
	n := len(s.pair.Nodes)
	step := by
	if by == 0 {
		step = 1
	}
	at := int(s.at) + by
	for range n {
		i := ((at % n) + n) % n
		if p.RE.MatchString(s.pair.Nodes[i].Name) {
			s.choose(int32(i))
			s.follow()
			return true
		}
		at += step
	}
	return false
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject {
	out := screen.Subject{Key: model.NoKey}
	if s.pair == nil || int(s.at) >= len(s.pair.Nodes) {
		return out
	}
	n := &s.pair.Nodes[s.at]
	out.Row = row(n)
	f := n.Frame
	if f == nil || n.Parent < 0 {
		return out
	}
	out.Name, out.Module, out.Package, out.Path, out.Line, out.Symbol = n.Name, f.Module, f.Package, f.File, int(f.Line), f.Symbol
	switch {
	case f.Kind == profile.KindCollapsed && f.Module == "":
		out.Level = profile.LevelPackage
	case f.Kind == profile.KindCollapsed:
		out.Level = profile.LevelModule
	default:
		out.Function = f.Kind != profile.KindCategory
	}
	if side, only := n.Only(); only {
		out.Only = screen.Side(side).String()
	}
	return out
}

// Report implements Screen.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	a := s.latest()
	if a == nil || a.pair == nil {
		return nil, errors.New("there is nothing to compare")
	}
	c := s.c.Compared
	return func(*profile.Selection) (printer.Report, error) {
		return Report{Pair: a.pair, Unit: a.unit, NamesA: c.NamesA, NamesB: c.NamesB, All: s.all}, nil
	}, nil
}

// gone are the nodes below one that the widths leave out: those of the other side alone, unless that
// is noise, largest first, without what is below them.
func (s *Screen) gone(n int32) (nodes []int32, share float64) {
	side := 0
	switch s.by {
	case byA:
		side = 1
	case byBoth:
		return nil, 0
	}
	for _, k := range s.pair.Nodes[n].Children {
		kid := &s.pair.Nodes[k]
		if only, ok := kid.Only(); ok && only == side && kid.Differs() {
			nodes, share = append(nodes, k), share+kid.Share[side]
		}
	}
	return nodes, math.Min(share, 1)
}

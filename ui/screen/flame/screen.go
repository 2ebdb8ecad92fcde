// Package flame is the screen of stacks: a flame graph over the call tree, or one function's
// callers and callees.
package flame

import (
	"fmt"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/stacks"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Stacks, Tab: "Flame", New: newScreen,
	Off:  (*screen.Context).WhyNoSamples,
	Keys: keymap.Screen{Help: "flame graph and call tree"},
}

// Screen is a flame graph over the call tree, from the roots down or, inverted, from the
// leaves up; or the sandwich of one function: its callers over its callees.
type Screen struct {
	c                *screen.Context
	flame            *flamePane
	tree             *treePane
	callers, callees *treePane
	focus            stackPane
	zoomed           bool
	shown            screen.Function // whose callers and callees the panes have
	boxes            boxes
}

type stackPane int

const (
	paneFlame stackPane = iota
	paneTree            // or callers
	paneCallees
)

func newScreen(c *screen.Context) screen.Screen {
	return &Screen{c: c, flame: &flamePane{c: c}, tree: newTreePane(c), callers: newTreePane(c), callees: newTreePane(c), focus: paneTree}
}

// refresh replaces the trees by new ones.
func (s *Screen) refresh() {
	a := s.answer()
	s.tree.take(a.tree)
	if w := a.sandwich; s.c.Sandwich != (screen.Function{}) && w != nil && w.Function == s.c.Sandwich && w.Callers != nil {
		if s.shown != w.Function {
			s.shown = w.Function
			s.callers, s.callees = newTreePane(s.c), newTreePane(s.c)
		}
		s.callers.take(w.Callers)
		s.callees.take(w.Callees)
	}
}

// sandwiched reports whether a sandwich is shown and there.
func (s *Screen) sandwiched() bool {
	w := s.answer().sandwich
	return s.c.Sandwich != (screen.Function{}) && w != nil && w.Function == s.c.Sandwich && w.Callers != nil
}

// pane is the list that the keys act on. On the flame graph of a sandwich that
// is the callees'.
func (s *Screen) pane() *treePane {
	switch {
	case !s.sandwiched():
		return s.tree
	case s.focus == paneTree:
		return s.callers
	}
	return s.callees
}

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.Sort:
		return "children are by total; i turns the tree"
	case keymap.Invert:
		if s.c.Sandwich != (screen.Function{}) {
			return "a sandwich shows both ways; p leaves it"
		}
	case keymap.Filter:
		return "a tree is searched with / and narrowed with f; & filters the hot list"
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight, keymap.Bookmark, keymap.NextBookmark:
		return s.c.WhyNoTimeline()
	case keymap.Sandwich:
		if s.c.Sandwich == (screen.Function{}) && !s.pane().subject().Function {
			return "select a function first"
		}
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		if s.pane().subject().Name == "" {
			return "select a function first"
		}
	}
	return ""
}

// Do implements Screen.
func (s *Screen) Do(a keymap.Action) string {
	s.refresh()
	panes := stackPane(2)
	if s.sandwiched() {
		panes = 3
	}
	switch a {
	case keymap.NextPane:
		s.focus = (s.focus + 1) % panes
		return ""
	case keymap.PrevPane:
		s.focus = (s.focus + panes - 1) % panes
		return ""
	case keymap.Zoom:
		s.zoomed = !s.zoomed
		return ""
	case keymap.Sandwich:
		return s.sandwich()
	}
	t := s.pane()
	if s.focus != paneFlame || t.tree == nil {
		t.do(a)
		return ""
	}
	n := t.node()
	if n < 0 {
		return ""
	}
	switch a {
	case keymap.Up, keymap.Down, keymap.Left, keymap.Right:
		t.reveal(pane.Step(shapeOf(t), n, a, true))
	case keymap.Top:
		t.reveal(0)
	case keymap.Open:
		switch {
		case s.sandwiched():
			return s.sandwich()
		case s.flame.zoom == t.paths[n]:
			s.flame.zoom = 0
		default:
			s.flame.zoom, s.flame.first = t.paths[n], 0
		}
	default:
		t.do(a)
	}
	return ""
}

// sandwich shows the selected function's callers and callees; again, leaves.
func (s *Screen) sandwich() string {
	t := s.pane()
	n := t.node()
	if s.c.Sandwich != (screen.Function{}) {
		again := n <= 0 || t.tree.Nodes[n].Function() == s.c.Sandwich || t.tree.Nodes[n].Category
		if again {
			s.leave()
			return ""
		}
	}
	if n < 0 {
		return ""
	}
	s.c.Sandwich = t.tree.Nodes[n].Function()
	return "callers and callees of " + s.c.Sandwich.Name + "; p on another shows its own, esc leaves"
}

func (s *Screen) leave() {
	s.c.Sandwich = screen.Function{}
	s.focus = min(s.focus, paneTree)
}

// Back implements Screen.
func (s *Screen) Back() bool {
	switch {
	case s.zoomed:
		s.zoomed = false
	case s.c.Sandwich != (screen.Function{}):
		s.leave()
	case s.flame.zoom != 0:
		s.flame.zoom = 0
	default:
		return false
	}
	return true
}

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	s.refresh()
	switch {
	case screen.Inside(s.boxes.Flame.Inset(1), m):
		if m.Kind == screen.Press {
			s.focus = paneFlame
			s.pressFlame(m)
		}
	case screen.Inside(s.boxes.Tree.Inset(1), m):
		if m.Kind == screen.Press {
			s.focus = paneTree
		}
		if s.sandwiched() {
			s.callers.mouse(m)
		} else {
			s.tree.mouse(m)
		}
	case screen.Inside(s.boxes.Callees.Inset(1), m):
		if m.Kind == screen.Press {
			s.focus = paneCallees
		}
		s.callees.mouse(m)
	}
}

// pressFlame selects the block under the mouse; a double click opens it.
func (s *Screen) pressFlame(m screen.Mouse) {
	b, ok := s.flame.at(m)
	if !ok {
		return
	}
	for i, t := range []*treePane{s.tree, s.callers, s.callees} {
		if t.tree != b.tree {
			continue
		}
		t.reveal(b.node)
		if i == 1 {
			s.focus = paneTree
		}
		if m.Double {
			s.Do(keymap.Open)
		}
		return
	}
}

// Find implements Screen.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	s.refresh()
	return s.pane().search(p, by)
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject { return s.pane().subject() }

// Query implements Screen.
func (s *Screen) Query() model.Query { return s.c.Query(part{s.c.Invert, s.c.Sandwich}) }

// answer is what is there to draw; its parts are nil until they are.
func (s *Screen) answer() answer {
	if a := screen.Part[answer](s.c); a != nil {
		return *a
	}
	return answer{}
}

// Report implements Screen.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	of, invert := s.c.Sandwich, s.c.Invert
	return func(sel *profile.Selection) (printer.Report, error) {
		if of == (screen.Function{}) {
			return Report{Selection: sel, Tree: stacks.TreeOf(sel, stacks.Options{Invert: invert}), Inverted: invert}, nil
		}
		t := stacks.TreeOf(sel, stacks.Options{})
		f, _ := t.Function(of.Name)
		if f == nil {
			return nil, fmt.Errorf("no stack that is kept has %s", of.Name)
		}
		callers, callees := t.Sandwich(f)
		return SandwichReport{Selection: sel, Callers: callers, Callees: callees}, nil
	}, nil
}

// Draw implements Screen.
func (s *Screen) Draw(p *widget.Painter, f layout.Frame) {
	s.refresh()
	one := -1
	if f.Small || s.zoomed {
		one = int(s.focus)
	}
	s.boxes = divide(f.Body, s.c.Sandwich != (screen.Function{}), one)
	if s.c.Sandwich != (screen.Function{}) {
		s.drawSandwich(p)
		return
	}
	title, note := "call tree  from the roots down", "i inverts"
	if s.c.Invert {
		title, note = "call tree  from the leaves up: callers below", "i inverts"
	}
	title = s.c.Few(title)
	in := s.flameBox(p, "flame graph", "enter: whole width  p: callers and callees")
	if !in.Empty() && s.tree.tree != nil && len(s.tree.tree.Nodes) > 0 {
		graph := s.details(p, in, s.tree)
		s.flame.drawTree(p, graph, s.tree, s.tree.node(), s.focus == paneFlame)
		s.flame.beside(p, in, graph, s.tree)
	}
	if !s.boxes.Tree.Empty() { // after the graph, whose border has its title
		s.tree.draw(p, s.boxes.Tree, title, note, "self", s.focus == paneTree)
	}
	p.Highlight([...]widget.Rect{s.boxes.Flame, s.boxes.Tree, s.boxes.Callees}[s.focus])
}

// flameBox draws the flame graph's box and gives its inside.
func (s *Screen) flameBox(p *widget.Painter, title, note string) widget.Rect {
	if s.boxes.Flame.Empty() {
		return widget.Rect{}
	}
	p.Box(s.boxes.Flame, title, note, s.focus == paneFlame)
	return s.boxes.Flame.Inset(1)
}

func (s *Screen) drawSandwich(p *widget.Painter) {
	title := s.c.Few("sandwich of " + s.c.Sandwich.Name)
	if !s.sandwiched() {
		lines := screen.Computing(p)
		if w := s.answer().sandwich; w != nil && w.Function == s.c.Sandwich {
			lines = []string{"no stack that is kept has " + s.c.Sandwich.Name + "; esc leaves"}
		}
		if in := s.flameBox(p, title, ""); !in.Empty() {
			screen.DrawInstead(p, in, lines)
		}
		for _, b := range []widget.Rect{s.boxes.Tree, s.boxes.Callees} {
			if !b.Empty() {
				p.Box(b, "", "", false)
			}
		}
		return
	}
	total := format.Share(s.callees.tree.Nodes[0].Total * s.c.Base)
	if in := s.flameBox(p, title, fmt.Sprintf("%s, callers above, callees below", total)); !in.Empty() {
		under := s.callees
		if s.focus == paneTree {
			under = s.callers
		}
		graph := s.details(p, in, under)
		s.flame.drawSandwich(p, graph, s.callers, s.callees, s.focus == paneTree, true)
		s.flame.beside(p, in, graph, under)
	}
	if !s.boxes.Tree.Empty() {
		s.callers.draw(p, s.boxes.Tree, "callers", "starts: stack starts here", "starts", s.focus == paneTree)
	}
	if !s.boxes.Callees.Empty() {
		s.callees.draw(p, s.boxes.Callees, "callees", "", "self", s.focus == paneCallees)
	}
	p.Highlight([...]widget.Rect{s.boxes.Flame, s.boxes.Tree, s.boxes.Callees}[s.focus])
}

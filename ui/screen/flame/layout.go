package flame

import "ccagent/ui/layout"

// boxes are the rectangles: a flame graph over the call tree, or over callers
// and callees side by side.
type boxes struct {
	Flame, Tree, Callees layout.Rect // Tree is the callers' of a sandwich; empty when not shown
}

// divide lays out the screen. one is the only pane to show, or −1 for all: 0 the
// flame graph, 1 the tree, 2 the callees.
func divide(body layout.Rect, sandwich bool, one int) boxes {
	var s boxes
	switch {
	case one == 0:
		s.Flame = body
	case one == 2 && sandwich:
		s.Callees = body
	case one > 0:
		s.Tree = body
	default:
		h := min(max(8, body.Dy()*2/5), body.Dy()-6)
		s.Flame, s.Tree = body, body
		s.Flame.Max.Y = body.Min.Y + h
		s.Tree.Min.Y = s.Flame.Max.Y - 1
		if sandwich {
			s.Callees = s.Tree
			s.Tree.Max.X = body.Min.X + (body.Dx()+1)/2
			s.Callees.Min.X = s.Tree.Max.X - 1
		}
	}
	return s
}

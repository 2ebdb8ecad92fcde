package pane

import (
	"image"

	"ccagent/ui/keymap"
	"ccagent/ui/widget"
)

// Shape is a tree whose nodes are drawn as blocks on top of each other, as flame graphs are.
type Shape interface {
	Parent(n int32) int32 // −1 for the root
	Kids(n int32) []int32
	// Weight decides how wide a block is. That of a node's kids is at most its own, and a node
	// of none is not drawn.
	Weight(n int32) float64
}

// Block is a node as placed on the screen.
type Block struct {
	Node int32
	R    widget.Rect
	More bool // it goes on beyond the last row
}

// Spread places a node over the columns x1 to x2 in a row of r, counted from its top or, with by
// −1, from its bottom, and the nodes below it in the rows after that. It visits only nodes that
// have a column; rows above the first are passed over.
func Spread(t Shape, n int32, r widget.Rect, x1, x2, row, by int, place func(Block)) {
	if row >= r.Dy() || x2 <= x1 {
		return
	}
	last := row == r.Dy()-1
	if row >= 0 {
		y := r.Min.Y + row
		if by < 0 {
			y = r.Max.Y - 1 - row
		}
		b := Block{Node: n, R: widget.Rect{Min: image.Pt(x1, y), Max: image.Pt(x2, y+1)}}
		if last {
			for _, k := range t.Kids(n) {
				b.More = b.More || t.Weight(k) > 0
			}
		}
		place(b)
	}
	whole := t.Weight(n)
	if last || whole <= 0 {
		return
	}
	width, sum, from := float64(x2-x1), 0.0, x1
	for _, k := range t.Kids(n) {
		sum += t.Weight(k)
		to := min(x2, x1+int(sum/whole*width+0.5))
		if to > from {
			Spread(t, k, r, from, to, row+1, by, place)
		}
		from = max(from, to)
	}
}

// Step is the node that an arrow key leads to: along the blocks of its row, to its parent, or to
// its first kid. down is whether kids are below.
func Step(t Shape, n int32, a keymap.Action, down bool) int32 {
	toParent, toKid := keymap.Up, keymap.Down
	if !down {
		toParent, toKid = toKid, toParent
	}
	switch a {
	case toParent:
		if up := t.Parent(n); up >= 0 {
			return up
		}
	case toKid:
		for _, k := range t.Kids(n) {
			if t.Weight(k) > 0 {
				return k
			}
		}
	case keymap.Left, keymap.Right:
		return cousin(t, n, a == keymap.Right)
	}
	return n
}

// cousin is the next node of the same depth to one side.
func cousin(t Shape, n int32, right bool) int32 {
	up := 0
	for at := n; t.Parent(at) >= 0; at = t.Parent(at) {
		kids := t.Kids(t.Parent(at))
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

// descend finds the first, or last, node some levels below another; −1 if there is none.
func descend(t Shape, n int32, levels int, first bool) int32 {
	if t.Weight(n) <= 0 {
		return -1
	}
	if levels == 0 {
		return n
	}
	kids := t.Kids(n)
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

// Depth is how many rows a shape takes below a node: only nodes with weight count.
func Depth(t Shape, n int32) int {
	type at struct {
		node  int32
		depth int
	}
	most := 0
	for stack := []at{{n, 0}}; len(stack) > 0; {
		x := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		most = max(most, x.depth)
		for _, k := range t.Kids(x.node) {
			if t.Weight(k) > 0 {
				stack = append(stack, at{k, x.depth + 1})
			}
		}
	}
	return most
}

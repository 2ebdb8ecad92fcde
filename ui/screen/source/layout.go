package source

import "ccagent/ui/layout"

// boxes are the rectangles: the source over tables about its line.
type boxes struct {
	Source                      layout.Rect
	Causes, Blocks, Lines, Also layout.Rect // empty when there is no room
}

// divide lays out the screen.
func divide(body layout.Rect, small bool) boxes {
	s := boxes{Source: body}
	if small || body.Dy() < 14 {
		return s
	}
	h := min(9, body.Dy()/3)
	s.Source.Max.Y = body.Max.Y - h + 1
	low := body
	low.Min.Y = body.Max.Y - h
	// Where four do not fit, the lines are left out.
	boxes, cuts := []*layout.Rect{&s.Causes, &s.Blocks, &s.Also}, []int{36, 72, 100}
	if low.Dx() >= 110 {
		boxes, cuts = []*layout.Rect{&s.Causes, &s.Blocks, &s.Lines, &s.Also}, []int{28, 56, 78, 100}
	}
	from := low.Min.X
	for i, box := range boxes {
		*box = low
		box.Min.X = from
		from = low.Min.X + low.Dx()*cuts[i]/100
		box.Max.X = min(low.Max.X, from+1)
	}
	return s
}

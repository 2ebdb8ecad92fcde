package heap

import "ccagent/ui/layout"

// besideFrom is the width from which on pauses stand beside the bands; below it they are one line below them.
const besideFrom = 100

// divide lays out the screen: the chart over the bands and the pauses, which are
// empty when there is no room, or only the chart is wanted. Without pauses the bands have all of the width, and where
// their names would be cut to nothing beside the pauses.
func divide(body layout.Rect, only, noPauses bool) (chart, bands, pauses layout.Rect) {
	if only || body.Dy() < 16 {
		return body, layout.Rect{}, layout.Rect{}
	}
	h := max(7, body.Dy()*2/5)
	chart, bands, pauses = body, body, body
	chart.Max.Y = body.Max.Y - h + 1
	bands.Min.Y, pauses.Min.Y = body.Max.Y-h, body.Max.Y-h
	if body.Dx() < besideFrom || noPauses {
		return chart, bands, layout.Rect{}
	}
	x := body.Max.X - max(42, body.Dx()*2/5)
	bands.Max.X, pauses.Min.X = x+1, x
	return chart, bands, pauses
}

package heap

import "ccagent/ui/layout"

// divide lays out the screen: the chart over the bands and the pauses, which are
// empty when there is no room, or only the chart is wanted. Without pauses the bands have all of the width.
func divide(body layout.Rect, only, noPauses bool) (chart, bands, pauses layout.Rect) {
	if only || body.Dy() < 16 {
		return body, layout.Rect{}, layout.Rect{}
	}
	h := max(7, body.Dy()*2/5)
	chart, bands, pauses = body, body, body
	chart.Max.Y = body.Max.Y - h + 1
	bands.Min.Y, pauses.Min.Y = body.Max.Y-h, body.Max.Y-h
	if body.Dx() < 70 || noPauses {
		return chart, bands, layout.Rect{}
	}
	x := body.Max.X - max(42, body.Dx()*2/5)
	bands.Max.X, pauses.Min.X = x+1, x
	return chart, bands, pauses
}

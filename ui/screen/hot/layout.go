package hot

import "ccagent/ui/layout"

// paneID is a pane of the screen that can have the focus.
type paneID int

const (
	paneHot paneID = iota
	paneSource
	paneTimeline
	panes
)

// boxes are the panes' rectangles: they include their borders and share those between them.
type boxes struct {
	Boxes [panes]layout.Rect // empty when not shown
}

// divide lays out the screen in body. rows is the number of rows the timeline wants
// besides its border; with one set, only that pane is shown.
func divide(body layout.Rect, rows int, only paneID, one bool) boxes {
	var m boxes
	if one {
		m.Boxes[only] = body
		return m
	}
	// The timeline gets what it wants up to a third of the height.
	t := min(rows, max(3, body.Dy()/3-2)) + 2
	tb := body
	tb.Max.Y = body.Min.Y + t
	m.Boxes[paneTimeline] = tb
	low := body
	low.Min.Y = tb.Max.Y - 1
	split := low.Min.X + (low.Dx()+1)*hotShare(low.Dx())/100
	m.Boxes[paneHot] = low
	m.Boxes[paneHot].Max.X = split + 1
	m.Boxes[paneSource] = low
	m.Boxes[paneSource].Min.X = split
	return m
}

// hotShare is the percentage of the width the hot list gets: names need room
// first, source lines profit from all that is left.
func hotShare(w int) int {
	switch {
	case w < 100:
		return 52
	case w < 140:
		return 56
	default:
		return 42
	}
}

// Package layout divides the terminal among the viewer's panes: pure functions
// from a size to rectangles.
package layout

import "image"

// The size below which only one pane is shown, with a notice.
const (
	MinWidth  = 80
	MinHeight = 24
)

// Pane is a part of a screen that can have the keys.
type Pane int

const (
	Hot Pane = iota
	Source
	Timeline
	Panes
)

var paneNames = [Panes]string{"hot list", "source", "timeline"}

// String names the pane.
func (p Pane) String() string { return paneNames[p] }

// Rect is a rectangle of cells.
type Rect = image.Rectangle

// Frame is what every screen has around its body.
type Frame struct {
	Title, Notice, Body, Crumbs, Footer Rect
	Small                               bool // the terminal is below the minimum size
}

// Outer cuts a w×h terminal into the frame's rows. When it is too small for all of them, the
// body comes first, then the notice, the footer and the title.
func Outer(w, h int) Frame {
	f := Frame{Small: w < MinWidth || h < MinHeight}
	top, bottom := 0, h
	take := func(fromTop bool) Rect {
		if bottom-top <= 1 {
			return Rect{}
		}
		if fromTop {
			top++
			return image.Rect(0, top-1, w, top)
		}
		bottom--
		return image.Rect(0, bottom, w, bottom+1)
	}
	if f.Small {
		f.Notice = take(true)
		f.Footer = take(false)
		if bottom-top > 4 {
			f.Title = f.Notice
			f.Notice = take(true)
			f.Crumbs = take(false)
		}
	} else {
		f.Title = take(true)
		f.Footer = take(false)
		f.Crumbs = take(false)
	}
	f.Body = image.Rect(0, top, w, bottom)
	return f
}

// MainScreen is screen 1: boxes include their borders and share those between them.
type MainScreen struct {
	Boxes [Panes]Rect // empty when not shown
}

// Main lays out screen 1 in body. rows is the number of rows the timeline wants
// besides its border; with one set, only that pane is shown.
func Main(body Rect, rows int, only Pane, one bool) MainScreen {
	var m MainScreen
	if one {
		m.Boxes[only] = body
		return m
	}
	// The timeline gets what it wants up to a third of the height.
	t := min(rows, max(3, body.Dy()/3-2)) + 2
	tb := body
	tb.Max.Y = body.Min.Y + t
	m.Boxes[Timeline] = tb
	low := body
	low.Min.Y = tb.Max.Y - 1
	split := low.Min.X + (low.Dx()+1)*hotShare(low.Dx())/100
	m.Boxes[Hot] = low
	m.Boxes[Hot].Max.X = split + 1
	m.Boxes[Source] = low
	m.Boxes[Source].Min.X = split
	return m
}

// hotShare is the percentage of the width the hot list gets: names need room
// first, source lines profit from all that is left.
func hotShare(w int) int {
	switch {
	case w < 100:
		return 52
	case w < 140:
		return 50
	default:
		return 42
	}
}

// SourceScreen is screen 2: the source over tables about its line.
type SourceScreen struct {
	Source                      Rect
	Causes, Blocks, Lines, Also Rect // empty when there is no room
}

// SourceOver lays out screen 2.
func SourceOver(body Rect, small bool) SourceScreen {
	s := SourceScreen{Source: body}
	if small || body.Dy() < 14 {
		return s
	}
	h := min(9, body.Dy()/3)
	s.Source.Max.Y = body.Max.Y - h + 1
	low := body
	low.Min.Y = body.Max.Y - h
	// Where four do not fit, the lines are left out.
	boxes, cuts := []*Rect{&s.Causes, &s.Blocks, &s.Also}, []int{36, 72, 100}
	if low.Dx() >= 110 {
		boxes, cuts = []*Rect{&s.Causes, &s.Blocks, &s.Lines, &s.Also}, []int{28, 56, 78, 100}
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

// Heap lays out screen 5: the chart over the bands and the pauses, which are
// empty when there is no room, or only the chart is wanted.
func Heap(body Rect, only bool) (chart, bands, pauses Rect) {
	if only || body.Dy() < 16 {
		return body, Rect{}, Rect{}
	}
	h := max(7, body.Dy()*2/5)
	chart, bands, pauses = body, body, body
	chart.Max.Y = body.Max.Y - h + 1
	bands.Min.Y, pauses.Min.Y = body.Max.Y-h, body.Max.Y-h
	if body.Dx() < 70 {
		return chart, bands, Rect{}
	}
	x := body.Max.X - max(42, body.Dx()*2/5)
	bands.Max.X, pauses.Min.X = x+1, x
	return chart, bands, pauses
}

// Dialog is a box of at most w×h in the middle of the screen.
func Dialog(screen Rect, w, h int) Rect {
	w, h = min(w, screen.Dx()), min(h, screen.Dy())
	x := screen.Min.X + (screen.Dx()-w)/2
	y := screen.Min.Y + (screen.Dy()-h)/2
	return image.Rect(x, y, x+w, y+h)
}

// StackScreen is screen 3: a flame graph over the call tree, or over callers
// and callees side by side.
type StackScreen struct {
	Flame, Tree, Callees Rect // Tree is the callers' of a sandwich; empty when not shown
}

// Stacks lays out screen 3. one is the only pane to show, or −1 for all: 0 the
// flame graph, 1 the tree, 2 the callees.
func Stacks(body Rect, sandwich bool, one int) StackScreen {
	var s StackScreen
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

// Package layout divides the terminal into what is around all screens and their body: pure
// functions from a size to rectangles. How a screen divides its body is the screen's.
package layout

import "image"

// The size below which only one pane is shown, with a notice.
const (
	MinWidth  = 80
	MinHeight = 24
)

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

// Dialog is a box of at most w×h in the middle of the screen.
func Dialog(screen Rect, w, h int) Rect {
	w, h = min(w, screen.Dx()), min(h, screen.Dy())
	x := screen.Min.X + (screen.Dx()-w)/2
	y := screen.Min.Y + (screen.Dy()-h)/2
	return image.Rect(x, y, x+w, y+h)
}

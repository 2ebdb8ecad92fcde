package screen

import "ccagent/ui/widget"

// Mouse is a mouse event inside a screen.
type Mouse struct {
	X, Y   int
	Kind   MouseKind
	Double bool
}

// MouseKind is what the mouse did.
type MouseKind uint8

// What a mouse does.
const (
	Press MouseKind = iota
	Drag
	Release
	WheelUp
	WheelDown
)

// Inside reports whether the mouse is in a rectangle.
func Inside(r widget.Rect, m Mouse) bool {
	return m.X >= r.Min.X && m.X < r.Max.X && m.Y >= r.Min.Y && m.Y < r.Max.Y
}

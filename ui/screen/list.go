package screen

import (
	"ccagent/ui/keymap"
	"ccagent/ui/widget"
)

// MoveList carries out the movements that all lists share. It reports whether the action
// was one.
func MoveList(l *widget.List, a keymap.Action) bool {
	switch a {
	case keymap.Up:
		l.Move(-1)
	case keymap.Down:
		l.Move(1)
	case keymap.Top:
		l.Set(0)
	case keymap.Bottom:
		l.Set(l.N - 1)
	case keymap.HalfUp:
		l.Move(-(l.Page() + 1) / 2)
	case keymap.HalfDown:
		l.Move((l.Page() + 1) / 2)
	case keymap.PageUp:
		l.Move(-l.Page())
	case keymap.PageDown, keymap.Mark:
		l.Move(l.Page())
	default:
		return false
	}
	return true
}

// MouseList handles the mouse in a list: the wheel scrolls, and a press moves the cursor
// to the row under the mouse. It reports whether a row was pressed.
func MouseList(l *widget.List, rows widget.Rect, m Mouse) bool {
	switch m.Kind {
	case WheelUp, WheelDown:
		l.Scroll(wheel(m))
	case Press:
		if i := l.RowAt(rows, m.Y); i >= 0 {
			l.Set(i)
			return true
		}
	}
	return false
}

// MouseRows is MouseList for a screen's list: moved is called after it, and a double click opens the
// row that was pressed, unless the screen says why that is off.
func MouseRows(s Screen, l *widget.List, rows widget.Rect, m Mouse, moved func()) {
	pressed := MouseList(l, rows, m)
	moved()
	if pressed && m.Double && s.Why(keymap.Open) == "" {
		s.Do(keymap.Open)
	}
}

// wheel is the number of rows that a turn of the wheel scrolls.
func wheel(m Mouse) int {
	if m.Kind == WheelUp {
		return -3
	}
	return 3
}

// BarHead draws the heading of a column of bars, the second part only where it fits,
// and returns where the next column begins.
func BarHead(p *widget.Painter, x, y, width int, solid, light string) int {
	end := x + width
	p.Cell(x, y, p.Glyphs.Full, p.Theme.Only)
	next := p.Text(x+1, y, end, solid, p.Theme.Dim) + 1
	if light != "" && next+1+len(light) <= end {
		p.Cell(next, y, p.Rest(), p.Theme.Shared)
		p.Text(next+1, y, end, light, p.Theme.Dim)
	}
	return end + 1
}

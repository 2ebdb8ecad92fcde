package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"ccagent/ui/screen"
)

// doubleClick is the time within which two clicks are one.
const doubleClick = 400 * time.Millisecond

// clicks recognises double clicks.
type clicks struct {
	at   time.Time // of the last one
	x, y int
	now  func() time.Time
}

// of translates a mouse event, and reports whether it means anything to a screen.
func (k *clicks) of(msg tea.MouseMsg) (screen.Mouse, bool) {
	e := msg.Mouse()
	m := screen.Mouse{X: e.X, Y: e.Y}
	switch msg := msg.(type) {
	case tea.MouseClickMsg:
		m.Kind = screen.Press
		if msg.Button != tea.MouseLeft {
			return m, false
		}
		now := k.now()
		m.Double = k.x == m.X && k.y == m.Y && now.Sub(k.at) < doubleClick
		k.at, k.x, k.y = now, m.X, m.Y
	case tea.MouseReleaseMsg:
		m.Kind = screen.Release
	case tea.MouseMotionMsg:
		m.Kind = screen.Drag
		return m, msg.Button == tea.MouseLeft
	case tea.MouseWheelMsg:
		m.Kind = screen.WheelUp
		if msg.Button == tea.MouseWheelDown {
			m.Kind = screen.WheelDown
		}
		return m, msg.Button == tea.MouseWheelUp || msg.Button == tea.MouseWheelDown
	}
	return m, true
}

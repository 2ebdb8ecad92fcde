package pane

import (
	"ccagent/ui/keymap"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// Code shows the file of the selected element, or in its place the element's Core. Everything
// that knows of Core is in this pane: a screen has a Code and its query's part [CoreOf].
type Code struct {
	c      *screen.Context
	source *sourcePane
	core   *corePane
}

// code is what can be shown.
type code interface {
	draw(p *widget.Painter, r widget.Rect, focus bool)
	do(a keymap.Action) string
	mouse(m screen.Mouse)
	find(p *screen.Pattern, by int) bool
	hotter(by int) bool
	subject() screen.Subject
}

// NewCode gives a pane whose Core comes from core. A full one has more columns, for the
// whole width.
func NewCode(c *screen.Context, full bool, core func() *Core) *Code {
	return &Code{c: c, source: newSourcePane(c, full), core: &corePane{c: c, data: core}}
}

func (v *Code) shown() code {
	if v.c.Core {
		return v.core
	}
	return v.source
}

// Why says why an action is off; empty if it is on.
func (v *Code) Why(a keymap.Action) string { return v.source.why(a) }

// Do carries out an action.
func (v *Code) Do(a keymap.Action) string { return v.shown().do(a) }

// Hotter moves to the next (by 1) or previous (by −1) line by falling share. It reports
// whether there is one.
func (v *Code) Hotter(by int) bool { return v.shown().hotter(by) }

// Mouse handles what the mouse did in the pane.
func (v *Code) Mouse(m screen.Mouse) { v.shown().mouse(m) }

// Find moves to a match; see screen.Screen.
func (v *Code) Find(p *screen.Pattern, by int) bool { return v.shown().find(p, by) }

// Subject is the line under the cursor.
func (v *Code) Subject() screen.Subject { return v.shown().subject() }

// Draw draws the pane's box and what is in it.
func (v *Code) Draw(p *widget.Painter, r widget.Rect, focus bool) { v.shown().draw(p, r, focus) }

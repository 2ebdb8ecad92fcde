package view

import (
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/widget"
)

// Overview is screen 1: the timeline over the hot list and the source.
type Overview struct {
	c        *Context
	hot      *hotPane
	source   *sourcePane
	core     *corePane
	timeline *timelinePane
	focus    layout.Pane
	zoomed   bool
	boxes    layout.MainScreen
	dragging bool
}

// NewOverview gives screen 1 on a context.
func NewOverview(c *Context) *Overview {
	return &Overview{c: c, hot: newHotPane(c), source: newSourcePane(c, false), core: &corePane{c: c}, timeline: newTimelinePane(c)}
}

// Why implements Screen.
func (o *Overview) Why(a keymap.Action) string {
	switch a {
	case keymap.Sandwich:
		if o.focus != layout.Hot || !o.hot.subject().Function {
			return "select a function in the hot list first"
		}
		return ""
	case keymap.Invert:
		return "inverting turns the call tree; 3 shows it"
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		if o.focus == layout.Timeline {
			return "on the timeline, [ ] and v choose a range; tab goes to the hot list"
		}
	}
	if w := o.timeline.why(a); w != "" && (o.focus == layout.Timeline || !horizontal(a)) {
		return w
	}
	switch o.focus {
	case layout.Hot:
		return o.hot.why(a)
	case layout.Source:
		return o.source.why(a)
	}
	return ""
}

func horizontal(a keymap.Action) bool { return a == keymap.Left || a == keymap.Right }

// Do implements Screen.
func (o *Overview) Do(a keymap.Action) string {
	switch a {
	case keymap.NextPane:
		o.focus = (o.focus + 1) % layout.Panes
	case keymap.PrevPane:
		o.focus = (o.focus + layout.Panes - 1) % layout.Panes
	case keymap.Sandwich:
		sub := o.hot.subject()
		o.c.Sandwich = model.Function{Name: sub.Name, Module: sub.Module, Package: sub.Package}
		o.c.Goto = keymap.Screen3
	case keymap.Zoom:
		o.zoomed = !o.zoomed
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight,
		keymap.Bookmark, keymap.NextBookmark:
		if a == keymap.Brush {
			o.focus = layout.Timeline
		}
		return o.timeline.do(a)
	case keymap.Open:
		switch o.focus {
		case layout.Hot:
			o.focus = layout.Source
		case layout.Source:
			o.c.Goto = keymap.Screen2
		case layout.Timeline:
			return o.timeline.do(keymap.Brush)
		}
	default:
		switch o.focus {
		case layout.Hot:
			return o.hot.do(a)
		case layout.Source:
			if o.c.Core {
				o.core.do(a)
				return ""
			}
			return o.source.do(a)
		default:
			return o.timeline.do(a)
		}
	}
	return ""
}

// Back implements Screen.
func (o *Overview) Back() bool {
	switch {
	case o.timeline.back():
	case o.zoomed:
		o.zoomed = false
	case o.focus != layout.Hot:
		o.focus = layout.Hot
	default:
		return false
	}
	return true
}

// Mouse implements Screen.
func (o *Overview) Mouse(m Mouse) string {
	if o.dragging && m.Kind != Press {
		o.timeline.mouse(m)
		o.dragging = m.Kind != Release
		return ""
	}
	for i, b := range o.boxes.Boxes {
		pane := layout.Pane(i)
		if !inside(b.Inset(1), m) {
			continue
		}
		if m.Kind == Press {
			o.focus = pane
		}
		switch pane {
		case layout.Hot:
			if o.hot.mouse(m) {
				o.focus = layout.Source
			}
		case layout.Source:
			if o.c.Core {
				o.core.mouse(m)
			} else {
				o.source.mouse(m)
			}
		default:
			if m.Kind == Release || m.Kind == Drag {
				return ""
			}
			o.timeline.mouse(m)
			o.dragging = m.Kind == Press && !m.Double
		}
		return ""
	}
	return ""
}

func inside(r widget.Rect, m Mouse) bool {
	return m.X >= r.Min.X && m.X < r.Max.X && m.Y >= r.Min.Y && m.Y < r.Max.Y
}

// Find implements Screen.
func (o *Overview) Find(p *Pattern, by int) bool {
	if o.focus == layout.Source {
		if o.c.Core {
			return o.core.find(p, by)
		}
		return o.source.find(p, by)
	}
	return o.hot.find(p, by)
}

// Subject implements Screen.
func (o *Overview) Subject() Subject {
	switch o.focus {
	case layout.Source:
		if o.c.Core {
			return o.core.subject()
		}
		return o.source.subject()
	case layout.Timeline:
		return o.timeline.subject()
	}
	return o.hot.subject()
}

// Rekey names what is closed as another profile of the same log does.
func (o *Overview) Rekey(to func(model.Key) model.Key) {
	closed := make(map[model.Key]bool, len(o.hot.closed))
	for k := range o.hot.closed {
		if k := to(k); k != model.NoKey {
			closed[k] = true
		}
	}
	o.hot.closed = closed
}

// Needs implements Screen.
func (o *Overview) Needs(n *model.Need) { n.Core = o.c.Core }

// Draw implements Screen.
func (o *Overview) Draw(p *widget.Painter, f layout.Frame) {
	o.hot.refresh() // the other panes follow its selection
	o.boxes = layout.Main(f.Body, o.timeline.rows(), o.focus, o.zoomed || f.Small)
	source := o.source.draw
	if o.c.Core {
		source = o.core.draw
	}
	draw := [layout.Panes]func(*widget.Painter, widget.Rect, bool){o.hot.draw, source, o.timeline.draw}
	for _, pane := range []layout.Pane{layout.Timeline, layout.Hot, layout.Source} { // a title is on the border above
		if b := o.boxes.Boxes[pane]; !b.Empty() {
			draw[pane](p, b, pane == o.focus)
		}
	}
	p.Highlight(o.boxes.Boxes[o.focus])
}

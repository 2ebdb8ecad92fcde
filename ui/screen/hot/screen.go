// Package hot is the main screen: the timeline over the elements by share and the source of
// the selected one.
package hot

import (
	"strings"

	"ccagent/profile"
	"ccagent/profile/reasons"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Hot, Tab: "Main", New: newScreen,
	Keys: keymap.Screen{
		Help: "main screen: timeline, hot list, source", Does: []keymap.Action{keymap.Core},
		Section: keymap.Section{Group: "Hot list", Bindings: []keymap.Binding{
			{Action: flat, Keys: []string{"a"}, Show: "a", Short: "all", Help: "all functions in one list, those with the same samples in one row; again: by file"},
		}},
	},
}

// flat switches between the list of functions and that by file.
const flat keymap.Action = "flat"

// Screen is the main screen: the timeline over the hot list and the source.
type Screen struct {
	c        *screen.Context
	hot      *hotPane
	code     *pane.Code
	timeline *pane.Time
	focus    paneID
	zoomed   bool
	boxes    boxes
	dragging bool
}

func newScreen(c *screen.Context) screen.Screen {
	core := func() *pane.Core { return screen.Part[pane.Core](c) }
	return &Screen{c: c, hot: newHotPane(c), code: pane.NewCode(c, false, core), timeline: pane.NewTime(c)}
}

// Why implements Screen.
func (o *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.Sandwich:
		if o.focus != paneHot || !o.hot.subject().Function {
			return "select a function in the hot list first"
		}
		return ""
	case keymap.Invert:
		return "inverting turns the call tree; " + o.c.Key(screen.Stacks) + " shows it"
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		if o.focus == paneTimeline {
			return "on the timeline, [ ] and v choose a range; tab goes to the hot list"
		}
	}
	if w := o.timeline.Why(a); w != "" && (o.focus == paneTimeline || !horizontal(a)) {
		return w
	}
	switch o.focus {
	case paneHot:
		return o.hot.why(a)
	case paneSource:
		return o.code.Why(a)
	}
	return ""
}

func horizontal(a keymap.Action) bool { return a == keymap.Left || a == keymap.Right }

// Do implements Screen.
func (o *Screen) Do(a keymap.Action) string {
	switch a {
	case keymap.NextPane:
		o.focus = (o.focus + 1) % panes
	case keymap.PrevPane:
		o.focus = (o.focus + panes - 1) % panes
	case keymap.Sandwich:
		sub := o.hot.subject()
		o.c.Sandwich = screen.Function{Name: sub.Name, Module: sub.Module, Package: sub.Package}
		o.c.Goto = screen.Stacks
	case flat:
		o.hot.flat = !o.hot.flat
		if o.hot.flat {
			return "all functions in one list; l opens a row that stands for several"
		}
		return "functions by file and module"
	case keymap.Core:
		o.c.Core = !o.c.Core
	case keymap.Zoom:
		o.zoomed = !o.zoomed
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight,
		keymap.Bookmark, keymap.NextBookmark:
		if a == keymap.Brush {
			o.focus = paneTimeline
		}
		return o.timeline.Do(a)
	case keymap.Open:
		switch o.focus {
		case paneHot:
			o.focus = paneSource
		case paneSource:
			o.c.Goto = screen.Source
		case paneTimeline:
			return o.timeline.Do(keymap.Brush)
		}
	default:
		switch o.focus {
		case paneHot:
			return o.hot.do(a)
		case paneSource:
			return o.code.Do(a)
		default:
			return o.timeline.Do(a)
		}
	}
	return ""
}

// Back implements Screen.
func (o *Screen) Back() bool {
	switch {
	case o.timeline.Back():
	case o.zoomed:
		o.zoomed = false
	case o.focus != paneHot:
		o.focus = paneHot
	default:
		return false
	}
	return true
}

// Mouse implements Screen.
func (o *Screen) Mouse(m screen.Mouse) {
	if o.dragging && m.Kind != screen.Press {
		o.timeline.Mouse(m)
		o.dragging = m.Kind != screen.Release
		return
	}
	for i, b := range o.boxes.Boxes {
		pane := paneID(i)
		if !screen.Inside(b.Inset(1), m) {
			continue
		}
		if m.Kind == screen.Press {
			o.focus = pane
		}
		switch pane {
		case paneHot:
			if o.hot.mouse(m) {
				o.focus = paneSource
			}
		case paneSource:
			o.code.Mouse(m)
		default:
			if m.Kind == screen.Release || m.Kind == screen.Drag {
				return
			}
			o.timeline.Mouse(m)
			o.dragging = m.Kind == screen.Press && !m.Double
		}
		return
	}
}

// Find implements Screen.
func (o *Screen) Find(p *screen.Pattern, by int) bool {
	if o.focus == paneSource {
		return o.code.Find(p, by)
	}
	return o.hot.find(p, by)
}

// Subject implements Screen.
func (o *Screen) Subject() screen.Subject {
	switch o.focus {
	case paneSource:
		return o.code.Subject()
	case paneTimeline:
		return o.timeline.Subject()
	}
	return o.hot.subject()
}

// Rekey implements Rekeyer: it names what is closed as another profile of the same log does.
func (o *Screen) Rekey(to func(model.Key) model.Key) {
	closed := make(map[model.Key]bool, len(o.hot.closed))
	for k := range o.hot.closed {
		if k := to(k); k != model.NoKey {
			closed[k] = true
		}
	}
	o.hot.closed = closed
}

// Query implements Screen.
func (o *Screen) Query() model.Query {
	if o.c.Core {
		return o.c.QueryWindow(pane.CorePart{})
	}
	return o.c.QueryWindow(nil)
}

// sentence says in words where the weight is, and which keys show more; empty until it is known.
func (o *Screen) sentence(p *widget.Painter, width int) string {
	s := o.c.Data.Sentence
	if s == nil || s.Text == "" {
		return ""
	}
	forms := []string{s.Text + s.More + o.see(s.All())}
	shorter := s.Shorter
	if shorter == nil {
		shorter = []string{s.Text}
	}
	for _, text := range shorter {
		forms = append(forms, text+o.see(s.See))
	}
	for _, text := range forms {
		if p.Width(text) <= width {
			return text
		}
	}
	return shorter[len(shorter)-1]
}

// see names the keys that show more; empty if there are none.
func (o *Screen) see(views []reasons.See) string {
	var keys []string
	for _, v := range views {
		switch v {
		case reasons.SeeStacks:
			keys = append(keys, o.c.Key(screen.Stacks))
		case reasons.SeePauses:
			keys = append(keys, o.c.Key(screen.Heap))
		case reasons.SeeAllocation:
			keys = append(keys, "t")
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return ": see " + strings.Join(keys, ", ")
}

// Report implements Screen.
func (o *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	return func(s *profile.Selection) (printer.Report, error) {
		return Report{Selection: s, Level: profile.LevelBinding}, nil
	}, nil
}

// Draw implements Screen.
func (o *Screen) Draw(p *widget.Painter, f layout.Frame) {
	o.hot.refresh() // the other panes follow its selection
	body := f.Body
	if s := o.sentence(p, f.Body.Dx()-2); s != "" && !f.Small && !o.zoomed {
		p.Text(body.Min.X+1, body.Min.Y, body.Max.X-1, s, p.Theme.Strong)
		body.Min.Y++
	}
	o.boxes = divide(body, o.timeline.Rows(), o.focus, o.zoomed || f.Small)
	draw := [panes]func(*widget.Painter, widget.Rect, bool){o.hot.draw, o.code.Draw, o.timeline.Draw}
	for _, pane := range []paneID{paneTimeline, paneHot, paneSource} { // a title is on the border above
		if b := o.boxes.Boxes[pane]; !b.Empty() {
			draw[pane](p, b, pane == o.focus)
		}
	}
	p.Highlight(o.boxes.Boxes[o.focus])
}

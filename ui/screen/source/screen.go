// Package source is the screen of one source file: its lines with their costs and causes.
package source

import (
	"errors"

	"ccagent/profile"
	"ccagent/profile/source"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Source, Tab: "Src", New: newScreen,
	Off: func(c *screen.Context) string {
		if len(c.Profile.HeapGraphs) > 0 {
			return "" // of a closure
		}
		return c.WhyNoSamples()
	},
	Keys: keymap.Screen{Help: "source with its causes", Does: []keymap.Action{keymap.Core}, Steps: true,
		Notes: []keymap.Note{{Action: keymap.SearchNext, Help: "of source or machine code without a search: to the next hottest line"}},
	},
}

// Screen is a file over the whole width, and what is known of
// the line under the cursor.
type Screen struct {
	c      *screen.Context
	code   *pane.Code
	boxes  boxes
	zoomed bool
}

func newScreen(c *screen.Context) screen.Screen {
	s := &Screen{c: c}
	s.code = pane.NewCode(c, true, func() *pane.Core {
		if a := s.answer(); a != nil {
			return a.core
		}
		return nil
	})
	return s
}

func (s *Screen) answer() *answer { return screen.Part[answer](s.c) }

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.NextPane, keymap.PrevPane:
		return "this screen has one pane with keys; n and N step through the hottest lines"
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse, keymap.Sort, keymap.Minimum, keymap.Filter:
		return "this acts on elements; " + s.c.Key(screen.Hot) + " goes to the hot list"
	case keymap.Invert, keymap.Sandwich:
		return "inverting turns the call tree; " + s.c.Key(screen.Stacks) + " shows it"
	case keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight, keymap.Bookmark, keymap.NextBookmark:
		return s.c.WhyNoTimeline()
	case keymap.Open:
		if s.c.File == 0 {
			return "no file is open"
		}
		if s.c.Core {
			return "this steps through the hottest lines of the source; K shows it"
		}
	}
	return s.code.Why(a)
}

// Do implements Screen.
func (s *Screen) Do(a keymap.Action) string {
	switch a {
	case keymap.Core:
		s.c.Core = !s.c.Core
		return ""
	case keymap.Zoom:
		s.zoomed = !s.zoomed
		return ""
	case keymap.Open:
		if !s.c.Core && !s.code.Hotter(1) {
			return "no line here has samples"
		}
		return ""
	}
	return s.code.Do(a)
}

// Back implements Screen.
func (s *Screen) Back() bool {
	was := s.zoomed
	s.zoomed = false
	return was
}

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	if screen.Inside(s.boxes.Source.Inset(1), m) {
		s.code.Mouse(m)
	}
}

// Find implements Screen. Without a search, n and N step through the hottest lines.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	if p.RE == nil {
		return s.code.Hotter(by)
	}
	return s.code.Find(p, by)
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject { return s.code.Subject() }

// Query implements Screen.
func (s *Screen) Query() model.Query { return s.c.Query(part{s.c.Line, s.c.Core}) }

// Report implements Screen.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	file := s.c.File
	if file == 0 {
		return nil, errors.New("no file is open")
	}
	return func(sel *profile.Selection) (printer.Report, error) {
		return Report{Selection: sel, View: source.OfFile(sel, file), All: true}, nil
	}, nil
}

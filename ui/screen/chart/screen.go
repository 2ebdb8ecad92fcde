// Package chart is the flame chart: the stacks over time, left to right as it happened.
package chart

import (
	"ccagent/profile"
	"ccagent/profile/stacks"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/screen/pane"
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Chart, Tab: "Chart", New: newScreen,
	Off: (*screen.Context).WhyNoSamples,
	Keys: keymap.Screen{
		Help: "flame chart: stacks over time, left to right as it happened",
		Does: []keymap.Action{
			keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight,
			keymap.Bookmark, keymap.NextBookmark,
		},
		Notes: []keymap.Note{{Action: keymap.Open, Help: "on a flame chart: the block's time fills the width"}},
	},
}

// Screen is the path with the most weight in each column of the time that is on screen.
type Screen struct {
	c      *screen.Context
	time   *pane.Time
	row    int // of the block under the cursor, from the root; the column is the window's
	first  int // rows scrolled away
	runs   []stacks.ChartRun
	of     *stacks.Chart // that runs are of
	deep   int           // rows of the chart
	blocks widget.Rect   // as last drawn
}

func newScreen(c *screen.Context) screen.Screen { return &Screen{c: c, time: pane.NewTime(c)} }

// part says that the stacks are wanted by column; the query's window has the columns.
type part struct{}

// Compute implements model.Part; it gives a *stacks.Chart.
func (part) Compute(in *model.Input) (any, error) {
	type key struct {
		model.Samples
		model.Window
	}
	w := in.Query.Window
	if w.Cols <= 0 || w.To <= w.From {
		return nil, nil
	}
	// All transforms hold but the range, which is chosen here.
	var ts []model.Transform
	for _, t := range in.Samples.Transforms.All() {
		if t.Op != model.OpRange {
			ts = append(ts, t)
		}
	}
	samples := model.Samples{Event: in.Samples.Event, Transforms: model.TransformsOf(ts...)}
	sel, err := in.Select(samples)
	if err != nil {
		return nil, err
	}
	return model.Recall(in.Engine, key{samples, w}, func() *stacks.Chart {
		return stacks.ChartOf(sel, profile.Range{From: w.From, To: w.To}, w.Cols)
	}), nil
}

// chart is the latest answer, if it is of the columns on screen; else nil.
func (s *Screen) chart() *stacks.Chart {
	c := screen.Part[stacks.Chart](s.c)
	if c == nil || s.c.Data.Query.Window != s.c.Window.Window {
		return nil
	}
	return c
}

func (s *Screen) refresh() {
	c := s.chart()
	if c == s.of || c == nil {
		return
	}
	s.of, s.runs, s.deep = c, c.Runs(), 0
	for i := range c.Columns {
		s.deep = max(s.deep, len(c.Columns[i].Path))
	}
}

// block is the run under the cursor: at the cursor's row or the deepest above it; nil if nothing ran there.
func (s *Screen) block() *stacks.ChartRun {
	col := s.c.Window.Cursor
	var best *stacks.ChartRun
	for i := range s.runs {
		r := &s.runs[i]
		if r.Depth > s.row {
			break
		}
		if r.From <= col && col < r.To {
			best = r
		}
	}
	return best
}

// Query implements Screen.
func (s *Screen) Query() model.Query { return s.c.QueryWindow(part{}) }

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.NextPane, keymap.PrevPane, keymap.Zoom:
		return "there is one pane: h l move in time, j k along the stack"
	case keymap.Sort, keymap.Minimum, keymap.Base:
		return "a flame chart is in the order of time"
	case keymap.Filter:
		return "a flame chart is searched with / and narrowed with f; & filters lists"
	case keymap.Invert, keymap.Sandwich:
		return "time goes one way; " + s.c.Key(screen.Stacks) + " turns the call tree"
	case keymap.Open:
		if s.block() == nil {
			return "nothing ran here"
		}
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		if s.block() == nil {
			return "select a block first"
		}
	}
	if a == keymap.Up || a == keymap.Down || a == keymap.Top || a == keymap.Bottom {
		return ""
	}
	return s.time.Why(a)
}

// Do implements Screen.
func (s *Screen) Do(a keymap.Action) string {
	s.refresh()
	switch a {
	case keymap.Up:
		if b := s.block(); b != nil {
			s.row = min(s.row, b.Depth) // where the stack is shorter than the row
		}
		s.row = max(0, s.row-1)
	case keymap.Down:
		s.row = min(s.row+1, max(0, s.deep-1))
	case keymap.HalfUp, keymap.PageUp:
		s.row = max(0, s.row-10)
	case keymap.HalfDown, keymap.PageDown, keymap.Mark:
		s.row = min(s.row+10, max(0, s.deep-1))
	case keymap.Open:
		b, w := s.block(), &s.c.Window
		from, to := w.At(b.From), w.At(b.To)
		if b.From == 0 && b.To >= w.Cols {
			return "it fills the width; - zooms out, 0 shows all of the time"
		}
		w.From, w.To, w.Cursor = from, max(to, from+1), 0
	default:
		return s.time.Do(a)
	}
	s.show()
	return ""
}

// show puts the block's function into the source screen.
func (s *Screen) show() {
	if b := s.block(); b != nil {
		if f := s.of.Tree.Nodes[b.Node].Frame; f != nil && f.FileID != 0 {
			s.c.File, s.c.Line = f.FileID, int(f.Line)
		}
	}
}

// Back implements Screen.
func (s *Screen) Back() bool {
	w := &s.c.Window
	switch {
	case s.time.Back():
	case w.From > 0 || w.To < s.c.Profile.Duration:
		s.time.Do(keymap.ZoomFit)
	default:
		return false
	}
	return true
}

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	s.refresh()
	if m.Kind == screen.Press && screen.Inside(s.blocks, m) {
		s.row = m.Y - s.blocks.Min.Y + s.first
	}
	if m.Kind != screen.Press || !m.Double {
		s.time.Mouse(m)
	}
	if m.Kind == screen.Press && m.Double && s.block() != nil {
		s.Do(keymap.Open)
	}
	s.show()
}

// Find implements Screen: along time, then down.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	s.refresh()
	if p.RE == nil || s.of == nil || len(s.runs) == 0 {
		return false
	}
	n, at, step := len(s.runs), 0, by
	if by == 0 {
		step = 1
	}
	if b := s.block(); b != nil {
		for i := range s.runs {
			if s.runs[i] == *b {
				at = i
			}
		}
	}
	at += by
	for range n {
		r := &s.runs[((at%n)+n)%n]
		if p.RE.MatchString(s.of.Tree.Nodes[r.Node].Name) {
			s.c.Window.Cursor, s.row = r.From, r.Depth
			s.show()
			return true
		}
		at += step
	}
	return false
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject {
	out := s.time.Subject()
	b := s.block()
	if b == nil || s.of == nil {
		return out
	}
	n := &s.of.Tree.Nodes[b.Node]
	out.Row += "\t" + n.Name
	if f := n.Frame; f != nil {
		out.Name, out.Module, out.Package, out.Path, out.Line, out.Symbol = n.Name, f.Module, f.Package, f.File, int(f.Line), f.Symbol
		switch {
		case f.Kind == profile.KindCollapsed && f.Module == "":
			out.Level = profile.LevelPackage
		case f.Kind == profile.KindCollapsed:
			out.Level = profile.LevelModule
		default:
			out.Function = f.Kind != profile.KindCategory
		}
	}
	return out
}

// Report implements Screen.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	w := s.c.Window
	return func(sel *profile.Selection) (printer.Report, error) {
		return Report{Selection: sel, Range: profile.Range{From: w.From, To: w.To}, Columns: w.Cols}, nil
	}, nil
}

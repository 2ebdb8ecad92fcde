// Package heap is the screen of the heap: what was live over time, and pauses for GC.
package heap

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ccagent/ui/screen/pane"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// Kind registers the screen.
var Kind = screen.Kind{
	Name: screen.Heap, Tab: "Heap", New: newScreen,
	Off: func(c *screen.Context) string {
		if c.WhyNoSamples() != "" && !hasAny(c) { // of a log with samples the screen says what would have recorded the heap
			return "the log has neither the heap nor collections"
		}
		return ""
	},
	First: func(c *screen.Context) bool { return c.Profile.Samples() == 0 && hasAny(c) }, // all that such a log has
	Keys: keymap.Screen{
		Help: "heap and collections over time",
		Does: []keymap.Action{keymap.Sort, keymap.Mode, keymap.Collapse},
		Notes: []keymap.Note{
			{Action: keymap.Open, Help: "of the heap: where the closures of a band are written, then that source; or one band alone"},
			{Action: keymap.Collapse, Help: "of the heap: bands by closure type, kind, source, binding, file, module, package"},
			{Action: keymap.Brush, Help: "of the heap: growth is measured from here"},
			{Action: keymap.Mode, Help: "of the heap: bands over time, where memory is, what keeps what alive, or growth, which bands differ, what is allocated and survives"},
		},
		Footer: []keymap.Note{{Action: keymap.Collapse, Help: "group"}},
	},
}

// Screen is what was live over time by bands, the heap's size, and
// the pauses for collections. Its time is the timeline's.
type Screen struct {
	c      *screen.Context
	time   *pane.Time // its window, cursor and range
	list   widget.List
	choice part
	order  heapOrder
	mark   uint64 // time from which growth is counted
	marked bool
	zoomed bool

	rows     []int // of the series, as listed; −1 is the rest
	seen     heapSeen
	band     string // under the cursor
	inner    widget.Rect
	chart    widget.Rect
	dragging bool
	chosen   mode
	table    tableView         // what other modes than bands show
	begun    bool              // the cursor has been put where the heap is largest, or stood elsewhere
	onPeak   [2]int            // the columns, and where it was put; 0 once it was moved
	level    closures.Grouping // of the bands that are compared
}

// heapSeen is what rows was made from.
type heapSeen struct {
	h      *Heap
	order  heapOrder
	filter screen.Pattern
	cursor int // where the order depends on it
	mark   int
}

type heapOrder uint8

const (
	byArea heapOrder = iota // byte-seconds: the order of the chart, from the bottom
	byCursor
	byGrowth
	byPeak
	heapOrders
)

func (o heapOrder) String() string {
	return [...]string{"byte-seconds", "size at the cursor", "growth", "peak"}[o]
}

func newScreen(c *screen.Context) screen.Screen {
	return &Screen{c: c, time: pane.NewTime(c), choice: part{}, chosen: firstMode(c), table: tableView{c: c}, level: firstLevel(c.Compared)}
}

// latest is the latest answer; nil until there is one.
func (s *Screen) latest() *Heap { return screen.Part[Heap](s.c) }

func (s *Screen) heap() *Heap {
	if h := s.latest(); h != nil && h.Series != nil {
		return h
	}
	return nil
}

// markColumn is the column of the mark; without one, the first of which the heap is known.
func (s *Screen) markColumn() int {
	if !s.marked {
		if h := s.heap(); h != nil {
			return h.First()
		}
		return 0
	}
	return max(0, min(s.c.Window.Column(s.mark), s.c.Window.Cols-1))
}

func (s *Screen) refresh() {
	h := s.heap()
	if w := &s.c.Window; h != nil && s.seen.h != h {
		s.toPeak(h, w)
	}
	now := heapSeen{h: h, order: s.order, filter: s.c.Filter}
	if s.order == byCursor || s.order == byGrowth {
		now.cursor, now.mark = s.c.Window.Cursor, s.markColumn()
	}
	if h == nil {
		s.list.N, s.rows, s.seen = 0, nil, heapSeen{} // the same answer may come back
		return
	}
	if now == s.seen {
		return
	}
	s.seen = now
	s.rows = s.rows[:0]
	for i, name := range h.Names {
		if s.c.Filter.Match(name) {
			s.rows = append(s.rows, i)
		}
	}
	if h.Series.Others > 0 && s.c.Filter.RE == nil {
		s.rows = append(s.rows, -1)
	}
	at := func(i int) int64 { return int64(valueAt(h.At(i), now.cursor)) }
	slices.SortStableFunc(s.rows, func(i, j int) int {
		switch s.order {
		case byCursor:
			return cmp.Compare(at(j), at(i))
		case byGrowth:
			return cmp.Compare(h.Growth(j, now.mark, now.cursor), h.Growth(i, now.mark, now.cursor))
		case byPeak:
			return cmp.Compare(peakOf(h.At(j)), peakOf(h.At(i)))
		}
		return 0
	})
	s.list.N = len(s.rows)
	for k, i := range s.rows {
		if s.name(h, i) == s.band {
			s.list.Set(k)
			return
		}
	}
	s.list.Set(s.list.Cursor)
	s.note()
}

// toPeak puts the cursor where the heap is largest, at first and as long as it is left there.
func (s *Screen) toPeak(h *Heap, w *screen.Window) {
	switch {
	case !s.begun && w.Cursor == 0:
	case s.onPeak[0] == 0 || s.onPeak[0] == w.Cols && s.onPeak[1] != w.Cursor:
		s.begun, s.onPeak = true, [2]int{}
		return
	}
	if at := slices.Index(h.Series.Total, h.Series.Peak); at >= 0 && at < w.Cols {
		w.Cursor = at
	}
	s.begun, s.onPeak = true, [2]int{w.Cols, w.Cursor}
}

func valueAt(v []uint64, c int) uint64 {
	if c < 0 || c >= len(v) {
		return 0
	}
	return v[c]
}

func peakOf(v []uint64) uint64 {
	if len(v) == 0 {
		return 0
	}
	return slices.Max(v)
}

func (s *Screen) name(h *Heap, row int) string {
	if row < 0 {
		return h.RestName()
	}
	return h.Names[row]
}

// row is the series' row under the cursor; false if there is none.
func (s *Screen) row() (int, bool) {
	if s.heap() == nil || s.list.Cursor >= len(s.rows) {
		return 0, false
	}
	return s.rows[s.list.Cursor], true
}

func (s *Screen) note() {
	if i, ok := s.row(); ok {
		s.band = s.name(s.heap(), i)
	}
}

// Why implements Screen.
func (s *Screen) Why(a keymap.Action) string {
	switch a {
	case keymap.Mode:
		return s.whyNoMode()
	case keymap.Invert:
		return "inverting turns the call tree; " + s.c.Key(screen.Stacks) + " shows it"
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Sandwich:
		return "the heap has no stacks to narrow; enter shows one band, [ ] a range"
	}
	if s.mode() != bandsMode {
		if a == keymap.Collapse {
			if before, after := compared(s.c.Compared); s.mode() == changesMode && divides(before) && divides(after) {
				return ""
			} else if s.mode() == changesMode {
				return "one of the logs has its heap by these bands alone"
			}
			return "bands alone are divided; M goes on to them"
		}
		return s.table.why(a)
	}
	if a == keymap.Collapse {
		if h := s.heap(); h == nil || !h.Divides {
			return "the log has its heap by these bands alone"
		}
		return ""
	}
	if h := s.heap(); h != nil && h.Single {
		switch a {
		case keymap.NextPane, keymap.PrevPane:
			return "j k move between bands: no pane to go to"
		case keymap.Left, keymap.Right, keymap.RangeFrom, keymap.RangeTo, keymap.Brush, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight,
			keymap.Bookmark, keymap.NextBookmark, keymap.Sort, keymap.Zoom:
			return "the log has one census, whose bands stand by size"
		}
	}
	switch a {
	case keymap.NextPane, keymap.PrevPane:
		return "h l move in time, j k between bands: no pane to go to"
	case keymap.Open:
		if s.choice.Band == 0 {
			switch i, ok := s.row(); {
			case !ok:
				return "no band is selected"
			case i < 0:
				return "this is several bands"
			case s.heap().Sized:
				return "the log has no heap profile: there are sizes alone"
			case s.opens() && s.heap().Bands[i].FileID == 0:
				return "where it is written is not known"
			}
		}
	case keymap.Brush:
		if s.heap() == nil {
			return "there is no heap to mark a moment of"
		}
	case keymap.Sort:
		if s.heap() == nil {
			return "there are no bands to sort"
		}
	}
	return s.time.Why(a)
}

// Do implements Screen.
func (s *Screen) Do(a keymap.Action) string {
	s.refresh()
	switch {
	case a == keymap.Mode:
		return s.nextMode()
	case a == keymap.Zoom:
		s.zoomed = !s.zoomed
		return ""
	case s.mode() == changesMode && a == keymap.Collapse:
		s.level = closures.Next(s.level)
		return "bands by " + s.level.What()
	case s.mode() != bandsMode:
		return s.table.do(a)
	}
	switch a {
	case keymap.Left, keymap.Right, keymap.RangeFrom, keymap.RangeTo, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight,
		keymap.Bookmark, keymap.NextBookmark:
		s.onPeak = [2]int{}
		return s.time.Do(a)
	case keymap.Brush:
		w := &s.c.Window
		if s.marked && s.markColumn() == w.Cursor {
			s.marked = false
			return "growth is measured from the first census on screen"
		}
		s.mark, s.marked = w.At(w.Cursor), true
		return "growth is measured from here; v on the mark takes it off"
	case keymap.Sort:
		s.order = (s.order + 1) % heapOrders
		return "sorted by " + s.order.String()
	case keymap.Collapse:
		s.choice = part{Profile: s.choice.Profile, Level: closures.Next(s.choice.Level)}
		return "bands by " + s.choice.Level.What()
	case keymap.Open:
		s.open()
	default:
		if screen.MoveList(&s.list, a) {
			s.note()
		}
	}
	return ""
}

// opens reports whether a band of now is the code of one place, which opening goes to.
func (s *Screen) opens() bool {
	return s.heap().Divides && (s.choice.Level == closures.BySpan || s.choice.Level == closures.ByBinding)
}

// open shows where the closures of a band are written, or goes to that; of bands that are not divided, shows one alone, or all.
func (s *Screen) open() {
	i, ok := s.row()
	switch h := s.heap(); {
	case s.choice.Band > 0:
		s.choice.Band = 0
	case !ok || i < 0:
	case !h.Divides:
		s.choice.Band = i + 1
	case s.opens():
		at := &h.Bands[i]
		s.c.File, s.c.Line, s.c.Goto = at.FileID, int(at.Span.Line), screen.Source
	default:
		s.choice.In, s.choice.Level = within{s.choice.Level, h.Names[i]}, closures.BySpan
	}
}

// Back implements Screen.
func (s *Screen) Back() bool {
	switch {
	case s.mode() == bandsMode && s.time.Back():
	case s.mode() != bandsMode && s.table.inSide:
		s.table.inSide = false
	case s.choice.Band > 0:
		s.choice.Band = 0
	case s.choice.In.title != "":
		s.choice.Level, s.band, s.choice.In = s.choice.In.level, s.choice.In.title, within{}
	case s.zoomed:
		s.zoomed = false
	default:
		return false
	}
	return true
}

// Mouse implements Screen.
func (s *Screen) Mouse(m screen.Mouse) {
	if s.mode() != bandsMode {
		s.table.mouse(s, m)
		return
	}
	if s.dragging && m.Kind != screen.Press {
		s.time.Mouse(m)
		s.dragging = m.Kind != screen.Release
		return
	}
	switch {
	case screen.Inside(s.chart, m):
		if m.Kind == screen.Release || m.Kind == screen.Drag {
			return
		}
		s.onPeak = [2]int{}
		s.time.Mouse(m)
		s.dragging = m.Kind == screen.Press && !m.Double
	case m.Kind != screen.Press || screen.Inside(s.inner, m):
		screen.MouseRows(s, &s.list, s.inner, m, s.note)
	}
}

// Find implements Screen.
func (s *Screen) Find(p *screen.Pattern, by int) bool {
	if s.mode() != bandsMode {
		return s.table.find(p, by)
	}
	s.refresh()
	h := s.heap()
	if p.RE == nil || h == nil {
		return false
	}
	return s.list.Find(by, func(i int) bool { return p.RE.MatchString(s.name(h, s.rows[i])) }, s.note)
}

// Subject implements Screen.
func (s *Screen) Subject() screen.Subject {
	if s.mode() != bandsMode {
		return s.table.subject()
	}
	out := screen.Subject{Key: model.NoKey}
	if i, ok := s.row(); ok {
		h := s.heap()
		at := valueAt(h.At(i), s.c.Window.Cursor)
		out.Row = strings.Join([]string{format.Bytes(at), format.Bytes(peakOf(h.At(i))), s.name(h, i)}, "\t")
	}
	return out
}

// Query implements Screen.
func (s *Screen) Query() model.Query {
	if m := s.mode(); m != bandsMode {
		part := tablePart{mode: m, compared: s.c.Compared}
		if m == changesMode {
			part.bands.level = s.level
		}
		return s.c.Query(part)
	}
	return s.c.QueryWindow(s.choice)
}

// Report implements Screen.
func (s *Screen) Report() (func(*profile.Selection) (printer.Report, error), error) {
	shown := bands{s.choice.Profile, s.choice.Level, s.choice.In}
	if s.mode() == changesMode {
		shown = bands{level: s.level}
	}
	r := tablePart{s.mode(), s.c.Compared, shown}.report(s.c.Profile)
	return func(*profile.Selection) (printer.Report, error) { return r, nil }, nil
}

func (s *Screen) title(h *Heap) (title, note string) {
	w := &s.c.Window
	if w.To > w.From {
		note = fmt.Sprintf("1 col = %s  cursor %s", format.Short(float64(w.To-w.From)/float64(max(1, w.Cols))), pane.Seconds(w.At(w.Cursor), w))
	}
	if h == nil {
		return "heap", note
	}
	title = "heap by " + h.What
	if h.Restriction != "" {
		title += ", only " + h.Restriction
	}
	if s.choice.Band > 0 && len(h.Names) == 1 {
		title += ": " + h.Names[0]
	}
	if s.choice.In.title != "" {
		title += ": " + s.choice.In.title
	}
	return title + fmt.Sprintf("   peak %s at %s", format.ShortBytes(h.Series.Peak), pane.Seconds(h.Series.PeakTime, w)), note
}

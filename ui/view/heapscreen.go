package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ccagent/internal/format"
	"ccagent/ui/chart"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/widget"
)

// HeapScreen is screen 5: what was live over time by bands, the heap's size, and
// the pauses for collections. Its time is the timeline's.
type HeapScreen struct {
	c      *Context
	time   *timelinePane // its window, cursor and range
	list   widget.List
	choice model.HeapChoice
	order  heapOrder
	mark   uint64 // time that growth is told from
	marked bool
	zoomed bool

	rows     []int // of the series, as listed; −1 is the rest
	seen     heapSeen
	band     string // under the cursor
	inner    widget.Rect
	chart    widget.Rect
	dragging bool
}

// heapSeen is what rows was made from.
type heapSeen struct {
	h      *model.Heap
	order  heapOrder
	filter Pattern
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

// NewHeapScreen gives screen 5 on a context.
func NewHeapScreen(c *Context) *HeapScreen {
	return &HeapScreen{c: c, time: newTimelinePane(c), choice: model.HeapChoice{On: true}}
}

// Owns implements Owner.
func (s *HeapScreen) Owns(a keymap.Action) bool { return a == keymap.Sort || a == keymap.Mode }

func (s *HeapScreen) heap() *model.Heap {
	if h := s.c.Data.Heap; h != nil && h.Series != nil {
		return h
	}
	return nil
}

// column is the column of the mark, or the first one.
func (s *HeapScreen) markColumn() int {
	if !s.marked {
		return 0
	}
	return max(0, min(s.c.Window.column(s.mark), s.c.Window.Cols-1))
}

func (s *HeapScreen) refresh() {
	h := s.heap()
	now := heapSeen{h: h, order: s.order, filter: s.c.Filter}
	if s.order == byCursor || s.order == byGrowth {
		now.cursor, now.mark = s.c.Window.Cursor, s.markColumn()
	}
	if h == nil || now == s.seen {
		if h == nil {
			s.list.N, s.rows = 0, nil
		}
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

func (s *HeapScreen) name(h *model.Heap, row int) string {
	if row < 0 {
		return h.RestName()
	}
	return h.Names[row]
}

// row is the series' row under the cursor; false if there is none.
func (s *HeapScreen) row() (int, bool) {
	if s.heap() == nil || s.list.Cursor >= len(s.rows) {
		return 0, false
	}
	return s.rows[s.list.Cursor], true
}

func (s *HeapScreen) note() {
	if i, ok := s.row(); ok {
		s.band = s.name(s.heap(), i)
	}
}

// Why implements Screen.
func (s *HeapScreen) Why(a keymap.Action) string {
	switch a {
	case keymap.NextPane, keymap.PrevPane:
		return "h l move in time, j k between bands: no pane to go to"
	case keymap.Invert:
		return "inverting turns the call tree; 3 shows it"
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		return "the heap has no stacks to narrow; enter shows one band, [ ] a range"
	case keymap.Open:
		if s.choice.Band == 0 {
			switch i, ok := s.row(); {
			case !ok:
				return "no band is selected"
			case i < 0:
				return "this is several bands"
			case s.heap().Sized:
				return "the log has no heap profile: there are sizes alone"
			}
		}
	case keymap.Mode:
		if d := s.c.Data.Heap; d == nil || d.Profiles < 2 {
			return "the log has no second heap profile"
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
	return s.time.why(a)
}

// Do implements Screen.
func (s *HeapScreen) Do(a keymap.Action) string {
	s.refresh()
	switch a {
	case keymap.Left, keymap.Right, keymap.RangeFrom, keymap.RangeTo, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit, keymap.PanLeft, keymap.PanRight:
		return s.time.do(a)
	case keymap.Brush:
		w := &s.c.Window
		if s.marked && s.markColumn() == w.Cursor {
			s.marked = false
			return "growth is told from the left edge"
		}
		s.mark, s.marked = w.at(w.Cursor), true
		return "growth is told from here; v on the mark takes it off"
	case keymap.Sort:
		s.order = (s.order + 1) % heapOrders
		return "sorted by " + s.order.String()
	case keymap.Mode:
		s.choice.Profile = (s.choice.Profile + 1) % s.c.Data.Heap.Profiles
		s.choice.Band = 0
	case keymap.Zoom:
		s.zoomed = !s.zoomed
	case keymap.Open:
		if s.choice.Band > 0 {
			s.choice.Band = 0
		} else if i, ok := s.row(); ok && i >= 0 {
			s.choice.Band = i + 1
		}
	default:
		if moveList(&s.list, a) {
			s.note()
		}
	}
	return ""
}

// Back implements Screen.
func (s *HeapScreen) Back() bool {
	switch {
	case s.time.back():
	case s.choice.Band > 0:
		s.choice.Band = 0
	case s.zoomed:
		s.zoomed = false
	default:
		return false
	}
	return true
}

// Mouse implements Screen.
func (s *HeapScreen) Mouse(m Mouse) string {
	if s.dragging && m.Kind != Press {
		s.time.mouse(m)
		s.dragging = m.Kind != Release
		return ""
	}
	switch {
	case inside(s.chart, m):
		if m.Kind == Release || m.Kind == Drag {
			return ""
		}
		s.time.mouse(m)
		s.dragging = m.Kind == Press && !m.Double
	case m.Kind != Press || inside(s.inner, m):
		pressed := mouseList(&s.list, s.inner, m)
		s.note()
		if pressed && m.Double && s.Why(keymap.Open) == "" {
			return s.Do(keymap.Open)
		}
	}
	return ""
}

// Find implements Screen.
func (s *HeapScreen) Find(p *Pattern, by int) bool {
	s.refresh()
	h := s.heap()
	if p.RE == nil || h == nil {
		return false
	}
	return s.list.Find(by, func(i int) bool { return p.RE.MatchString(s.name(h, s.rows[i])) }, s.note)
}

// Subject implements Screen.
func (s *HeapScreen) Subject() Subject {
	out := Subject{Key: model.NoKey}
	if i, ok := s.row(); ok {
		h := s.heap()
		at := valueAt(h.At(i), s.c.Window.Cursor)
		out.Row = strings.Join([]string{format.Bytes(at), format.Bytes(peakOf(h.At(i))), s.name(h, i)}, "\t")
	}
	return out
}

// Needs implements Screen.
func (s *HeapScreen) Needs(n *model.Need) { n.Heap = s.choice }

func (s *HeapScreen) title(h *model.Heap) (title, note string) {
	w := &s.c.Window
	if w.To > w.From {
		note = fmt.Sprintf("1 col = %s  cursor %s", format.Short(float64(w.To-w.From)/float64(max(1, w.Cols))), seconds(w.at(w.Cursor), w))
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
	return title + fmt.Sprintf("   peak %s at %s", chart.Axis(h.Series.Peak), seconds(h.Series.PeakTime, w)), note
}

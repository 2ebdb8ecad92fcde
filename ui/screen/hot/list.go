package hot

import (
	"fmt"
	"slices"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/reasons"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// hotPane is the list of elements by share, a tree of files and bindings.
type hotPane struct {
	c      *screen.Context
	list   widget.List
	closed map[model.Key]bool
	flat   bool            // functions in one list, not by file
	opened map[uint64]bool // of the flat list: rows with the same samples that are listed one by one
	alike  map[int]int     // of the flat list: how many rows stand behind one, by row
	rows   []int           // of c.Data.Hot.Rows, as listed
	seen   hotSeen
	last   model.Row // the row that was selected last
	inner  widget.Rect
	most   float64 // the longest bar, as a share
}

func newHotPane(c *screen.Context) *hotPane {
	return &hotPane{c: c, closed: make(map[model.Key]bool), opened: make(map[uint64]bool)}
}

// restore puts the cursor back on the selected element, or on the nearest row
// that is left of it.
func (h *hotPane) restore() {
	rows := h.c.Data.Hot.Rows
	for i, r := range h.rows {
		if rows[r].Key == h.c.Selected {
			h.list.Set(i)
			return
		}
	}
	if h.c.Selected == model.NoKey {
		h.list.Set(h.first())
	}
	// A collapsed element is now part of its module's or package's row.
	for i, r := range h.rows {
		if row := &rows[r]; row.Collapsed && row.Package == h.last.Package && (row.Module == "" || row.Module == h.last.Module) {
			h.list.Set(i)
			break
		}
	}
	h.list.Set(h.list.Cursor)
	h.selectRow()
}

// first is the row that is selected at the start: where the sentence above is about code without source, what explains
// it; else the hottest binding of the hottest file or
// module near the list's top. One with source is preferred unless one without is much hotter.
func (h *hotPane) first() int {
	rows := h.c.Data.Hot.Rows
	if said := h.c.Data.Sentence; said != nil && reasons.Explains(said.Element) {
		if i := slices.IndexFunc(h.rows, func(r int) bool { return rows[r].Category && rows[r].Name == said.Element }); i >= 0 {
			return i
		}
	}
	const (
		much = 4
		near = 11 // rows: what the smallest whole screen shows
	)
	best, sourced := -1, -1
	hotter := func(i, than int) bool {
		if than < 0 {
			return true
		}
		a, b := &rows[h.rows[i]], &rows[h.rows[than]]
		if x, y := rows[a.Parent].Share, rows[b.Parent].Share; !h.flat && a.Parent != b.Parent && x != y {
			return x > y
		}
		return a.Share > b.Share
	}
	for i, r := range h.rows {
		if rows[r].Parent < 0 || rows[r].Category {
			continue
		}
		if i >= near && best >= 0 {
			break
		}
		if hotter(i, best) {
			best = i
		}
		if rows[r].File != 0 && hotter(i, sourced) {
			sourced = i
		}
	}
	group := func(i int) float64 { return rows[rows[h.rows[i]].Parent].Share }
	if sourced >= 0 && group(sourced)*much >= group(best) {
		return sourced
	}
	return max(best, 0)
}

// selectRow makes the row under the cursor the selection of all screens.
func (h *hotPane) selectRow() {
	r := h.row()
	if r == nil {
		h.c.Selected = model.NoKey
		return
	}
	if r.Key == h.c.Selected {
		return
	}
	h.c.Selected, h.last = r.Key, *r
	switch {
	case r.File != 0:
		h.c.File, h.c.Line = r.File, r.Line
	case r.Collapsed: // keep the source that was shown
	default:
		h.c.File, h.c.Line = 0, 0
	}
}

func (h *hotPane) row() *model.Row {
	if h.c.Data.Hot == nil || h.list.Cursor >= len(h.rows) {
		return nil
	}
	return &h.c.Data.Hot.Rows[h.rows[h.list.Cursor]]
}

func (h *hotPane) why(a keymap.Action) string {
	if len(h.rows) == 0 {
		switch a {
		case keymap.Open, keymap.Left, keymap.Right:
			return "the list is empty"
		}
	}
	return ""
}

func (h *hotPane) do(a keymap.Action) string {
	h.refresh()
	if screen.MoveList(&h.list, a) {
		h.selectRow()
		return ""
	}
	r := h.row()
	if r == nil {
		return ""
	}
	if h.flat {
		switch a {
		case keymap.Left:
			delete(h.opened, r.Alike)
		case keymap.Right:
			h.opened[r.Alike] = true
		}
		return ""
	}
	switch a {
	case keymap.Left:
		if r.Kids > 0 && !h.closed[r.Key] {
			h.closed[r.Key] = true
			break
		}
		if r.Parent >= 0 {
			if i := slices.Index(h.rows, r.Parent); i >= 0 {
				h.list.Set(i)
				h.selectRow()
			}
		}
	case keymap.Right:
		if r.Kids > 0 {
			if h.closed[r.Key] {
				delete(h.closed, r.Key)
			} else {
				h.list.Move(1)
				h.selectRow()
			}
		}
	}
	return ""
}

func (h *hotPane) mouse(m screen.Mouse) (open bool) {
	at := h.list.Cursor
	pressed := screen.MouseList(&h.list, h.inner, m)
	if pressed || h.list.Cursor != at {
		h.selectRow()
	}
	return pressed && m.Double
}

func (h *hotPane) find(p *screen.Pattern, by int) bool {
	h.refresh()
	if p.RE == nil || len(h.rows) == 0 {
		return false
	}
	return h.list.Find(by, func(i int) bool { return called(p.RE, &h.c.Data.Hot.Rows[h.rows[i]]) }, h.selectRow)
}

func (h *hotPane) subject() screen.Subject {
	r := h.row()
	if r == nil {
		return screen.Subject{Key: model.NoKey}
	}
	s := screen.Subject{Name: r.Full, Key: r.Key, Path: r.Path, Line: r.Line, Module: r.Module, Package: r.Package, Symbol: r.Symbol}
	switch {
	case r.Collapsed && r.Module == "":
		s.Level = profile.LevelPackage
	case r.Collapsed, r.Key.Level == profile.LevelModule:
		s.Level = profile.LevelModule
	case r.Key.Level == profile.LevelBinding && !r.Category:
		s.Function = true
	}
	s.Row = fmt.Sprintf("%s\t%s\t%s", format.Share(r.Share*h.c.Base), format.Share(r.Only*h.c.Base), r.Full)
	return s
}

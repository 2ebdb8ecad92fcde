package hot

import (
	"fmt"
	"strings"

	"ccagent/internal/format"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// The widths of the columns; the name gets the rest.
const (
	shareWidth = 7 // "100.0% "
	sureWidth  = 6 // "≈±0.1 "
	markWidth  = 2
)

// draw draws the pane's box and what is in it.
func (h *hotPane) draw(p *widget.Painter, r widget.Rect, focus bool) {
	h.refresh()
	p.Box(r, h.title(), h.c.Narrowed(), focus)
	in := r.Inset(1)
	if in.Empty() {
		return
	}
	rows := in
	cols := h.columns(in.Dx())
	if in.Dy() >= 8 {
		x := in.Min.X + 1
		x = p.Text(x, in.Min.Y, in.Max.X, screen.Pad(" share", shareWidth), p.Theme.Dim)
		if cols.sure {
			x = p.Text(x, in.Min.Y, in.Max.X, screen.Pad(" ±95%", sureWidth), p.Theme.Dim)
		}
		if cols.only {
			x = p.Text(x, in.Min.Y, in.Max.X, screen.Pad(h.second(), shareWidth), p.Theme.Dim)
		}
		if cols.incl {
			x = p.Text(x, in.Min.Y, in.Max.X, screen.Pad(h.third(), shareWidth), p.Theme.Dim)
		}
		if cols.weight {
			p.Right(x, x+screen.WeightWidth-1, in.Min.Y, h.c.WeightHead(), p.Theme.Dim)
			x += screen.WeightWidth
		}
		if cols.bar > 0 {
			solid, all := h.barHead()
			x = screen.BarHead(p, x, in.Min.Y, cols.bar, solid, all)
		}
		if cols.overlap {
			x = p.Text(x, in.Min.Y, in.Max.X, screen.Pad("  =sel", shareWidth), p.Theme.Dim)
		} else {
			x += markWidth
		}
		p.Text(x, in.Min.Y, in.Max.X, "element", p.Theme.Dim)
		rows.Min.Y++
		rows.Max.Y -= h.explain(p, in)
	}
	h.inner = rows
	h.most = h.largest()
	if len(h.rows) == 0 {
		h.drawEmpty(p, rows)
		return
	}
	h.list.Draw(rows, func(i, y int) { h.drawRow(p, rows, cols, i, y, focus) })
}

// title says what the list is ordered by, and first of all if it rests on a handful of
// samples.
func (h *hotPane) title() string {
	if h.flat {
		return h.c.Few("functions  by " + h.c.Sort.String())
	}
	return h.c.Few("hot  by " + h.c.Sort.String())
}

// second is the heading of the second column, which follows the order.
func (h *hotPane) second() string {
	if h.c.Sort == screen.ByInclusive {
		return " incl."
	}
	return "  only"
}

// third is the heading of the third column, which the second left out.
func (h *hotPane) third() string {
	if h.c.Sort == screen.ByInclusive {
		return "  only"
	}
	return " incl."
}

// barHead names a bar's solid part and the rest of it.
func (h *hotPane) barHead() (solid, all string) {
	switch h.c.Sort {
	case screen.ByOnly:
		return "only", ""
	case screen.ByInclusive:
		return "share", "incl."
	}
	return "only", "shared"
}

// barOf is the solid part of a row's bar and all of it: of the figure that rows are ordered by.
func (h *hotPane) barOf(r *model.Row) (solid, all float64) {
	switch h.c.Sort {
	case screen.ByOnly:
		return r.Only, r.Only
	case screen.ByInclusive:
		return r.Share, r.Inclusive
	}
	return r.Only, r.Share
}

// largest is the longest bar of all rows, which fills its column.
func (h *hotPane) largest() float64 {
	most := 0.0
	for _, i := range h.rows {
		_, all := h.barOf(&h.c.Data.Hot.Rows[i])
		most = max(most, all)
	}
	return max(most, 1e-12)
}

type hotColumns struct {
	only, incl, overlap, sure, weight bool
	bar                               int
}

// columns chooses the columns that fit into a width; names have priority, then how sure a
// share is.
func (h *hotPane) columns(w int) hotColumns {
	var c hotColumns
	name := 16
	switch {
	case w >= 50:
		name = 24
	case w >= 44:
		name = 20
	}
	left := w - 1 - shareWidth - markWidth - name
	if left >= sureWidth {
		c.sure = true
		left -= sureWidth
	}
	if left >= shareWidth {
		c.only = true
		left -= shareWidth
	}
	if left >= screen.WeightWidth+5 {
		c.weight = true
		left -= screen.WeightWidth
	}
	if left >= shareWidth-markWidth+5 {
		c.overlap = true
		left -= shareWidth - markWidth
	}
	if left >= shareWidth+10 {
		c.incl = true
		left -= shareWidth
	}
	if left >= 5 {
		c.bar = min(18, left-1)
	}
	return c
}

func (h *hotPane) drawRow(p *widget.Painter, in widget.Rect, cols hotColumns, i, y int, focus bool) {
	r := &h.c.Data.Hot.Rows[h.rows[i]]
	t := p.Theme
	shares := h.c.Data.Overlap[r.Key]
	selected := i == h.list.Cursor
	x := in.Min.X
	if selected {
		p.Text(x, y, in.Max.X, p.Glyphs.Pointer, t.Strong)
	}
	x++
	st := t.Text
	if l := theme.HeatLevel(r.Share * h.c.Base); l > 0 {
		st = t.Heat[l-1]
	}
	p.Right(x, x+6, y, format.Share(r.Share*h.c.Base), st)
	x += shareWidth
	if cols.sure {
		h.drawSure(p, x, y, r)
		x += sureWidth
	}
	if cols.only {
		v := r.Only
		if h.c.Sort == screen.ByInclusive {
			v = r.Inclusive
		}
		p.Right(x, x+6, y, format.Share(v*h.c.Base), t.Text)
		x += shareWidth
	}
	if cols.incl {
		v := r.Inclusive
		if h.c.Sort == screen.ByInclusive {
			v = r.Only
		}
		p.Right(x, x+6, y, format.Share(v*h.c.Base), t.Text)
		x += shareWidth
	}
	if cols.weight {
		p.Right(x, x+screen.WeightWidth-1, y, h.c.Weight(r.Share), t.Text)
		x += screen.WeightWidth
	}
	if cols.bar > 0 {
		solid, all := h.barOf(r)
		p.Bar(x, y, cols.bar, solid/h.most, all/h.most)
		x += cols.bar + 1
	}
	overlapping := shares > 0 && !selected && r.Key != h.c.Selected
	if cols.overlap {
		if overlapping {
			p.Right(x, x+6, y, p.Glyphs.Shares+format.Share(shares*h.c.Base), t.Link)
		}
		x += shareWidth
	} else {
		if overlapping {
			p.Cell(x, y, p.Glyphs.Shares, t.Link)
		}
		x += markWidth
	}
	h.drawName(p, in, x, y, h.rows[i])
	line := widget.Rect{Min: in.Min, Max: in.Max}
	line.Min.Y, line.Max.Y = y, y+1
	switch {
	case selected && focus:
		p.Tint(line, t.Selected)
	case selected:
		p.Tint(line, t.SelectedIdle)
	}
}

// drawSure draws a share's interval, and a mark if the order after the row above is within
// noise.
func (h *hotPane) drawSure(p *widget.Painter, x, y int, r *model.Row) {
	if r.Tied && h.c.Sort == screen.ByShare {
		p.Cell(x-1, y, p.Glyphs.Tied, p.Theme.Dim)
	}
	p.Right(x, x+sureWidth-1, y, format.PlusMinus(r.Share, r.PlusMinus*h.c.Base), p.Theme.Dim)
}

// drawName draws the name of row i of the data.
func (h *hotPane) drawName(p *widget.Painter, in widget.Rect, x, y, i int) {
	r := &h.c.Data.Hot.Rows[i]
	t := p.Theme
	switch {
	case h.flat:
		mark := "  "
		if h.alike[i] > 0 {
			mark = p.Glyphs.Closed + " "
			if h.opened[r.Alike] {
				mark = p.Glyphs.Open + " "
			}
		}
		x = p.Text(x, y, in.Max.X, mark, t.Dim)
	case r.Kids > 0:
		g := p.Glyphs.Open
		if h.closed[r.Key] {
			g = p.Glyphs.Closed
		}
		x = p.Text(x, y, in.Max.X, g+" ", t.Dim)
	case r.Parent >= 0:
		x = p.Text(x, y, in.Max.X, p.Glyphs.Guide+" ", t.Dim)
	default:
		x = p.Text(x, y, in.Max.X, "  ", t.Dim)
	}
	st := t.Text
	switch {
	case r.Category:
		st = t.Dim
	case r.Parent < 0:
		st = t.Strong
	}
	if h.c.Search.RE != nil && called(h.c.Search.RE, r) {
		st = t.Match
	}
	line := ""
	if r.Line > 0 && r.Parent >= 0 {
		line = fmt.Sprintf(":%d", r.Line)
	}
	limit := in.Max.X
	if x+p.Width(r.Name)+len(line) > limit {
		line = ""
	}
	name := r.Name
	if h.flat {
		name = r.Full
	}
	if h.c.Raw && r.Symbol != "" {
		name = r.Symbol
	}
	behind := ""
	if n := h.alike[i]; h.flat && n > 0 && !h.opened[r.Alike] && limit-x >= 26 {
		behind = fmt.Sprintf("  +%d with the same samples", n)
		if limit-x < 50 {
			behind = fmt.Sprintf(" +%d alike", n)
		}
		limit, line = limit-len(behind), ""
	}
	if r.Parent < 0 && r.Path != "" {
		name = screen.Tail(p, name, limit-x)
	}
	x = p.Name(x, y, limit, name, st)
	if behind != "" {
		p.Text(x, y, in.Max.X, behind, t.Link)
		return
	}
	if pkg := "  " + r.Package; r.Parent < 0 && r.Path == "" && r.Package != "" && r.Package != "main" && x+p.Width(pkg) <= limit {
		line = pkg
	}
	if r.Category && r.Full == screen.Unresolved {
		line = h.c.Pending()
	}
	if x+p.Width(line) > limit && strings.HasSuffix(line, screen.NotYet) {
		line = screen.NotYet
	}
	p.Text(x, y, limit, line, t.Dim)
}

// explain draws the two lines at the pane's foot and returns their number.
func (h *hotPane) explain(p *widget.Painter, in widget.Rect) int {
	if h.c.Data.Hot != nil && len(h.c.Data.Hot.Rows) == 0 {
		return 0
	}
	t := p.Theme
	y := in.Max.Y - 2
	p.Text(in.Min.X+1, y, in.Max.X, p.Glyphs.Shares+" shares samples with the selection", t.Dim)
	if h.c.Data.Hot == nil {
		return 2
	}
	sum := h.c.Data.Hot.LeafSum
	long := fmt.Sprintf("shares sum to %.0f%%: a sample counts for every cause; each counted once = 100%%", 100*sum)
	middle := fmt.Sprintf("shares sum to %.0f%%: a sample counts for each cause", 100*sum)
	short := fmt.Sprintf("shares sum to %.0f%%: causes overlap", 100*sum)
	if sum <= 1.005 {
		long = "shares sum to 100%: nothing overlaps"
		middle, short = long, long
	}
	for _, shorter := range []string{middle, short} {
		if p.Width(long) > in.Dx()-1 {
			long = shorter
		}
	}
	p.Text(in.Min.X+1, y+1, in.Max.X, long, t.Dim)
	return 2
}

func (h *hotPane) drawEmpty(p *widget.Painter, in widget.Rect) {
	lines := h.c.Emptied("element")
	switch s := h.c.Data.Summary; {
	case s == nil:
		lines = screen.Computing(p)
	case s.Event == "":
		lines = []string{"a log without samples; " + h.c.Key(screen.Heap) + " shows heap and collections, the timeline what ran"}
		if len(h.c.Profile.Dumps) > 0 {
			lines = []string{"a log without samples; " + h.c.Key(screen.Dump) + " shows the thread dump"}
		}
	case s.Samples == 0:
		lines = []string{"no samples of " + s.Title, "t shows the next event; ccview info says what was recorded"}
	case lines == nil:
		lines = []string{"nothing to list"}
	}
	screen.DrawInstead(p, in, lines)
}

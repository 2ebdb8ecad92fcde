package hot

import (
	"regexp"
	"slices"
	"strings"

	"ccagent/ui/model"
	"ccagent/ui/screen"
)

// hotSeen is what the rows were made from.
type hotSeen struct {
	hot     *model.Hot
	sort    screen.Sort
	minimum float64
	filter  screen.Pattern
	closed  int
	flat    bool
	opened  int
	base    float64
}

// refresh makes rows anew if anything they depend on changed, and keeps the
// cursor on its element.
func (h *hotPane) refresh() {
	c := h.c
	now := hotSeen{c.Data.Hot, c.Sort, c.Minimum, c.Filter, len(h.closed), h.flat, len(h.opened), c.Base}
	if now == h.seen || c.Data.Hot == nil {
		return
	}
	h.seen = now
	rows := c.Data.Hot.Rows
	wanted := make([]bool, len(rows))
	for i := len(rows) - 1; i >= 0; i-- { // children come after their parents
		r := &rows[i]
		// Elements that are only callers are left out of orders by leaf samples.
		seen := r.Share > 0 || c.Sort == screen.ByInclusive || c.Sort == screen.ByName
		if seen && r.Share*c.Base >= c.Minimum && (c.Filter.RE == nil || called(c.Filter.RE, r) != c.Filter.Invert) {
			wanted[i] = true
		}
		if r.Parent >= 0 && wanted[i] {
			wanted[r.Parent] = true
		}
	}
	if h.flat {
		h.list.N = h.flatten(wanted)
		h.restore()
		return
	}
	children := make([][]int, len(rows)+1)
	for i := range rows {
		if wanted[i] {
			children[rows[i].Parent+1] = append(children[rows[i].Parent+1], i)
		}
	}
	h.rows = h.rows[:0]
	var add func(of int)
	add = func(of int) {
		slices.SortStableFunc(children[of], func(a, b int) int { return h.order(&rows[a], &rows[b]) })
		for _, i := range children[of] {
			h.rows = append(h.rows, i)
			if !h.closed[rows[i].Key] && rows[i].Kids > 0 {
				add(i + 1)
			}
		}
	}
	add(0)
	h.list.N = len(h.rows)
	h.restore()
}

// flatten lists the functions that are wanted, and what has no source, in one list, and returns
// its length. Of rows with the same samples the first stands for all, until they are opened.
func (h *hotPane) flatten(wanted []bool) int {
	rows := h.c.Data.Hot.Rows
	h.rows, h.alike = h.rows[:0], make(map[int]int)
	for i := range rows {
		if wanted[i] && rows[i].Kids == 0 {
			h.rows = append(h.rows, i)
		}
	}
	slices.SortStableFunc(h.rows, func(a, b int) int { return h.order(&rows[a], &rows[b]) })
	first := make(map[uint64]int)
	h.rows = slices.DeleteFunc(h.rows, func(i int) bool {
		r := &rows[i]
		at, again := first[r.Alike]
		switch {
		case r.Alike == 0 || h.c.Sort == screen.ByInclusive:
			return false // callers with the same samples are no one function
		case !again:
			first[r.Alike] = i
			return false
		}
		h.alike[at]++
		return !h.opened[r.Alike]
	})
	return len(h.rows)
}

// called reports whether one of a row's names matches.
func called(re *regexp.Regexp, r *model.Row) bool {
	return re.MatchString(r.Full) || r.Kids > 0 && re.MatchString(r.Name)
}

func (h *hotPane) order(a, b *model.Row) int {
	num := func(x, y float64) int {
		switch {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	}
	o := 0
	switch h.c.Sort {
	case screen.ByOnly:
		o = num(a.Only, b.Only)
	case screen.ByInclusive:
		o = num(a.Inclusive, b.Inclusive)
	case screen.ByName:
	default:
		o = num(a.Share, b.Share)
	}
	if o == 0 {
		o = strings.Compare(a.Full, b.Full)
	}
	return o
}

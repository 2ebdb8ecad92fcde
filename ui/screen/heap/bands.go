package heap

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/columns"
	"ccagent/profile/diagnosis"
	"ccagent/ui/printer"
)

// BandChanges compares the largest censuses of two logs, band by band.
type BandChanges struct {
	A, B         *profile.Profile
	NameA, NameB string
	Level        closures.Grouping
}

// bandChange is a band of either log. Bands of one title are one.
type bandChange struct {
	title         string
	at            columns.HeapBand // of B, if it has the band
	before, after uint64           // bytes
	number        int64            // of closures that came; counted if both logs know it
	margin        uint64           // of the difference, at 95 %
	counted       bool
}

func (c *bandChange) bytes() int64 { return int64(c.after) - int64(c.before) }

// sides are the two heap profiles; why says what is missing.
func (r BandChanges) sides() (a, b *columns.HeapProfile, why string) {
	if a, why = (Report{Profile: r.A, Level: r.Level}).profile(); a == nil || len(a.Censuses) == 0 {
		return nil, nil, "A: " + cmp.Or(why, diagnosis.NoHeap(r.A), "it has no census of the heap.")
	}
	if b, why = (Report{Profile: r.B, Level: r.Level}).profile(); b == nil || len(b.Censuses) == 0 {
		return nil, nil, "B: " + cmp.Or(why, diagnosis.NoHeap(r.B), "it has no census of the heap.")
	}
	if a.What() != b.What() {
		return nil, nil, fmt.Sprintf("A is divided by %s, B by %s: they have no bands in common.", a.What(), b.What())
	}
	return a, b, ""
}

// largest is the index of a profile's largest census.
func largest(h *columns.HeapProfile) int {
	at := 0
	for i := range h.Censuses {
		if h.Censuses[i].Total > h.Censuses[at].Total {
			at = i
		}
	}
	return at
}

// several says that the logs have more censuses than are compared; empty if they have not.
func several(a, b *columns.HeapProfile) string {
	if len(a.Censuses) > 1 || len(b.Censuses) > 1 {
		return "Of several censuses the largest is compared"
	}
	return ""
}

// of returns the bands that differ, the largest difference first.
func (r BandChanges) of(a, b *columns.HeapProfile) []bandChange {
	at := map[string]int{}
	var all []bandChange
	for side, h := range []*columns.HeapProfile{a, b} {
		census := largest(h)
		ids := make([]int, len(h.Bands))
		for i := range h.Bands {
			title := h.Bands[i].Title()
			id, known := at[title]
			if !known {
				id = len(all)
				at[title], all = id, append(all, bandChange{title: title})
			}
			if ids[i] = id; side == 1 {
				all[id].at = h.Bands[i]
			}
		}
		h.Each(census, func(band int, bytes uint64) {
			c := &all[ids[band]]
			to := []*uint64{&c.before, &c.after}[side]
			*to = columns.SatAdd(*to, bytes)
		})
		sign := []int64{-1, 1}[side]
		h.EachNumber(census, func(band int, n uint64) { all[ids[band]].number += sign * int64(n) })
		for band, margin := range h.Margins(census) {
			all[ids[band]].margin += margin // bands of one census are not independent, and the sum is no less than what is true
		}
	}
	counted := a.Censuses[largest(a)].How != nil && b.Censuses[largest(b)].How != nil
	var out []bandChange
	for _, c := range all {
		if c.counted = counted; c.before != c.after {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(x, y bandChange) int {
		return cmp.Or(cmp.Compare(max(y.bytes(), -y.bytes()), max(x.bytes(), -x.bytes())), cmp.Compare(x.title, y.title))
	})
	return out
}

// Text implements printer.Report.
func (r BandChanges) Text(w io.Writer, o printer.Options) error {
	p := newOut(w, o)
	a, b, why := r.sides()
	if why != "" {
		p.Note("%s", why)
		return p.Flush()
	}
	before, after := &a.Censuses[largest(a)], &b.Censuses[largest(b)]
	p.Wrap(p.Bold, "   ", "A "+printer.Fit(r.NameA, 40), "B "+printer.Fit(r.NameB, 40), "heap by "+a.What(),
		fmt.Sprintf("%s → %s  %s", format.Bytes(before.Total), format.Bytes(after.Total), format.Signed(int64(after.Total)-int64(before.Total))))
	rows := r.of(a, b)
	if len(rows) == 0 {
		p.Note("No band differs.")
		return p.Flush()
	}
	p.Line("")
	p.Line(p.Bold("            A             B   difference     closures  band"))
	n := o.Rows(len(rows), footprintRows)
	for i := range rows[:n] {
		c := &rows[i]
		number := "-"
		if c.counted {
			number = signedCount(c.number)
		}
		p.Line(printer.PadLeft(format.Bytes(c.before), 13), printer.PadLeft(format.Bytes(c.after), 14), printer.PadLeft(format.Signed(c.bytes()), 13), printer.PadLeft(number, 13), "  ", printer.Fit(c.title, p.room(55)))
		if c.margin > 0 {
			p.Line(printer.PadLeft("±"+format.Bytes(c.margin), 40))
		}
	}
	if rest := len(rows) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "band"))))
	}
	if note := several(a, b); note != "" {
		p.Note("%s.", note)
	}
	return p.Flush()
}

type bandChangesJSON struct {
	Problem   *string          `json:"problem"`
	Breakdown string           `json:"breakdown"`
	Before    uint64           `json:"from_bytes"`
	After     uint64           `json:"to_bytes"`
	Growth    int64            `json:"growth_bytes"`
	Bands     []bandChangeJSON `json:"bands"`
}

type bandChangeJSON struct {
	Band     string  `json:"band"`
	Before   uint64  `json:"from_bytes"`
	After    uint64  `json:"to_bytes"`
	Growth   int64   `json:"growth_bytes"`
	Margin   *uint64 `json:"margin_bytes"`
	Closures *int64  `json:"growth_closures"`
}

// JSON implements printer.Report.
func (r BandChanges) JSON(w io.Writer, _ printer.Options) error {
	doc := bandChangesJSON{Bands: []bandChangeJSON{}}
	a, b, why := r.sides()
	if why != "" {
		doc.Problem = &why
		return printer.JSON(w, doc)
	}
	doc.Breakdown, doc.Before, doc.After = a.What(), a.Censuses[largest(a)].Total, b.Censuses[largest(b)].Total
	doc.Growth = int64(doc.After) - int64(doc.Before)
	for _, c := range r.of(a, b) {
		doc.Bands = append(doc.Bands, bandChangeJSON{c.title, c.before, c.after, c.bytes(), printer.If(c.margin > 0, c.margin), printer.If(c.counted, c.number)})
	}
	return printer.JSON(w, doc)
}

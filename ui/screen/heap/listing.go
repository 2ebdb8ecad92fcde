package heap

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/columns"
	"ccagent/profile/footprint"
	"ccagent/ui/printer"
)

// listing is a table of one census, or of two: rows of figures with names, a tree if they have depths.
type listing struct {
	mode    mode
	sum     string   // what it is of
	words   string   // what it says first, in a sentence
	notes   []string // what is to be known of the figures
	figures []string // the headings of figures
	widths  []int    // of figures
	heading string   // of names
	rows    []tableRow
	segment bool // rows are parts of a whole, which a bar shows
	about   string
	// more is what stands beside the list about a row.
	more func(row int) []string
}

// tableRow is a row of a listing.
type tableRow struct {
	figures []string
	share   float64 // of the largest row: its bar's length, and its heat
	heat    float64
	depth   int
	kids    bool
	name    string
	at      closures.Row // where it is written; zero if that is not known
}

// measure finds the widths of the figures.
func (l *listing) measure() *listing {
	for n, head := range l.figures {
		width := len(head)
		for i := range l.rows {
			width = max(width, utf8.RuneCountInString(l.rows[i].figures[n]))
		}
		l.widths = append(l.widths, width+2)
	}
	return l
}

// openShare is the part of all bytes from which on a branch is open at first.
const openShare = 0.05

// memoryListing is where the memory of a process is.
func memoryListing(p *profile.Profile) *listing {
	f := lastFootprint(p)
	a := footprint.Of(f, p.LastGraph())
	l := &listing{
		mode: memoryMode, words: a.Advice.Text, notes: footprintNotes(f), figures: []string{"bytes", "share"}, heading: "what it is for", segment: true,
		sum: fmt.Sprintf("RSS %s, accounted for %s", format.Bytes(f.Resident), format.Bytes(a.Accounted)), about: "megablocks held, stacks, files",
	}
	if f.Swapped > 0 {
		l.notes = append(l.notes, "besides, "+format.Bytes(f.Swapped)+" are in swap")
	}
	most := uint64(1)
	for _, x := range a.Rows {
		most = max(most, x.Bytes)
	}
	add := func(bytes uint64, what string) {
		share := format.Ratio(bytes, f.Resident)
		l.rows = append(l.rows, tableRow{figures: []string{format.Bytes(bytes), format.Percent(share)}, share: float64(bytes) / float64(most), heat: share, name: what})
	}
	for _, x := range a.Rows {
		add(x.Bytes, x.Title)
	}
	switch {
	case a.Difference > 0:
		add(uint64(a.Difference), "not accounted for")
	case a.Difference < 0:
		l.notes = append(l.notes, format.Bytes(uint64(-a.Difference))+" more than the kernel counts")
	}
	if f.StackBytes+f.Slop > 0 {
		l.notes = append(l.notes, fmt.Sprintf("small objects include %s of stacks, and %s left behind by closures that have shrunk (slop)", format.Bytes(f.StackBytes), format.Bytes(f.Slop)))
	}
	var more []string
	if len(f.Pins) > 0 {
		more = append(more, "what holds megablocks that have free blocks, "+format.Count(f.Partly)+":")
		for i := range f.Pins[:min(len(f.Pins), footprintRows)] {
			x := &f.Pins[i]
			more = append(more, fmt.Sprintf("  %s free in %s, by %s of %s", format.Bytes(x.Free), format.Count(x.Megablocks), format.Bytes(x.Held), footprint.Pin(x)))
		}
	}
	if len(f.Stacks) > 0 {
		more = append(more, "", "the largest stacks of "+format.Plural(f.Threads, "thread")+":")
		for i := range f.Stacks[:min(len(f.Stacks), footprintRows)] {
			more = append(more, "  "+format.Bytes(f.Stacks[i].Bytes)+"  "+stackOwner(&f.Stacks[i]))
			for _, name := range foldedStack(p, f.Stacks[i].Node, textFrames) {
				more = append(more, "    "+name)
			}
		}
	}
	if len(a.Files) > 0 {
		more = append(more, "", "mapped files:")
		for _, x := range a.Files[:min(len(a.Files), footprintRows)] {
			more = append(more, "  "+format.Bytes(x.Bytes)+"  "+filepath.Base(x.Name))
		}
	}
	l.more = func(int) []string { return more }
	return l.measure()
}

// retainedListing is what keeps what alive.
func retainedListing(p *profile.Profile) *listing {
	g := p.LastGraph()
	n := newGraphNames(p, g)
	l := &listing{
		mode: retainedMode, sum: format.Bytes(g.Bytes) + " counted in " + format.Plural(g.Closures, "closure"), notes: graphNotes(g),
		figures: []string{"retained", "share", "own", "closures"}, heading: "what keeps it alive", about: "path from a root",
	}
	order, depth := n.order(0, len(g.Branches))
	most := uint64(1)
	for _, i := range order {
		most = max(most, g.Branches[i].Retained)
	}
	for k, i := range order {
		b := &g.Branches[i]
		share := format.Ratio(b.Retained, g.Bytes)
		r := tableRow{
			figures: []string{format.Bytes(b.Retained), format.Percent(share), format.Bytes(b.Bytes), format.Count(b.Count)},
			share:   float64(b.Retained) / float64(most), heat: share, depth: depth[i], name: n.branch(b),
			kids: k+1 < len(order) && depth[order[k+1]] > depth[i],
		}
		if code := codeOf(g, b); code != 0 {
			r.at = n.of(code)
		}
		l.rows = append(l.rows, r)
	}
	l.words = n.sentence(order, depth)
	l.more = func(row int) []string { return n.pathTo(order[row]) }
	return l.measure()
}

// codeOf is the closure whose code a branch is written as; 0 if there is none.
func codeOf(g *columns.HeapGraph, b *columns.HeapBranch) uint32 {
	if b.Root >= 0 {
		return g.Roots[b.Root].Code
	}
	return b.Closure
}

// sentence says what keeps most alive, and what most of that is.
func (n *graphNames) sentence(order []int, depth map[int]int) string {
	if len(order) == 0 {
		return strings.TrimSuffix(unreachedWords(n.g), "; ")
	}
	g := n.g
	top := 0 // branches of one parent stand by size
	text := unreachedWords(g)
	text += fmt.Sprintf("%s of %s would be freed without %s", format.Percent(format.Ratio(g.Branches[order[top]].Retained, g.Bytes)), format.Bytes(g.Bytes), inline(n.branch(&g.Branches[order[top]])))
	most := &g.Branches[order[top]]
	for k := top + 1; k < len(order) && depth[order[k]] > 0; k++ {
		if b := &g.Branches[order[k]]; b.Bytes > most.Bytes {
			most = b
		}
	}
	if most != &g.Branches[order[top]] {
		text += fmt.Sprintf("; the largest part of that: %s in %s, %s", format.Bytes(most.Bytes), format.Plural(most.Count, "closure"), inline(n.branch(most)))
	}
	return text
}

// inline is a name with its place as a sentence has it.
func inline(title string) string {
	if name, where, ok := strings.Cut(title, "  "); ok {
		return name + " (" + where + ")"
	}
	return title
}

// pathTo says how the closures of a branch are reached: by the path that the census kept, from the branch's
// own root if it has one of that.
func (n *graphNames) pathTo(branch int) []string {
	g := n.g
	b := &g.Branches[branch]
	if b.Root >= 0 {
		return []string{"this is a root: " + n.root(b.Root)}
	}
	root := -1
	for i := branch; i != 0; i = g.Branches[i].Parent {
		if r := g.Branches[i].Root; r >= 0 {
			root = r
		}
	}
	path := -1
	for i := range g.Paths {
		if x := &g.Paths[i]; x.Closure == b.Closure && (path < 0 || x.Root == root && g.Paths[path].Root != root) {
			path = i
		}
	}
	if path < 0 {
		return []string{"the census has no path to it: it has those to what retains most"}
	}
	x := &g.Paths[path]
	out := []string{"to the one that retains most of its kind, " + format.Bytes(x.Retained) + ":"}
	for _, line := range n.pathLines(x) {
		out = append(out, line.text)
	}
	return out
}

// growthListing is what keeps alive what has come since an earlier census.
func growthListing(r RetainedGrowth) *listing {
	before, after, _ := r.graphs()
	branches, kinds := r.of(before, after, mostGrown)
	l := &listing{
		mode: growthMode, figures: []string{"retained", "more", "own more", "closures"}, heading: "what keeps the growth alive", notes: r.notes(before, after),
		sum: fmt.Sprintf("%s counted, %s since the earlier census", format.Bytes(after.Bytes), format.Signed(int64(after.Bytes-before.Bytes))), about: "closures of one kind that grew",
	}
	most := int64(1)
	for i := range branches {
		most = max(most, branches[i].more)
	}
	for i := range branches {
		d := &branches[i]
		l.rows = append(l.rows, tableRow{
			figures: []string{format.Bytes(d.retained), format.Signed(d.more), format.Signed(d.own), signedCount(d.closure)},
			share:   math.Max(0, float64(d.more)/float64(most)), heat: math.Max(0, float64(d.more)/float64(max(1, after.Bytes))), depth: d.depth, name: d.name,
			kids: i+1 < len(branches) && branches[i+1].depth > d.depth,
		})
	}
	l.words = "nothing retains more than at the earlier census"
	first := ""
	if why := unexplained(before, after); why != "" {
		first = why + "; "
	}
	if len(branches) > 0 {
		best := &branches[0]
		for i := range branches {
			if d := &branches[i]; d.own > best.own {
				best = d
			}
		}
		l.words = fmt.Sprintf("%s more is kept alive by %s; the largest part of that: %s, %s closures of %s", format.Signed(best.more), inline(best.path[0]), format.Signed(best.own), signedCount(best.closure), inline(best.name))
	}
	l.words = first + l.words
	var more []string
	for i := range kinds[:min(len(kinds), retainedRows)] {
		d := &kinds[i]
		more = append(more, printer.PadLeft(format.Signed(d.own), 10)+printer.PadLeft(signedCount(d.closure), 11)+"  "+d.name)
	}
	l.more = func(int) []string { return more }
	return l.measure()
}

// changesListing is which bands differ between two logs. Where they are written is known while B's log is shown.
func changesListing(r BandChanges, shown *profile.Profile) *listing {
	l := &listing{mode: changesMode, figures: []string{"B-A", "A", "B", "closures"}, heading: "band", about: "A and B"}
	a, b, why := r.sides()
	if why != "" {
		l.words, l.more = why, func(int) []string { return nil }
		return l.measure()
	}
	before, after := &a.Censuses[largest(a)], &b.Censuses[largest(b)]
	growth := int64(after.Total) - int64(before.Total)
	l.sum = fmt.Sprintf("by %s: %s", a.What(), format.Signed(growth))
	rows := r.of(a, b)
	most := int64(1)
	for i := range rows {
		most = max(most, rows[i].bytes(), -rows[i].bytes())
	}
	for i := range rows {
		c := &rows[i]
		number := "-"
		if c.counted {
			number = signedCount(c.number)
		}
		part := math.Abs(float64(c.bytes()))
		row := tableRow{
			figures: []string{format.Signed(c.bytes()), format.Bytes(c.before), format.Bytes(c.after), number}, name: c.title,
			share: part / float64(most), heat: math.Max(0, float64(c.bytes())/float64(max(1, after.Total))),
		}
		if id := c.at.FileID; shown == r.B && id != 0 {
			row.at.File, row.at.FileID, row.at.Span = r.B.File(id).Path, id, c.at.Span
		}
		l.rows = append(l.rows, row)
	}
	l.words = "no band differs"
	if len(rows) > 0 {
		l.words = fmt.Sprintf("%s live in A, %s in B; most differs %s: %s", format.Bytes(before.Total), format.Bytes(after.Total), inline(rows[0].title), format.Signed(rows[0].bytes()))
	}
	about := []string{"A " + r.NameA + ": " + format.Bytes(before.Total) + " in " + format.Plural(uint64(len(a.Bands)), "band"), "B " + r.NameB + ": " + format.Bytes(after.Total) + " in " + format.Plural(uint64(len(b.Bands)), "band")}
	if note := several(a, b); note != "" {
		about = append(about, "", note)
	}
	l.more = func(row int) []string {
		if c := &rows[row]; c.margin > 0 {
			return append(about[:len(about):len(about)], "", "of this band, of which a random part was counted: "+format.Signed(c.bytes())+" ±"+format.Bytes(c.margin))
		}
		return about
	}
	return l.measure()
}

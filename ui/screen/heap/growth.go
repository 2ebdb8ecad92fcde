package heap

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/diagnosis"
	"ccagent/ui/printer"
)

// RetainedGrowth is what retains more than at an earlier census, of a log of its own.
type RetainedGrowth struct {
	Before, After *profile.Profile
}

// grown is a branch of the tree, or a band, that differs between two graphs.
type grown struct {
	name         string
	depth        int
	path         []string // names from the topmost branch on; of a band none
	retained     uint64   // at the later census
	more         int64    // retained since the earlier one
	own, closure int64    // likewise
}

// totals are the sums of branches of one name below the same ones.
type totals struct{ retained, own, count uint64 }

// paths numbers the names that branches have, each below another; 0 is above all.
type paths struct {
	ids map[step]int
	all []step
}

type step struct {
	above int
	name  string
	depth int // of the topmost 1
}

func newPaths() *paths { return &paths{map[step]int{}, make([]step, 1)} }

func (p *paths) id(above int, name string) int {
	k := step{above, name, p.all[above].depth + 1}
	id, known := p.ids[k]
	if !known {
		id = len(p.all)
		p.ids[k], p.all = id, append(p.all, k)
	}
	return id
}

// sorted puts a tree's branches in the order of a comparison among those below the same one, each before what is below it.
func (p *paths) sorted(ids []int, compare func(x, y int) int) (all []int) {
	below := map[int][]int{}
	for _, id := range ids {
		above := p.all[id].above
		below[above] = append(below[above], id)
	}
	for _, list := range below {
		slices.SortStableFunc(list, compare)
	}
	for next := [][]int{below[0]}; len(next) > 0; {
		list := &next[len(next)-1]
		if len(*list) == 0 {
			next = next[:len(next)-1]
			continue
		}
		id := (*list)[0]
		*list = (*list)[1:]
		all, next = append(all, id), append(next, below[id])
	}
	return all
}

// names are the names of a path from the topmost on.
func (p *paths) names(id int) []string {
	out := make([]string, p.all[id].depth)
	for ; id != 0; id = p.all[id].above {
		out[p.all[id].depth-1] = p.all[id].name
	}
	return out
}

// branches sums a tree's branches up by their paths of names, with the order in which a tree shows them.
func (n *graphNames) branches(p *paths) (sums map[int]totals, order []int) {
	sums = map[int]totals{}
	ids := make([]int, len(n.g.Branches))
	all, _ := n.order(0, len(n.g.Branches))
	for _, i := range all {
		b := &n.g.Branches[i]
		id := p.id(ids[b.Parent], n.branch(b))
		ids[i] = id
		s, known := sums[id]
		if !known {
			order = append(order, id)
		}
		sums[id] = totals{s.retained + b.Retained, s.own + b.Bytes, s.count + b.Count}
	}
	return sums, order
}

// kinds sums bands up by their names.
func (n *graphNames) kinds() map[string]totals {
	sums := map[string]totals{}
	for i := range n.g.Bands {
		b := &n.g.Bands[i]
		name := n.title(b.Closure)
		s := sums[name]
		sums[name] = totals{s.retained + b.Retained, s.own + b.Bytes, s.count + b.Count}
	}
	return sums
}

func difference(before, after totals) grown {
	return grown{retained: after.retained, more: int64(after.retained - before.retained), own: int64(after.own - before.own), closure: int64(after.count - before.count)}
}

// deepest is how far down the tree growth is told: what grew further down is in what is above it.
const deepest = 256

// of finds what retains more: branches that grew most first among those of one parent, so many by growth with those above
// them, and bands whose own bytes grew.
func (r RetainedGrowth) of(before, after *columns.HeapGraph, most int) (branches, bands []grown) {
	was, is, p := newGraphNames(r.Before, before), newGraphNames(r.After, after), newPaths()
	old, _ := was.branches(p)
	sums, order := is.branches(p)
	more := func(id int) int64 { return difference(old[id], sums[id]).more }
	var large []int
	for _, id := range order {
		if more(id) > 0 && p.all[id].depth <= deepest {
			large = append(large, id)
		}
	}
	slices.SortStableFunc(large, func(x, y int) int { return cmp.Compare(more(y), more(x)) })
	shown := map[int]bool{0: true}
	for _, id := range large[:min(len(large), most)] {
		for ; !shown[id]; id = p.all[id].above {
			shown[id] = true
		}
	}
	for _, id := range p.sorted(order, func(x, y int) int { return cmp.Compare(more(y), more(x)) }) {
		if shown[id] {
			d := difference(old[id], sums[id])
			d.name, d.depth, d.path = p.all[id].name, p.all[id].depth-1, p.names(id)
			branches = append(branches, d)
		}
	}
	oldKinds := was.kinds()
	for name, s := range is.kinds() {
		if d := difference(oldKinds[name], s); d.own > 0 {
			d.name = name
			bands = append(bands, d)
		}
	}
	slices.SortFunc(bands, func(x, y grown) int { return cmp.Or(cmp.Compare(y.own, x.own), cmp.Compare(x.name, y.name)) })
	return branches, bands
}

// graphs are the two to compare; why says if one is missing.
func (r RetainedGrowth) graphs() (before, after *columns.HeapGraph, why string) {
	if before = r.Before.LastGraph(); before == nil {
		return nil, nil, "The earlier log: " + diagnosis.NoGraph(r.Before)
	}
	if after = r.After.LastGraph(); after == nil {
		return nil, nil, diagnosis.NoGraph(r.After)
	}
	return before, after, ""
}

// mismatch says what is wrong with the two logs.
func (r RetainedGrowth) mismatch() []string {
	x, y := &r.Before.Capture, &r.After.Capture
	switch {
	case x.PID != y.PID || x.Program != y.Program:
		return []string{fmt.Sprintf("These are logs of two processes: %s (%d) and %s (%d). What differs need not have grown.", x.Program, x.PID, y.Program, y.PID)}
	case x.StartUnixNs > y.StartUnixNs:
		return []string{"The log given as the earlier one is the later."}
	}
	return nil
}

// explained is the part of growth from which on the tree is taken to explain it.
const explained = 0.5

// unexplained says that branches explain less than half of the growth; empty if they explain more, or nothing grew.
func unexplained(before, after *columns.HeapGraph) string {
	growth := int64(after.Bytes - before.Bytes)
	if growth <= 0 {
		return ""
	}
	unreached := int64(after.UnreachedBytes - before.UnreachedBytes)
	if reached := max(0, growth-unreached); float64(reached) < explained*float64(growth) {
		return fmt.Sprintf("These branches explain %s of the %s by which the heap grew: %s more were reached from no root", format.Bytes(uint64(reached)), format.Bytes(uint64(growth)), format.Bytes(uint64(unreached)))
	}
	return ""
}

// notes are what is to be known of the two censuses.
func (r RetainedGrowth) notes(before, after *columns.HeapGraph) []string {
	notes := r.mismatch()
	if why := unexplained(before, after); why != "" {
		notes = append([]string{why + "."}, notes...)
	}
	return append(notes, graphNotes(after)...)
}

// Text implements printer.Report.
func (r RetainedGrowth) Text(w io.Writer, o printer.Options) error {
	p := newOut(w, o)
	before, after, why := r.graphs()
	if why != "" {
		p.Note("%s", why)
		return p.Flush()
	}
	p.Wrap(p.Bold, "   ", printer.Fit(o.File, 60), format.Bytes(after.Bytes)+" counted", format.Signed(int64(after.Bytes-before.Bytes))+" since the earlier census")
	for _, note := range r.notes(before, after) {
		p.Note("%s", note)
	}
	branches, bands := r.of(before, after, max(1, o.Rows(len(after.Branches), retainedRows)))
	row := func(d *grown, first int64, indent string) {
		p.Line(printer.PadLeft(format.Signed(first), 13), printer.PadLeft(format.Bytes(d.retained), 12), printer.PadLeft(format.Signed(d.own), 12), printer.PadLeft(signedCount(d.closure), 11), "  ", printer.Fit(indent+d.name, p.room(50)))
	}
	p.Line("")
	p.Line(p.Bold("retained more    retained    own more   closures  what keeps the growth alive"))
	for i := range branches {
		row(&branches[i], branches[i].more, strings.Repeat("  ", branches[i].depth))
	}
	if len(branches) == 0 {
		p.Note("Nothing retains more than at the earlier census.")
	}
	p.Line("")
	p.Line(p.Bold("     own more    retained    own more   closures  closures of one kind that grew"))
	rows := o.Rows(len(bands), footprintRows)
	for i := range bands[:min(len(bands), rows)] {
		row(&bands[i], bands[i].own, "")
	}
	return p.Flush()
}

func signedCount(n int64) string {
	if n < 0 {
		return "−" + format.Count(uint64(-n))
	}
	return "+" + format.Count(uint64(n))
}

type retainedGrowthJSON struct {
	Problem        string      `json:"problem,omitempty"` // why there is nothing
	Before         *uint64     `json:"from_bytes"`
	After          *uint64     `json:"to_bytes"`
	Growth         *int64      `json:"growth_bytes"`
	Unreached      *uint64     `json:"from_unreached_bytes"`
	LaterUnreached *uint64     `json:"to_unreached_bytes"`
	Known          *bool       `json:"to_complete"`
	Notes          []string    `json:"notes"`
	Tree           []grownJSON `json:"tree"`
	Bands          []grownJSON `json:"bands"`
}

type grownJSON struct {
	Name     string   `json:"name"`
	Path     []string `json:"path,omitempty"` // of names from the topmost branch on
	Retained uint64   `json:"retained_bytes"`
	More     int64    `json:"growth_retained_bytes"`
	Own      int64    `json:"growth_own_bytes"`
	Closures int64    `json:"growth_closures"`
}

// mostGrown is how many branches JSON has: those that grew most, with those above them.
const mostGrown = 10_000

// JSON implements printer.Report.
func (r RetainedGrowth) JSON(w io.Writer, _ printer.Options) error {
	doc := retainedGrowthJSON{Notes: []string{}, Tree: []grownJSON{}, Bands: []grownJSON{}}
	before, after, why := r.graphs()
	if why != "" {
		doc.Problem = why
		return printer.JSON(w, doc)
	}
	doc.Before, doc.After, doc.Growth = &before.Bytes, &after.Bytes, printer.If(true, int64(after.Bytes-before.Bytes))
	doc.Unreached, doc.LaterUnreached, doc.Known, doc.Notes = &before.UnreachedBytes, &after.UnreachedBytes, &after.Complete, append(doc.Notes, r.notes(before, after)...)
	branches, bands := r.of(before, after, mostGrown)
	for _, d := range branches {
		doc.Tree = append(doc.Tree, grownJSON{d.name, d.path, d.retained, d.more, d.own, d.closure})
	}
	for _, d := range bands {
		doc.Bands = append(doc.Bands, grownJSON{d.name, nil, d.retained, d.more, d.own, d.closure})
	}
	return printer.JSON(w, doc)
}

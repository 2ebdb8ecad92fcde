package heap

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/columns"
	"ccagent/profile/diagnosis"
	"ccagent/ui/printer"
)

// Retained is what keeps what alive, at the last census of a log that followed pointers.
type Retained struct {
	Profile *profile.Profile
}

// retainedRows is how many branches of the tree, and bands, are shown where Top does not say.
const retainedRows = 24

// graphNames describes closures and roots of a graph.
type graphNames struct {
	p     *profile.Profile
	g     *columns.HeapGraph
	known map[uint32]closures.Row
}

func newGraphNames(p *profile.Profile, g *columns.HeapGraph) *graphNames {
	return &graphNames{p, g, map[uint32]closures.Row{}}
}

func (n *graphNames) of(closure uint32) closures.Row {
	r, known := n.known[closure]
	if !known {
		r = closures.Describe(n.p, closure)
		n.known[closure] = r
	}
	return r
}

// title is a closure's kind, name and place: "thunk Main.sums  Main.hs:12".
func (n *graphNames) title(closure uint32) string {
	r := n.of(closure)
	t := r.Name
	if r.Kind == "thunk" || r.Kind == "function" || r.Kind == "frame" {
		t = r.Kind + " " + t
	}
	if where := r.Where(); where != "" {
		t += "  " + where
	}
	return t
}

// root names a root: "CAF Main.cache  Main.hs:12", "thread 7 “reader”".
func (n *graphNames) root(i int) string {
	if i < 0 || i >= len(n.g.Roots) {
		return "(unknown root)"
	}
	r := &n.g.Roots[i]
	switch r.Kind {
	case eventlog.HeapRootCAF:
		return "CAF " + strings.TrimPrefix(n.title(r.Code), "thunk ")
	case eventlog.HeapRootThread:
		return threadName(r.TSO, r.Label)
	case eventlog.HeapRootStable:
		return fmt.Sprintf("stable pointer %d", r.Number)
	case eventlog.HeapRootWeak:
		return "weak pointer"
	}
	return "(unknown root)"
}

// branch names a branch.
func (n *graphNames) branch(b *columns.HeapBranch) string {
	if b.Root >= 0 {
		return n.root(b.Root)
	}
	return n.title(b.Closure)
}

// order is the branches below one that a tree shows, as it shows them, with their depths: the largest first among
// those of one parent, and of all so many as have most.
func (n *graphNames) order(top, most int) (all []int, depth map[int]int) {
	g := n.g
	below := make([][]int, len(g.Branches))
	large := make([]int, 0, len(g.Branches))
	within := make([]bool, len(g.Branches)) // a branch comes after the one that it is below
	for i := 1; i < len(g.Branches); i++ {
		parent := g.Branches[i].Parent
		if within[i] = parent == top || within[parent]; within[i] {
			below[parent] = append(below[parent], i)
			large = append(large, i)
		}
	}
	byBytes := func(x, y int) int {
		return cmp.Or(cmp.Compare(g.Branches[y].Retained, g.Branches[x].Retained), cmp.Compare(x, y))
	}
	slices.SortFunc(large, byBytes)
	shown := map[int]bool{}
	for _, i := range large[:min(len(large), most)] {
		shown[i] = true
	}
	depth = map[int]int{}
	var walk func(i, d int)
	walk = func(i, d int) {
		slices.SortFunc(below[i], byBytes)
		for _, k := range below[i] {
			if shown[k] {
				all, depth[k] = append(all, k), d
				walk(k, d+1)
			}
		}
	}
	if len(g.Branches) > 0 {
		walk(top, 0)
	}
	return all, depth
}

// Text implements printer.Report.
func (r Retained) Text(w io.Writer, o printer.Options) error {
	p := newOut(w, o)
	g := r.Profile.LastGraph()
	if g == nil {
		p.Note("%s", diagnosis.NoGraph(r.Profile))
		return p.Flush()
	}
	names := newGraphNames(r.Profile, g)
	p.Wrap(p.Bold, "   ", graphHead(g, o)...)
	for _, note := range graphNotes(g) {
		p.Note("%s", note)
	}
	p.Line("")
	p.Line(p.Bold("     retained   share        own   closures  what keeps it alive"))
	order, depth := names.order(0, o.Rows(len(g.Branches), retainedRows))
	for _, i := range order {
		b := &g.Branches[i]
		p.graphRow(b.Retained, b.Bytes, b.Count, g.Bytes, strings.Repeat("  ", depth[i])+names.branch(b))
	}
	p.Note("retained: what would be freed without it. Below a root, or closures of a type, is what is alive by them alone; what stands beside them is shared")
	p.Line("")
	p.Line(p.Bold("     retained   share        own   closures  closures of one kind"))
	bands := r.bands(g)
	rows := o.Rows(len(bands), retainedRows)
	for _, i := range bands[:min(len(bands), rows)] {
		b := &g.Bands[i]
		p.graphRow(b.Retained, b.Bytes, b.Count, g.Bytes, names.title(b.Closure))
	}
	if left := len(bands) - rows; left > 0 {
		p.Note("%d more: --top 0 prints all", left)
	}
	return p.Flush()
}

// bands are the bands of a graph, those first that retain most.
func (r Retained) bands(g *columns.HeapGraph) []int {
	order := make([]int, len(g.Bands))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(g.Bands[y].Retained, g.Bands[x].Retained), cmp.Compare(g.Bands[y].Bytes, g.Bands[x].Bytes))
	})
	return order
}

func graphHead(g *columns.HeapGraph, o printer.Options) []string {
	return []string{
		printer.Fit(o.File, 60), format.Bytes(g.Bytes) + " counted in " + format.Plural(g.Closures, "closure"),
		"by " + format.Plural(g.CAFs, "CAF") + ", " + format.Plural(g.Threads, "thread"), format.Plural(g.StablePtrs, "stable pointer") + ", " + format.Plural(g.Weaks, "weak pointer"),
	}
}

// largeUnreached is the part of all bytes from which on it is said first that no root leads to them.
const largeUnreached = 0.1

// unreachedWords begin a sentence where a large part was reached from no root.
func unreachedWords(g *columns.HeapGraph) string {
	share := format.Ratio(g.UnreachedBytes, g.Bytes)
	if share < largeUnreached {
		return ""
	}
	return format.Percent(share) + " was reached from no root; "
}

func graphNotes(g *columns.HeapGraph) []string {
	notes := append(stuckNotes(g), g.Notes...)
	if g.Unreached == 0 {
		return notes
	}
	why := "the run-time system itself holds them"
	switch {
	case g.AtRest && g.Complete:
		why = "garbage, for the process was stopped between collections"
	case g.AtRest:
		why = "garbage, or held by a thread that ran when the process was stopped, and whose registers did not tell what it holds. ccagent heap --graph --wait 60s waits longer for a major collection, where all is known"
	}
	return append([]string{fmt.Sprintf("%s (%s) in %s were reached from none of these: %s", format.Bytes(g.UnreachedBytes), format.Percent(format.Ratio(g.UnreachedBytes, g.Bytes)), format.Plural(g.Unreached, "closure"), why)}, notes...)
}

func (p out) graphRow(retained, own, count, all uint64, name string) {
	room := 0
	if p.Width > 0 {
		room = p.Columns() - 46
	}
	p.Line(printer.PadLeft(format.Bytes(retained), 13), printer.PadLeft(format.Percent(float64(retained)/float64(max(all, 1))), 8),
		printer.PadLeft(format.Bytes(own), 11), printer.PadLeft(format.Count(count), 11), "  ", printer.Fit(name, room))
}

// stuckNamed is how many threads a note names.
const stuckNamed = 6

var waitsFor = map[eventlog.BlockerKind]string{
	eventlog.BlockerMVar: "an MVar", eventlog.BlockerBlackHole: "a thunk", eventlog.BlockerException: "an exception to be taken", eventlog.BlockerSTM: "variables of a transaction",
}

// stuckNotes name the threads that nothing can wake: those first of which the run-time system does not tell.
func stuckNotes(g *columns.HeapGraph) (notes []string) {
	if !g.StuckKnown {
		return nil
	}
	var held, others []string
	for i := range g.Stuck {
		s := &g.Stuck[i]
		name := threadName(s.TSO, s.Label) + " (" + waitsFor[s.Kind] + ")"
		if s.Held {
			held = append(held, name)
		} else {
			others = append(others, name)
		}
	}
	say := func(names []string, end string) {
		if len(names) == 0 {
			return
		}
		verb, more := "waits", ""
		if len(names) > 1 {
			verb = "wait"
		}
		if n := len(names) - stuckNamed; n > 0 {
			names, more = names[:stuckNamed], fmt.Sprintf(" and %d more", n)
		}
		notes = append(notes, strings.Join(names, ", ")+more+" "+verb+" for what nothing else that can still run can reach: "+end)
	}
	say(held, "only an exception ends that, and the run-time system throws none, as something has their ThreadId")
	say(others, "the next major collection ends that by an exception")
	if left := g.Stuck; g.HeapGraph.Stuck > uint64(len(left)) {
		notes = append(notes, fmt.Sprintf("%d threads in all wait for what nothing else that can still run can reach", g.HeapGraph.Stuck))
	}
	return notes
}

// threadName is a thread's number, with its label.
func threadName(id uint64, label string) string {
	t := fmt.Sprintf("thread %d", id)
	if label != "" {
		t += " “" + label + "”"
	}
	return t
}

type stuckJSON struct {
	Thread   uint64 `json:"thread"`
	Label    string `json:"label"`
	WaitsFor string `json:"waits_for"`
	Held     bool   `json:"held"`
}

var stuckKinds = map[eventlog.BlockerKind]string{
	eventlog.BlockerMVar: "mvar", eventlog.BlockerBlackHole: "black hole", eventlog.BlockerException: "throwTo", eventlog.BlockerSTM: "stm",
}

// stuckList is the threads that nothing can wake; nil if that is not known.
func stuckList(g *columns.HeapGraph) []stuckJSON {
	if !g.StuckKnown {
		return nil
	}
	list := []stuckJSON{}
	for i := range g.Stuck {
		s := &g.Stuck[i]
		list = append(list, stuckJSON{s.TSO, s.Label, stuckKinds[s.Kind], s.Held})
	}
	return list
}

type retainedJSON struct {
	Problem  string       `json:"problem,omitempty"` // why there is nothing
	Bytes    *uint64      `json:"bytes"`
	Closures *uint64      `json:"closures"`
	Pointers *uint64      `json:"pointers"`
	Unread   *uint64      `json:"unreached_bytes"`
	AtRest   *bool        `json:"at_rest"`
	Complete *bool        `json:"complete"`
	Stuck    []stuckJSON  `json:"stuck"`
	Notes    []string     `json:"notes"`
	Tree     []branchJSON `json:"tree"`
	Bands    []bandJSON   `json:"bands"`
}

type closureJSON struct {
	Closure *string `json:"closure"`
	Kind    *string `json:"kind"`
	Module  *string `json:"module"`
	Package *string `json:"package"`
	File    *string `json:"file"`
	Line    *uint32 `json:"line"`
}

type branchJSON struct {
	Parent   int    `json:"parent"` // index in the tree; −1 for none
	Root     string `json:"root,omitempty"`
	Count    uint64 `json:"count"`
	Own      uint64 `json:"own_bytes"`
	Retained uint64 `json:"retained_bytes"`
	closureJSON
}

type bandJSON struct {
	closureJSON
	Count    uint64 `json:"count"`
	Own      uint64 `json:"own_bytes"`
	Retained uint64 `json:"retained_bytes"`
	Largest  uint64 `json:"largest_retained_bytes"`
}

func (n *graphNames) json(closure uint32) closureJSON {
	r := n.of(closure)
	return closureJSON{printer.Known(r.Name), printer.Known(r.Kind), printer.Known(r.Module), printer.Known(r.Package), printer.Known(r.File), printer.Known(r.Span.Line)}
}

// JSON implements printer.Report; all is in it.
func (r Retained) JSON(w io.Writer, _ printer.Options) error {
	g := r.Profile.LastGraph()
	if g == nil {
		return printer.JSON(w, retainedJSON{Problem: diagnosis.NoGraph(r.Profile), Notes: []string{}, Tree: []branchJSON{}, Bands: []bandJSON{}})
	}
	names := newGraphNames(r.Profile, g)
	doc := retainedJSON{
		Bytes: &g.Bytes, Closures: &g.Closures, Pointers: &g.Pointers, Unread: &g.UnreachedBytes, AtRest: &g.AtRest, Complete: &g.Complete, Stuck: stuckList(g), Notes: append([]string{}, g.Notes...), Tree: []branchJSON{}, Bands: []bandJSON{},
	}
	for i := range g.Branches {
		parent := g.Branches[i].Parent
		if i == 0 {
			parent = -1
		}
		doc.Tree = append(doc.Tree, names.branchJSON(i, parent))
	}
	for _, i := range r.bands(g) {
		b := &g.Bands[i]
		doc.Bands = append(doc.Bands, bandJSON{names.json(b.Closure), b.Count, b.Bytes, b.Retained, b.Largest})
	}
	return printer.JSON(w, doc)
}

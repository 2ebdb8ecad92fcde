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
	"ccagent/profile/columns"
	"ccagent/profile/diagnosis"
	"ccagent/ui/printer"
)

// Roots is what single roots keep alive: those that are called Name, or if none is, those whose names have it in them.
type Roots struct {
	Profile *profile.Profile
	Name    string
}

// rootKinds are the kinds of roots in JSON.
var rootKinds = map[eventlog.HeapRootKind]string{
	eventlog.HeapRootCAF: "caf", eventlog.HeapRootThread: "thread", eventlog.HeapRootStable: "stable pointer", eventlog.HeapRootWeak: "weak pointer",
}

// called reports whether a text is all of a root's name: of a thread its number or label, of a CAF the binding. Places are left out.
func (n *graphNames) called(i int, text string) bool {
	name, _, _ := strings.Cut(n.root(i), "  ")
	switch r := &n.g.Roots[i]; r.Kind {
	case eventlog.HeapRootCAF:
		return text == name || text == strings.TrimPrefix(name, "CAF ")
	case eventlog.HeapRootThread:
		return text == fmt.Sprint(r.TSO) || text == fmt.Sprint("thread ", r.TSO) || text == r.Label
	}
	return text == name
}

// chosen are the roots that were asked for, those first that retain most.
func (r Roots) chosen(n *graphNames) []int {
	var whole, part []int
	for i := range n.g.Roots {
		if n.called(i, r.Name) {
			whole = append(whole, i)
		} else if strings.Contains(n.root(i), r.Name) {
			part = append(part, i)
		}
	}
	all := whole
	if len(all) == 0 {
		all = part
	}
	slices.SortStableFunc(all, func(x, y int) int { return cmp.Compare(n.g.Roots[y].Retained, n.g.Roots[x].Retained) })
	return all
}

func (r Roots) none() string {
	return fmt.Sprintf("No root is called %q; ccview heap FILE --retained lists those that retain most.", r.Name)
}

// branchOf is the topmost branch of a root; −1 if the tree has none, for what it retains is too little.
func (n *graphNames) branchOf(root int) int {
	return slices.IndexFunc(n.g.Branches, func(b columns.HeapBranch) bool { return b.Root == root })
}

// nearest are the paths that begin at a root, those first that lead to most bytes.
func (n *graphNames) nearest(root int) []int {
	var all []int
	for i := range n.g.Paths {
		if n.g.Paths[i].Root == root {
			all = append(all, i)
		}
	}
	slices.SortStableFunc(all, func(x, y int) int { return cmp.Compare(n.g.Paths[y].Bytes, n.g.Paths[x].Bytes) })
	return all
}

// Text implements printer.Report.
func (r Roots) Text(w io.Writer, o printer.Options) error {
	p := newOut(w, o)
	g := r.Profile.LastGraph()
	if g == nil {
		p.Note("%s", diagnosis.NoGraph(r.Profile))
		return p.Flush()
	}
	n := newGraphNames(r.Profile, g)
	p.Wrap(p.Bold, "   ", graphHead(g, o)...)
	for _, note := range graphNotes(g) {
		p.Note("%s", note)
	}
	all := r.chosen(n)
	if len(all) == 0 {
		p.Note("%s", r.none())
	}
	shown := o.Rows(len(all), pathRows)
	for _, i := range all[:min(len(all), shown)] {
		p.rootOf(n, i, o)
	}
	if left := len(all) - shown; left > 0 {
		p.Line("")
		p.Note("%d more roots: --top 0 prints all", left)
	}
	return p.Flush()
}

// rootOf prints what a root alone keeps alive, and of what it is the nearest root.
func (p out) rootOf(n *graphNames, root int, o printer.Options) {
	g := n.g
	p.Line("")
	p.Line(p.Bold(printer.Fit(n.root(root), p.room(0))))
	p.Note("retains %s (%s): so much would be freed without it", format.Bytes(g.Roots[root].Retained), format.Percent(format.Ratio(g.Roots[root].Retained, g.Bytes)))
	if top := n.branchOf(root); top >= 0 {
		p.Line(p.Bold("     retained   share        own   closures  what it alone keeps alive"))
		order, depth := n.order(top, o.Rows(len(g.Branches), retainedRows))
		for _, i := range order {
			b := &g.Branches[i]
			p.graphRow(b.Retained, b.Bytes, b.Count, g.Bytes, strings.Repeat("  ", depth[i])+n.branch(b))
		}
	} else {
		p.Note("what it alone keeps alive is too little to be in the log")
	}
	near := n.nearest(root)
	if len(near) == 0 {
		return
	}
	p.Line(p.Bold("        bytes   share   closures  to which it is the nearest root, though others may lead there, too"))
	rows := o.Rows(len(near), pathRows)
	for _, i := range near[:min(len(near), rows)] {
		x := &g.Paths[i]
		room := 0
		if p.Width > 0 {
			room = p.Columns() - 35
		}
		p.Line(printer.PadLeft(format.Bytes(x.Bytes), 13), printer.PadLeft(format.Percent(format.Ratio(x.Bytes, g.Bytes)), 8), printer.PadLeft(format.Count(x.Count), 11), "  ", printer.Fit(n.title(x.Closure), room))
	}
	if left := len(near) - rows; left > 0 {
		p.Note("%d more: --top 0 prints all", left)
	}
}

type rootsJSON struct {
	Problem string     `json:"problem,omitempty"` // why there is nothing
	Bytes   *uint64    `json:"bytes"`
	Roots   []rootJSON `json:"roots"`
}

type rootJSON struct {
	Root  string  `json:"root"`
	Kind  *string `json:"root_kind"`
	ID    *uint64 `json:"thread"`
	Label *string `json:"label"`
	closureJSON
	Retained uint64        `json:"retained_bytes"`
	Tree     []branchJSON  `json:"tree"`
	Nearest  []nearestJSON `json:"nearest"`
}

type nearestJSON struct {
	closureJSON
	Count uint64 `json:"count"`
	Bytes uint64 `json:"bytes"`
}

// JSON implements printer.Report; all is in it.
func (r Roots) JSON(w io.Writer, _ printer.Options) error {
	doc := rootsJSON{Roots: []rootJSON{}}
	g := r.Profile.LastGraph()
	if g == nil {
		doc.Problem = diagnosis.NoGraph(r.Profile)
		return printer.JSON(w, doc)
	}
	doc.Bytes = &g.Bytes
	n := newGraphNames(r.Profile, g)
	for _, i := range r.chosen(n) {
		doc.Roots = append(doc.Roots, n.rootJSON(i))
	}
	if len(doc.Roots) == 0 {
		doc.Problem = r.none()
	}
	return printer.JSON(w, doc)
}

func (n *graphNames) rootJSON(root int) rootJSON {
	r := &n.g.Roots[root]
	j := rootJSON{Root: n.root(root), Kind: printer.Known(rootKinds[r.Kind]), Label: printer.Known(r.Label), Retained: r.Retained, Tree: []branchJSON{}, Nearest: []nearestJSON{}}
	if r.Kind == eventlog.HeapRootThread {
		j.ID = &r.TSO
	}
	if r.Code != 0 {
		j.closureJSON = n.json(r.Code)
	}
	if top := n.branchOf(root); top >= 0 {
		order, _ := n.order(top, len(n.g.Branches))
		row := map[int]int{top: -1}
		for k, i := range order {
			row[i] = k
			j.Tree = append(j.Tree, n.branchJSON(i, row[n.g.Branches[i].Parent]))
		}
	}
	for _, i := range n.nearest(root) {
		x := &n.g.Paths[i]
		j.Nearest = append(j.Nearest, nearestJSON{n.json(x.Closure), x.Count, x.Bytes})
	}
	return j
}

// branchJSON is a branch below that of an index.
func (n *graphNames) branchJSON(i, parent int) branchJSON {
	b := &n.g.Branches[i]
	j := branchJSON{Parent: parent, Count: b.Count, Own: b.Bytes, Retained: b.Retained}
	if i > 0 && b.Root >= 0 {
		j.Root = n.root(b.Root)
	}
	if b.Closure != 0 {
		j.closureJSON = n.json(b.Closure)
	}
	return j
}

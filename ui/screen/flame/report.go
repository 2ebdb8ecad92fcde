package flame

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/interval"
	"ccagent/profile/stacks"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
)

// Limits say how a call tree is printed.
type Limits struct {
	// MinShare leaves out subtrees below this fraction of the total.
	MinShare float64
	// MaxDepth bounds what is printed; 0 is no bound beyond the tree's own.
	MaxDepth int
}

// Report is a call tree.
type Report struct {
	Selection *profile.Selection
	Tree      *stacks.Tree
	Inverted  bool
	Limits
}

// Text implements printer.Report.
func (r Report) Text(w io.Writer, o printer.Options) error {
	s, t, so := r.Selection, r.Tree, r.Limits
	p := newOut(w, o)
	p.Heading(s)
	if t.Nodes[0].Total == 0 {
		return p.Flush()
	}
	p.Line(p.Bold("  total" + p.SureHead() + "   self " + p.selfHead() + "   function"))
	tp := treePrinter{p: p, s: s, t: t, so: so, sure: t.Sure(s, so.MinShare)}
	tp.node(0, "", "", 0)
	p.Line("")
	p.SureNote(tp.tied)
	if tp.forced {
		p.Note("* evaluates thunks that the function above it forced")
	}
	if tp.folded {
		p.Note("↻ repeats on the stack; what repeats is shown once")
	}
	return p.Flush()
}

type treePrinter struct {
	p      out
	s      *profile.Selection
	t      *stacks.Tree
	so     Limits
	sure   []stacks.Sure // by node
	tied   bool
	forced bool
	folded bool
}

// node prints a node and what is on top of it. first precedes the node's name,
// rest the names of its children. A chain of single callees is not indented.
func (tp *treePrinter) node(id int32, first, rest string, depth int) {
	n := &tp.t.Nodes[id]
	total, self := tp.s.Fraction(n.Total), tp.s.Fraction(n.Self)
	mark := "  "
	if n.Forced*2 > n.Total && n.Frame.Category != eventlog.CategorySTG {
		mark, tp.forced = "* ", true
	}
	if id == 0 {
		mark = "  "
	}
	left := tp.p.Heat(total, " "+format.Column(total)) + tp.p.Sure(total, tp.sure[id].Sure) + "  " + tp.p.FaintZero(self) + tp.p.selfSure(self, tp.sure[id].Self) + " " + mark
	tp.tied = tp.tied || tp.sure[id].Tied
	room := 0
	if tp.p.Width > 0 {
		room = max(12, tp.p.Columns()-18-safe.Width(tp.p.SureHead()+tp.p.selfHead())-safe.Width(first))
	}
	name := printer.Fit(n.Name, room)
	where := frameWhere(n.Frame)
	if used := safe.Width(name); where != "" {
		switch free := room - used - 2; {
		case room == 0:
			where = "  " + printer.Fit(where, 200)
		case free >= 12:
			where = "  " + printer.Fit(where, free)
		default:
			where = ""
		}
	}
	if n.Folded > 0 {
		name += " ↻"
		tp.folded = true
	}
	if n.Frame.Kind == profile.KindCategory {
		name = tp.p.Style("3", name)
	}
	tp.p.Line(left, tp.p.Faint(first), name, tp.p.Faint(where))
	if tp.so.MaxDepth > 0 && depth >= tp.so.MaxDepth {
		return
	}

	shown, hidden := 0, uint64(0)
	for _, c := range n.Children {
		if tp.s.Fraction(tp.t.Nodes[c].Total) < tp.so.MinShare {
			break
		}
		shown++
	}
	for _, c := range n.Children[shown:] {
		hidden += tp.t.Nodes[c].Total
	}
	for i, c := range n.Children[:shown] {
		switch {
		case shown == 1 && len(n.Children) == 1 && id != 0:
			tp.node(c, rest, rest, depth+1)
		case i == shown-1 && shown == len(n.Children):
			tp.node(c, rest+"└ ", rest+"  ", depth+1)
		default:
			tp.node(c, rest+"├ ", rest+"│ ", depth+1)
		}
	}
	if k := len(n.Children) - shown; k > 0 {
		share := tp.s.Fraction(hidden)
		tp.p.Line(" ", tp.p.Faint(format.Column(share)+strings.Repeat(" ", 11+safe.Width(tp.p.SureHead()+tp.p.selfHead()))+rest+"└ "+fmt.Sprintf("%d more", k)))
	}
}

func frameWhere(f *profile.Frame) string {
	switch {
	case f.File != "" && f.Line > 0:
		return fmt.Sprintf("%s:%d", path.Base(f.File), f.Line)
	case f.File != "":
		return path.Base(f.File)
	case f.Kind == profile.KindSource && f.Package != "" && f.Package != "main":
		return f.Package
	case f.Kind == profile.KindSource && f.Module != "" && f.Package == "":
		return "[" + f.Module + "]"
	case f.Kind == profile.KindCategory && f.Module != "" && f.Module != strings.Trim(f.Name, "()"):
		return "[" + f.Module + "]"
	default:
		return ""
	}
}

// Folded prints a stack a line, root first, and its weight: what flame graph
// tools read.
func Folded(w io.Writer, t *stacks.Tree) error {
	b := bufio.NewWriter(w)
	t.Folded(func(stack string, weight uint64) {
		fmt.Fprintf(b, "%s %d\n", foldedLine(stack), weight)
	})
	return b.Flush()
}

// foldedLine makes each frame's name visible text. Names are cut by package
// safe one at a time, not the line.
func foldedLine(stack string) string {
	names := strings.Split(stack, ";")
	for i, n := range names {
		names[i] = safe.String(n)
	}
	return strings.Join(names, ";")
}

type stacksJSON struct {
	Event   *string   `json:"event"`
	Unit    *string   `json:"unit"`
	Samples uint64    `json:"samples"`
	Total   uint64    `json:"total"`
	Invert  bool      `json:"invert"`
	Root    *nodeJSON `json:"root"`
	// Effective is what the samples are worth by their weights.
	Effective float64 `json:"effective_samples"`
}

type nodeJSON struct {
	Name     string  `json:"name"`
	Module   *string `json:"module"`
	Package  *string `json:"package"`
	File     *string `json:"file"`
	Line     *uint32 `json:"line"`
	Category *string `json:"category"`
	Self     uint64  `json:"self"`
	Total    uint64  `json:"total"`
	Samples  uint64  `json:"samples"`
	Forced   uint64  `json:"forced"`
	printer.SureJSON
	SelfLow  *float64    `json:"self_low"`
	SelfHigh *float64    `json:"self_high"`
	Children []*nodeJSON `json:"children"`
}

// JSON implements printer.Report. Self and total are weights.
func (r Report) JSON(w io.Writer, _ printer.Options) error {
	s, t, inverted := r.Selection, r.Tree, r.Inverted
	sum := s.Summary()
	return printer.JSON(w, stacksJSON{Event: printer.Known(sum.Event), Unit: printer.Known(sum.Unit), Samples: sum.Samples, Total: sum.Total, Invert: inverted, Root: treeJSON(s, t),
		Effective: s.Batched().Effective()})
}

func treeJSON(s *profile.Selection, t *stacks.Tree) *nodeJSON {
	sure := t.Sure(s, 0)
	nodes := make([]nodeJSON, len(t.Nodes))
	for i := range t.Nodes {
		n := &t.Nodes[i]
		f := n.Frame
		nodes[i] = nodeJSON{
			Name: n.Name, Module: printer.Known(f.Module), Package: printer.Known(f.Package), File: printer.Known(f.File), Line: printer.Known(f.Line), Category: printer.Known(f.Category.String()),
			Self: n.Self, Total: n.Total, Samples: n.Samples, Forced: n.Forced, SureJSON: printer.SureOf(sure[i].Sure),
			Children: make([]*nodeJSON, len(n.Children)),
		}
		nodes[i].SelfLow, nodes[i].SelfHigh = printer.Bounds(sure[i].Self)
		for j, c := range n.Children {
			nodes[i].Children[j] = &nodes[c]
		}
	}
	return &nodes[0]
}

// out is a printer with what only these reports have.
type out struct{ *printer.Printer }

func newOut(w io.Writer, o printer.Options) out { return out{printer.New(w, o)} }

// selfHead is the head of the intervals of the second figure; empty where there is no room.
func (p out) selfHead() string {
	if !p.Wide() {
		return ""
	}
	return p.SureHead()
}

// selfSure is the cell below selfHead.
func (p out) selfSure(self float64, i interval.Interval) string {
	if !p.Wide() {
		return ""
	}
	return p.PlusMinus(self, i)
}

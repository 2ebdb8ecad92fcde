package diffflame

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/stacks"
	"ccagent/ui/printer"
)

// Report is the difference of the stacks of two groups of logs: the paths that changed by more
// than the noise of sampling, and what they are reached by.
type Report struct {
	Pair           *stacks.Pair
	Unit           string
	NamesA, NamesB []string
	All            bool // also those that did not
}

// Of compares two groups of runs.
func Of(a, b []*profile.Selection, namesA, namesB []string, all bool) Report {
	return Report{Pair: stacks.PairOf(a, b, leastSure), Unit: a[0].EventDef().Unit, NamesA: namesA, NamesB: namesB, All: all}
}

// standardRows is how many rows the text has where the user does not say.
const standardRows = 60

// row is a node as tabs separate its figures.
func row(n *stacks.PairNode) string {
	return strings.Join([]string{format.Share(n.Share[0]), format.Share(n.Share[1]), points(n.Change()), n.Name}, "\t")
}

// Text implements printer.Report.
func (r Report) Text(w io.Writer, o printer.Options) error {
	p := printer.New(w, o)
	group := func(names []string) string {
		name := printer.Fit(filepath.Base(names[0]), 40)
		if len(names) > 1 {
			name += fmt.Sprintf(" and %d more", len(names)-1)
		}
		return name
	}
	p.Wrap(p.Bold, "   ", "A "+group(r.NamesA), "B "+group(r.NamesB), "stacks, parts of each run's total")
	p.Line("")
	nodes, depths := list(r.Pair, func(n *stacks.PairNode) bool {
		return (r.All || n.Differs()) && max(n.Share[0], n.Share[1]) >= leastSure
	})
	if len(nodes) == 1 {
		p.Note("No path's share changed by more than the noise of sampling; --all prints all.")
		return p.Flush()
	}
	p.Line(p.Bold("     A      B    B-A   ±95%  function"))
	n := o.Rows(len(nodes), standardRows)
	for i, id := range nodes[:n] {
		x := &r.Pair.Nodes[id]
		change, sure := points(x.Change()), ""
		if x.Low != 0 || x.High != 0 {
			sure = fmt.Sprintf("±%.1f", 50*(x.High-x.Low))
		}
		if x.Parent < 0 {
			change = ""
		}
		name := strings.Repeat(" ", min(depths[i], 40)) + printer.Fit(x.Name, 0)
		if side, only := x.Only(); only {
			name += [...]string{"  gone", "  new"}[side]
		}
		p.Line(printer.PadLeft(format.Column(x.Share[0]), 6), " ", printer.PadLeft(format.Column(x.Share[1]), 6), " ",
			printer.PadLeft(change, 6), " ", printer.PadLeft(sure, 6), "  ", name)
	}
	if rest := len(nodes) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	p.Line("")
	p.Note("B-A: in points of share; ±95%%: of the noise of sampling alone, how runs differ is not in it. Each path is judged for itself: of twenty that do not differ, one may be listed.")
	return p.Flush()
}

type reportJSON struct {
	A     []string   `json:"a"`
	B     []string   `json:"b"`
	Unit  *string    `json:"unit"`
	Nodes []nodeJSON `json:"nodes"`
}

// nodeJSON is a node; its parent is the position of one before it.
type nodeJSON struct {
	Name    string     `json:"function"`
	Module  *string    `json:"module"`
	File    *string    `json:"file"`
	Line    *uint32    `json:"line"`
	Parent  *int32     `json:"parent"`
	Share   [2]float64 `json:"share"`
	Self    [2]float64 `json:"self"`
	Weight  [2]float64 `json:"weight"`
	Change  float64    `json:"change"`
	Low     *float64   `json:"low"`
	High    *float64   `json:"high"`
	Differs bool       `json:"differs"`
}

// JSON implements printer.Report. It has all nodes.
func (r Report) JSON(w io.Writer, _ printer.Options) error {
	doc := reportJSON{A: r.NamesA, B: r.NamesB, Unit: printer.Known(r.Unit), Nodes: []nodeJSON{}}
	for i := range r.Pair.Nodes {
		n := &r.Pair.Nodes[i]
		j := nodeJSON{Name: n.Name, Share: n.Share, Self: n.Self, Weight: n.Weight, Change: n.Change(), Differs: n.Differs()}
		if f := n.Frame; f != nil {
			j.Module, j.File, j.Line = printer.Known(f.Module), printer.Known(f.File), printer.Known(f.Line)
		}
		if n.Parent >= 0 {
			j.Parent = &n.Parent
		}
		if n.Low != 0 || n.High != 0 {
			j.Low, j.High = &n.Low, &n.High
		}
		doc.Nodes = append(doc.Nodes, j)
	}
	return printer.JSON(w, doc)
}

package chart

import (
	"fmt"
	"io"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/stacks"
	"ccagent/ui/printer"
)

// Report is the stacks over time: stretches in which most samples had the same frames.
type Report struct {
	Selection *profile.Selection
	Range     profile.Range // zero: the selection's
	Columns   int           // 0: standardColumns
}

const (
	standardColumns = 100
	standardRows    = 60
	majority        = 0.5 // the part of a column's samples that has a frame which is printed
)

// stretch is columns with the same path.
type stretch struct {
	from, to int
	unknown  string // why it is not known what ran
	path     []int32
	samples  uint64
	least    float64 // of its columns, the least part that the whole path has
}

func (r Report) chart() (*stacks.Chart, []stretch) {
	if r.Range == (profile.Range{}) {
		r.Range = r.Selection.Filter.Range
	}
	if r.Columns <= 0 {
		r.Columns = standardColumns
	}
	c := stacks.ChartOf(r.Selection, r.Range, r.Columns)
	var out []stretch
	for i := range c.Columns {
		x := &c.Columns[i]
		path, of := x.Path, 0.0
		for d, part := range x.Of {
			if part < majority {
				path = x.Path[:d]
				break
			}
			of = part
		}
		if k := len(out) - 1; k >= 0 && out[k].unknown == x.Why && (out[k].samples == 0) == (x.Samples == 0) && same(out[k].path, path) {
			out[k].to++
			out[k].samples += x.Samples
			out[k].least = min(out[k].least, of)
			continue
		}
		out = append(out, stretch{i, i + 1, x.Why, path, x.Samples, of})
	}
	return c, out
}

// same reports whether two paths end at the same node.
func same(a, b []int32) bool {
	return len(a) == len(b) && (len(a) == 0 || a[len(a)-1] == b[len(b)-1])
}

// Text implements printer.Report.
func (r Report) Text(w io.Writer, o printer.Options) error {
	p := printer.New(w, o)
	c, runs := r.chart()
	p.Wrap(p.Bold, "   ", printer.Fit(o.File, 60), "stacks over time", fmt.Sprintf("columns of %s", format.Duration(c.Step)))
	p.Line("")
	if c.Tree.Total == 0 {
		p.Note("No sample is kept.")
		return p.Flush()
	}
	p.Line(p.Bold("     from        to  samples  least  stack, outermost first"))
	n := o.Rows(len(runs), standardRows)
	for i := range runs[:n] {
		x := &runs[i]
		var names []string
		for _, id := range x.path {
			names = append(names, c.Tree.Nodes[id].Name)
		}
		least, what := format.Column(x.least), strings.Join(names, " > ")
		switch {
		case x.unknown != "":
			least, what = "", "(not watched: "+x.unknown+")"
		case x.samples == 0:
			least, what = "", "(nothing ran)"
		case len(x.path) == 0:
			least, what = "", "(no frame in half of the samples; --thread shows one thread)"
		}
		at := func(col int) string {
			return fmt.Sprintf("%.3fs", float64(min(c.From+uint64(col)*c.Step, c.To))/1e9)
		}
		room := 0
		if p.Width > 0 {
			room = max(20, p.Columns()-37)
		}
		p.Line(printer.PadLeft(at(x.from), 9), " ", printer.PadLeft(at(x.to), 9), " ", printer.PadLeft(fmt.Sprint(x.samples), 8), " ",
			printer.PadLeft(least, 6), "  ", printer.Fit(what, room))
	}
	if rest := len(runs) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "stretch"))))
	}
	p.Line("")
	p.Note("The frames that at least half of a column's samples had, as long as they stay the same; least: the least part of a column's samples that had all of them.")
	return p.Flush()
}

type chartJSON struct {
	Step      float64       `json:"column_seconds"`
	Stretches []stretchJSON `json:"stretches"`
}

type stretchJSON struct {
	From    float64  `json:"from_seconds"`
	To      float64  `json:"to_seconds"`
	Samples uint64   `json:"samples"`
	Watched bool     `json:"watched"`
	Least   *float64 `json:"least"`
	Stack   []string `json:"stack"`
}

// JSON implements printer.Report.
func (r Report) JSON(w io.Writer, _ printer.Options) error {
	c, runs := r.chart()
	doc := chartJSON{Step: float64(c.Step) / 1e9, Stretches: []stretchJSON{}}
	for i := range runs {
		x := &runs[i]
		j := stretchJSON{
			From: float64(min(c.From+uint64(x.from)*c.Step, c.To)) / 1e9, To: float64(min(c.From+uint64(x.to)*c.Step, c.To)) / 1e9,
			Samples: x.samples, Watched: x.unknown == "", Stack: []string{},
		}
		for _, id := range x.path {
			j.Stack = append(j.Stack, c.Tree.Nodes[id].Name)
		}
		if x.samples > 0 {
			j.Least = &x.least
		}
		doc.Stretches = append(doc.Stretches, j)
	}
	return printer.JSON(w, doc)
}

package centres

import (
	"fmt"
	"io"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
)

const ccsRows = 40

// Report is the figures of cost centres, or of cost-centre stacks.
// Stacks without weight of their own are left out unless all rows are asked for.
type Report struct {
	Selection *profile.Selection
	Costs     *centres.Costs
}

// Text implements printer.Report.
func (r Report) Text(w io.Writer, o printer.Options) error {
	s, c := r.Selection, r.Costs
	p := newOut(w, o)
	p.Heading(s)
	if s.Samples == 0 {
		return p.Flush()
	}
	stacks := c.Mode.Stacks()
	rows, depth := shownRows(c, o.Top < 0)
	what := "cost centre"
	if stacks {
		what = "cost-centre stack"
	}
	further := ""
	if p.inheritedSure() {
		further = p.SureHead()
	}
	p.Line(p.Bold("  indiv " + p.SureHead() + "   incl" + further + "   forced  " + what))
	n := o.Rows(len(rows), ccsRows)
	sure, tied := c.Sure(s, rows[:n]), false
	for k, i := range rows[:n] {
		p.centreRow(s, c, i, depth[i], sure[k])
		tied = tied || sure[k].Tied && (!stacks || p.inheritedSure())
	}
	if rest := len(rows) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	p.Line("")
	p.SureNote(tied)
	sum := uint64(0)
	for i := range c.Rows {
		sum += c.Rows[i].Individual
	}
	p.Note("the individual figures of %s sum to %s of the selection", format.Plural(uint64(len(c.Rows)), "row"), format.Percent(s.Fraction(sum)))
	p.Note("in a centre's own code %s, of callees %s, forced %s, in no centre %s", format.Percent(s.Fraction(c.Own)), format.Percent(s.Fraction(c.Subsumed)), format.Percent(s.Fraction(c.Forced)), format.Percent(s.Fraction(c.Pseudo)))
	if c.Forced > 0 {
		p.Note("forced: thunks that the centre forced and need not have built")
	}
	if c.Gap > 0 {
		p.Note("%s was attributed past frames that are missing from the stacks", format.Percent(s.Fraction(c.Gap)))
	}
	if c.Deep > 0 {
		p.Note("%s is in stacks of more centres than are kept: choose fewer centres", format.Percent(s.Fraction(c.Deep)))
	}
	return p.Flush()
}

// shownRows are the rows worth printing, and how far each is indented: of stacks
// without weight of their own only those that several stand on.
func shownRows(c *centres.Costs, all bool) (rows, depth []int) {
	depth = make([]int, len(c.Rows))
	if !c.Mode.Stacks() {
		for i := range c.Rows {
			rows = append(rows, i)
		}
		return rows, depth
	}
	above := make([]int, len(c.Rows)) // stacks right above
	for i := range c.Rows {
		if up := c.Rows[i].Parent; up >= 0 {
			above[up]++
		}
	}
	shown := make([]bool, len(c.Rows))
	for i := range c.Rows {
		r := &c.Rows[i]
		shown[i] = all || r.Individual > 0 || above[i] > 1
		if shown[i] {
			rows = append(rows, i)
		}
		if r.Parent >= 0 {
			depth[i] = depth[r.Parent]
			if shown[r.Parent] {
				depth[i]++
			}
		}
	}
	return rows, depth
}

// inheritedSure reports whether there is room for the intervals of the inherited figures.
func (p out) inheritedSure() bool { return p.Columns() >= 80 }

func (p out) centreRow(s *profile.Selection, c *centres.Costs, i, indent int, sure centres.Sure) {
	r := &c.Rows[i]
	individual, inherited := s.Fraction(r.Individual), s.Fraction(r.Inherited)
	used := 27 + safe.Width(p.SureHead())
	left := " " + p.Heat(individual, format.Column(individual)) + " " + p.Sure(individual, profile.Sure{Interval: sure.Individual, Tied: sure.Tied && !c.Mode.Stacks()}) + " " + p.FaintZero(inherited)
	if p.inheritedSure() {
		left += p.Sure(inherited, profile.Sure{Interval: sure.Inherited, Tied: sure.Tied && c.Mode.Stacks()})
		used += safe.Width(p.SureHead())
	}
	left += "  " + p.FaintZero(s.Fraction(r.Forced)) + "   "
	indent = min(indent, 30)
	room := 0
	if p.Width > 0 {
		room = max(12, p.Columns()-used-indent)
	}
	name := printer.Fit(r.Centre.Name, room)
	if r.Centre.Pseudo {
		name = p.Style("3", name)
	}
	where := ""
	if sp := r.Centre.Span; sp != "" && sp != r.Centre.Name {
		where = "  " + printer.Fit(sp, 60)
		if room > 0 && len(r.Centre.Name)+len(where) > room {
			where = ""
		}
	}
	p.Line(left, strings.Repeat(" ", indent), name, p.Faint(where))
}

type ccsJSON struct {
	Event    *string      `json:"event"`
	Mode     string       `json:"mode"`
	Total    uint64       `json:"total"`
	Forced   float64      `json:"forced"`
	Rows     []ccsRowJSON `json:"rows"`
	Unit     *string      `json:"unit"`
	Samples  uint64       `json:"samples"`
	Own      float64      `json:"own"`
	Subsumed float64      `json:"subsumed"`
	Pseudo   float64      `json:"pseudo"`
	Gap      float64      `json:"gap"`
	Deep     float64      `json:"deep"`
	Notes    bool         `json:"notes"`
	// Effective is what the samples are worth by their weights.
	Effective float64 `json:"effective_samples"`
}

type ccsRowJSON struct {
	CostCentre string  `json:"cost_centre"`
	Module     *string `json:"module"`
	Span       *string `json:"span"`
	Individual float64 `json:"individual"`
	Inherited  float64 `json:"inherited"`
	// Entries is null: samples do not count entries.
	Entries *uint64 `json:"entries"`
	// Parent names the centre below on the stack; ParentRow is its position in
	// rows, −1 where there is none.
	Parent           *string  `json:"parent"`
	ParentRow        int      `json:"parent_row"`
	Package          *string  `json:"package"`
	Pseudo           bool     `json:"pseudo"`
	Forced           float64  `json:"forced"`
	InheritedForced  float64  `json:"inherited_forced"`
	Samples          uint64   `json:"samples"`
	printer.SureJSON          // of Individual; of stacks, Tied is of Inherited
	InheritedLow     *float64 `json:"inherited_low"`
	InheritedHigh    *float64 `json:"inherited_high"`
}

// JSON implements printer.Report. Figures are fractions of the
// total.
func (r Report) JSON(w io.Writer, o printer.Options) error {
	s, c := r.Selection, r.Costs
	sum := s.Summary()
	doc := ccsJSON{
		Event: printer.Known(sum.Event), Mode: c.Mode.String(), Total: c.Total, Forced: s.Fraction(c.Forced), Rows: []ccsRowJSON{}, Unit: printer.Known(sum.Unit),
		Samples: c.Samples, Own: s.Fraction(c.Own), Subsumed: s.Fraction(c.Subsumed), Pseudo: s.Fraction(c.Pseudo),
		Gap: s.Fraction(c.Gap), Deep: s.Fraction(c.Deep), Notes: s.Profile.HasNotes(), Effective: s.Batched().Effective(),
	}
	rows := make([]int, o.Rows(len(c.Rows), len(c.Rows)))
	for i := range rows {
		rows[i] = i
	}
	sure := c.Sure(s, rows)
	for i := range rows {
		r := &c.Rows[i]
		row := ccsRowJSON{
			CostCentre: r.Centre.Name, Module: printer.Known(r.Centre.Module), Span: printer.Known(r.Centre.Span), Package: printer.Known(r.Centre.Package), Pseudo: r.Centre.Pseudo,
			Individual: s.Fraction(r.Individual), Inherited: s.Fraction(r.Inherited), ParentRow: r.Parent,
			Forced: s.Fraction(r.Forced), InheritedForced: s.Fraction(r.InheritedForced), Samples: r.Samples,
			SureJSON: printer.SureOf(profile.Sure{Interval: sure[i].Individual, Tied: sure[i].Tied}),
		}
		row.InheritedLow, row.InheritedHigh = printer.Bounds(sure[i].Inherited)
		if r.Parent >= 0 {
			row.Parent = printer.Known(c.Rows[r.Parent].Centre.Name)
		}
		doc.Rows = append(doc.Rows, row)
	}
	return printer.JSON(w, doc)
}

// ExpensiveStack prints the stack with the largest individual figure, topmost
// centre first. The figures are of ModeStacks.
func ExpensiveStack(w io.Writer, s *profile.Selection, c *centres.Costs, o printer.Options) error {
	p := newOut(w, o)
	best := c.MostExpensive()
	if best < 0 {
		p.Line("No sample of this event is in the selection.")
		return p.Flush()
	}
	for i, x := range c.Stack(best) {
		mark := "  on "
		if i == 0 {
			mark = format.Percent(s.Fraction(c.Rows[best].Individual)) + " "
		}
		p.Line(printer.PadRight(mark, 6), printer.Fit(x.Name, 0))
	}
	return p.Flush()
}

// Graph writes the call graph of cost centres for Graphviz: nodes with their
// individual and inherited figures, arcs with the number of stacks that have
// them. The figures are of ModeStacks.
func Graph(w io.Writer, s *profile.Selection, c *centres.Costs, o printer.Options) error {
	p := newOut(w, o)
	p.Line("digraph cost_centres {")
	p.Line(`  node [shape=box, fontname="sans-serif"];`)
	ids := make(map[*centres.Centre]int)
	for i := range c.ByCentre {
		r := &c.ByCentre[i]
		ids[r.Centre] = i
		inherited := s.Fraction(r.Inherited)
		p.Linef("  n%d [label=%s, penwidth=%.1f];", i, dotString(fmt.Sprintf("%s\n%s individual\n%s inherited", printer.Fit(r.Centre.Name, 0),
			format.Percent(s.Fraction(r.Individual)), format.Percent(inherited))), 1+4*inherited)
	}
	arcs := c.Arcs()
	for i := range arcs {
		a := &arcs[i]
		p.Linef("  n%d -> n%d [label=\"%d\", penwidth=%.1f];", ids[a.From], ids[a.To], a.Stacks, 1+4*s.Fraction(a.Weight))
	}
	p.Line("}")
	return p.Flush()
}

// dotString quotes text for Graphviz.
func dotString(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

// out is a printer with what only these reports have.
type out struct{ *printer.Printer }

func newOut(w io.Writer, o printer.Options) out { return out{printer.New(w, o)} }

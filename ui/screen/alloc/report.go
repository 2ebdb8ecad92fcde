package alloc

import (
	"fmt"
	"io"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/diagnosis"
	"ccagent/profile/interval"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
)

// standardRows is how many rows the text has where the user does not say.
const standardRows = 30

// Report is what was allocated, by closure.
type Report struct {
	Profile *profile.Profile
	Filter  closures.Filter
}

// Text implements printer.Report.
func (r Report) Text(w io.Writer, o printer.Options) error {
	p := printer.New(w, o)
	t := closures.Of(r.Profile, r.Filter)
	parts := []string{printer.Fit(o.File, 60), "allocated, by closure"}
	if t.Blocks > 0 {
		parts = append(parts, sampled(t))
	}
	p.Wrap(p.Bold, "   ", parts...)
	p.Line("")
	if t.Blocks == 0 {
		why := diagnosis.NoClosures(r.Profile)
		if why == "" {
			why = "No block was sampled in the range."
		}
		p.Note("%s", why)
		return p.Flush()
	}
	if said := fewBlocks(t); said != "" {
		p.Wrap(p.Bold, " ", strings.Fields(said)...)
		p.Line("")
	}
	p.Line(p.Bold(" share" + p.SureHead() + "   bytes  kind         closure"))
	n := o.Rows(len(t.Rows), standardRows)
	tied := false
	for i := range t.Rows[:n] {
		printRow(p, &t.Rows[i])
		tied = tied || t.Rows[i].Tied
	}
	if rest := len(t.Rows) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	p.Line("")
	p.SureNote(tied)
	p.Note("share: of the bytes of small objects; objects of 3.2 kB and more are not in it. bytes: of one closure, on average.")
	if evaluated(t) >= noteWorth {
		p.Note("(evaluated thunks) were thunks when they were allocated: which, is overwritten when they are evaluated.")
	}
	return p.Flush()
}

// few is the number of blocks of equal weight below which a table says first on how few it rests.
const few = 30

// fewBlocks says what a table is worth that rests on a handful of blocks; empty if it rests on more.
func fewBlocks(t *closures.Table) string {
	if t.Effective >= few {
		return ""
	}
	_, unseen := interval.Few(t.Effective)
	return fmt.Sprintf("Only %s: what fills stretches of its own, up to %.0f%% of the bytes, may not be seen at all", sampled(t), 100*unseen)
}

// noteWorth is the share from which on a note says what a row is.
const noteWorth = 0.02

func evaluated(t *closures.Table) float64 {
	for i := range t.Rows {
		if t.Rows[i].Name == closures.Evaluated {
			return t.Rows[i].Share
		}
	}
	return 0
}

// sampled says what a table rests on.
func sampled(t *closures.Table) string {
	out := format.Plural(uint64(t.Blocks), "block") + " of 4 KiB sampled"
	if t.Effective < 0.8*float64(t.Blocks) {
		out += fmt.Sprintf(", worth %.0f of equal weight", t.Effective)
	}
	return out
}

func printRow(p *printer.Printer, r *closures.Row) {
	left := p.Heat(r.Share, format.Column(r.Share)) + p.Sure(r.Share, sureOf(r)) + printer.PadLeft(mean(r), 8) + "  " + printer.PadRight(r.Kind, 13)
	room := 0
	if p.Width > 0 {
		room = max(12, p.Columns()-29-safe.Width(p.SureHead()))
	}
	name, where := printer.Fit(r.Name, room), place(r)
	if r.Kind == "" {
		name = p.Style("3", name)
	}
	if where == "" || room > 0 && room-safe.Width(printer.Fit(r.Name, room))-2 < 8 {
		p.Line(left, name)
		return
	}
	if room > 0 {
		where = printer.Fit(where, room-max(safe.Width(printer.Fit(r.Name, room)), 28)-2)
	}
	p.Line(left, name, strings.Repeat(" ", max(0, 28-safe.Width(printer.Fit(r.Name, room)))), "  ", p.Faint(where))
}

// place is where closures of a row are written: a file and line, or the package.
func place(r *closures.Row) string {
	switch {
	case r.Where() != "":
		return r.Where()
	case r.Near:
		return "by the nearest symbol"
	case r.Package != "" && r.Package != "main":
		return r.Package
	}
	return ""
}

// sureOf says how sure a row's share and its order are.
func sureOf(r *closures.Row) profile.Sure {
	return profile.Sure{Interval: interval.Interval{Low: r.Low, High: r.High, Effective: r.Effective}, Tied: r.Tied}
}

// mean is the mean size of a row's closures.
func mean(r *closures.Row) string { return fmt.Sprintf("%.0f", r.Mean) }

type allocJSON struct {
	Blocks  int    `json:"blocks"`
	Sampled uint64 `json:"sampled_bytes"`
	// Effective is how many blocks of equal weight would say as much.
	Effective float64   `json:"effective_samples"`
	Rows      []rowJSON `json:"rows"`
	// Why says why there is nothing.
	Why *string `json:"problem"`
}

type rowJSON struct {
	Closure string  `json:"closure"`
	Kind    *string `json:"kind"`
	Module  *string `json:"module"`
	Package *string `json:"package"`
	File    *string `json:"file"`
	Span    *string `json:"span"`
	Line    *uint32 `json:"line"`
	Near    bool    `json:"near"`
	Share   float64 `json:"share"`
	printer.SureJSON
	Mean   float64 `json:"mean_bytes"`
	Found  uint64  `json:"closures"`
	Blocks int     `json:"blocks"`
}

// JSON implements printer.Report.
func (r Report) JSON(w io.Writer, o printer.Options) error {
	t := closures.Of(r.Profile, r.Filter)
	doc := allocJSON{Blocks: t.Blocks, Sampled: t.Read, Effective: t.Effective, Rows: []rowJSON{}}
	if t.Blocks == 0 {
		doc.Why = printer.Known(diagnosis.NoClosures(r.Profile))
	}
	for i := range t.Rows[:o.Rows(len(t.Rows), len(t.Rows))] {
		r := &t.Rows[i]
		j := rowJSON{
			Closure: r.Name, Kind: printer.Known(r.Kind), Module: printer.Known(r.Module), Package: printer.Known(r.Package), File: printer.Known(r.File), Line: printer.Known(r.Span.Line), Near: r.Near,
			Share: r.Share, SureJSON: printer.SureOf(sureOf(r)), Mean: r.Mean, Found: r.Found, Blocks: r.Blocks,
		}
		if r.Span.Col > 0 {
			j.Span = printer.Known(r.Span.String())
		}
		doc.Rows = append(doc.Rows, j)
	}
	return printer.JSON(w, doc)
}

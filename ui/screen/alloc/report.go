package alloc

import (
	"fmt"
	"io"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/diagnosis"
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
	if t.Blocks < few {
		p.Note("Only %s: shares say little.", sampled(t))
		p.Line("")
	}
	p.Line(p.Bold(" share  ±95%   bytes  kind         closure"))
	n := o.Rows(len(t.Rows), standardRows)
	for i := range t.Rows[:n] {
		printRow(p, &t.Rows[i])
	}
	if rest := len(t.Rows) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	p.Line("")
	p.Note("share: of the bytes of small objects; objects of 3.2 kB and more are not in it. bytes: of one closure, on average.")
	if evaluated(t) >= noteWorth {
		p.Note("(evaluated thunks) were thunks when they were allocated: which, is overwritten when they are evaluated.")
	}
	return p.Flush()
}

// few is the number of blocks below which the text begins with a warning.
const few = 30

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
	return fmt.Sprintf("%s of 4 KiB sampled", format.Plural(uint64(t.Blocks), "block"))
}

func printRow(p *printer.Printer, r *closures.Row) {
	left := p.Heat(r.Share, format.Column(r.Share)) + printer.PadLeft(plusMinus(r), 7) + printer.PadLeft(mean(r), 8) + "  " + printer.PadRight(r.Kind, 13)
	room := 0
	if p.Width > 0 {
		room = max(12, p.Columns()-36)
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

// plusMinus is half of the interval of a row's share: "±1.2".
func plusMinus(r *closures.Row) string {
	return format.PlusMinus(r.Share, max(r.High-r.Share, r.Share-r.Low))
}

// mean is the mean size of a row's closures.
func mean(r *closures.Row) string { return fmt.Sprintf("%.0f", r.Mean) }

type allocJSON struct {
	Blocks  int       `json:"blocks"`
	Sampled uint64    `json:"sampled_bytes"`
	Rows    []rowJSON `json:"rows"`
	// Why says why there is nothing.
	Why string `json:"problem"`
}

type rowJSON struct {
	Closure   string  `json:"closure"`
	Kind      string  `json:"kind"`
	Module    string  `json:"module"`
	Package   string  `json:"package"`
	File      string  `json:"file"`
	Span      string  `json:"span"`
	Line      uint32  `json:"line"`
	Near      bool    `json:"near"`
	Share     float64 `json:"share"`
	Low       float64 `json:"low"`
	High      float64 `json:"high"`
	Effective float64 `json:"effective_samples"`
	Mean      float64 `json:"mean_bytes"`
	Found     uint64  `json:"closures"`
	Blocks    int     `json:"blocks"`
}

// JSON implements printer.Report.
func (r Report) JSON(w io.Writer, o printer.Options) error {
	t := closures.Of(r.Profile, r.Filter)
	doc := allocJSON{Blocks: t.Blocks, Sampled: t.Read, Rows: []rowJSON{}}
	if t.Blocks == 0 {
		doc.Why = diagnosis.NoClosures(r.Profile)
	}
	for i := range t.Rows[:o.Rows(len(t.Rows), len(t.Rows))] {
		r := &t.Rows[i]
		j := rowJSON{
			Closure: r.Name, Kind: r.Kind, Module: r.Module, Package: r.Package, File: r.File, Line: r.Span.Line, Near: r.Near,
			Share: r.Share, Low: r.Low, High: r.High, Effective: r.Effective, Mean: r.Mean, Found: r.Found, Blocks: r.Blocks,
		}
		if r.Span.Col > 0 {
			j.Span = r.Span.String()
		}
		doc.Rows = append(doc.Rows, j)
	}
	return printer.JSON(w, doc)
}

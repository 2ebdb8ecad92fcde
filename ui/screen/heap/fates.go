package heap

import (
	"fmt"
	"io"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/diagnosis"
	"ccagent/ui/printer"
)

// FatesReport is what was allocated between two censuses, and what of it is alive.
type FatesReport struct {
	Profile *profile.Profile
	Range   profile.Range
	Number  int // which of the log's heap profiles
}

// fates is the table; why says what is missing of it.
func (r FatesReport) fates() (f *closures.Fates, why string) {
	if why := diagnosis.NoClosures(r.Profile); why != "" {
		return nil, why
	}
	switch {
	case r.Number >= len(r.Profile.HeapProfiles):
		return nil, diagnosis.NoHeap(r.Profile)
	case !r.Profile.HeapProfiles[r.Number].HasKinds():
		return nil, diagnosis.NoKinds()
	}
	if f = closures.FatesOf(r.Profile, &r.Profile.HeapProfiles[r.Number], r.Range); f == nil {
		return nil, "There are not two censuses with blocks of the nursery sampled between them: record for longer with -e alloc,heap."
	}
	return f, ""
}

// fatesSentence says how much of what was allocated is alive.
func fatesSentence(f *closures.Fates) string {
	grown := int64(f.After) - int64(f.Before)
	if grown <= 0 {
		return fmt.Sprintf("%s were allocated in small objects, and no more is live than before: as much has died", format.Bytes(uint64(f.Allocated)))
	}
	return fmt.Sprintf("%s were allocated in small objects, and %s more is live: %s of it", format.Bytes(uint64(f.Allocated)), format.Bytes(uint64(grown)), format.Percent(min(1, float64(grown)/max(1, f.Allocated))))
}

// between says which two censuses are compared.
func between(f *closures.Fates) string {
	text := fmt.Sprintf("from %s to %s", moment(f.From, f.To), moment(f.To, f.To))
	if f.Largest {
		text += " (the largest census)"
	}
	return text
}

// survives is a row's part that survives, in words.
func survives(x *closures.Fate) string {
	part, known := x.Survives()
	switch {
	case !known:
		return "-"
	case part == 0:
		return "none"
	}
	return format.Percent(part)
}

// fateTitle is a row's name and place.
func fateTitle(x *closures.Fate) string {
	name := x.Name
	if x.Kind != "" && x.Kind != "constructor" {
		name = x.Kind + " " + name
	}
	if where := x.Where(); where != "" {
		name += "  " + where
	}
	return name
}

// half is half a row's interval.
func half(x *closures.Fate) uint64 { return uint64((x.AllocatedHigh - x.AllocatedLow) / 2) }

const fateRows = 16

// Text implements printer.Report.
func (r FatesReport) Text(w io.Writer, o printer.Options) error {
	p := newOut(w, o)
	f, why := r.fates()
	if why != "" {
		p.Note("%s", why)
		return p.Flush()
	}
	p.Wrap(p.Bold, "   ", printer.Fit(o.File, 60), "allocated, then retained", between(f), fmt.Sprintf("%s sampled", format.Plural(uint64(f.Blocks), "block")))
	p.Note("%s.", fatesSentence(f))
	row := func(x *closures.Fate) {
		p.Line(printer.PadLeft(format.Bytes(uint64(x.Allocated)), 12), printer.PadLeft("±"+format.Bytes(half(x)), 13), printer.PadLeft(format.Bytes(x.Live), 12), printer.PadLeft(format.Signed(x.Grown), 12), printer.PadLeft(survives(x), 10), "  ",
			printer.Fit(fateTitle(x), p.room(61)))
	}
	head := "   allocated         ±95%        live      growth  survives  "
	p.Line("")
	p.Line(p.Bold(head + "what is allocated most"))
	n := o.Rows(len(f.Rows), fateRows)
	for i := range f.Rows[:n] {
		row(&f.Rows[i])
	}
	if rest := len(f.Rows) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	if grew := f.Grew(); len(grew) > 0 {
		p.Line("")
		p.Line(p.Bold(head + "what survives"))
		for i := range grew[:o.Rows(len(grew), growthRows)] {
			row(&grew[i])
		}
	}
	p.Line("")
	p.Note("allocated: small objects, by sampled blocks; objects of 3.2 kB and more are not in it.")
	p.Note("survives: growth by what was allocated. A thunk that is evaluated is one no more: it dies, and its value is a row of its own.")
	return p.Flush()
}

type fatesJSON struct {
	Problem   *string    `json:"problem"`
	From      *float64   `json:"from_seconds"`
	To        *float64   `json:"to_seconds"`
	Blocks    int        `json:"blocks"`
	Allocated float64    `json:"allocated_bytes"`
	Before    uint64     `json:"from_bytes"`
	After     uint64     `json:"to_bytes"`
	Rows      []fateJSON `json:"rows"`
}

type fateJSON struct {
	Closure   string   `json:"closure"`
	Kind      *string  `json:"kind"`
	Module    *string  `json:"module"`
	Package   *string  `json:"package"`
	File      *string  `json:"file"`
	Line      *uint32  `json:"line"`
	Allocated float64  `json:"allocated_bytes"`
	Low       float64  `json:"allocated_low_bytes"`
	High      float64  `json:"allocated_high_bytes"`
	Live      uint64   `json:"live_bytes"`
	Grown     int64    `json:"growth_bytes"`
	Survives  *float64 `json:"survives"`
}

// JSON implements printer.Report.
func (r FatesReport) JSON(w io.Writer, o printer.Options) error {
	doc := fatesJSON{Rows: []fateJSON{}}
	f, why := r.fates()
	doc.Problem = printer.Known(why)
	if f == nil {
		return printer.JSON(w, doc)
	}
	from, to := float64(f.From)/1e9, float64(f.To)/1e9
	doc.From, doc.To, doc.Blocks, doc.Allocated, doc.Before, doc.After = &from, &to, f.Blocks, f.Allocated, f.Before, f.After
	for i := range f.Rows[:o.Rows(len(f.Rows), len(f.Rows))] {
		x := &f.Rows[i]
		j := fateJSON{
			Closure: x.Name, Kind: printer.Known(x.Kind), Module: printer.Known(x.Module), Package: printer.Known(x.Package), File: printer.Known(x.File), Line: printer.Known(x.Span.Line),
			Allocated: x.Allocated, Low: x.AllocatedLow, High: x.AllocatedHigh, Live: x.Live, Grown: x.Grown,
		}
		if part, known := x.Survives(); known {
			j.Survives = &part
		}
		doc.Rows = append(doc.Rows, j)
	}
	return printer.JSON(w, doc)
}

// fatesListing is the table of the screen.
func fatesListing(p *profile.Profile) *listing {
	l := &listing{mode: allocatedMode, figures: []string{"allocated", "live", "growth", "survives"}, heading: "closure", about: "of this row"}
	f, why := FatesReport{Profile: p}.fates()
	if f == nil {
		l.words, l.more = why, func(int) []string { return nil }
		return l.measure()
	}
	l.sum = between(f)
	l.words = fatesSentence(f) + "."
	l.notes = []string{fmt.Sprintf("allocation is estimated by %s of the nursery; large objects are not in it", format.Plural(uint64(f.Blocks), "sampled block")),
		"a thunk that is evaluated is one no more: it dies, and its value is a row of its own"}
	most := 1.0
	for i := range f.Rows {
		most = max(most, f.Rows[i].Allocated)
	}
	for i := range f.Rows {
		x := &f.Rows[i]
		l.rows = append(l.rows, tableRow{
			figures: []string{format.Bytes(uint64(x.Allocated)), format.Bytes(x.Live), format.Signed(x.Grown), survives(x)},
			share:   x.Allocated / most, heat: x.Allocated / max(1, f.Allocated), name: fateTitle(x), at: x.Row,
		})
	}
	l.more = func(i int) []string {
		x := &f.Rows[i]
		return []string{
			fmt.Sprintf("%s allocated, ±%s", format.Bytes(uint64(x.Allocated)), format.Bytes(half(x))),
			fmt.Sprintf("%s live at the end, %s since the first census", format.Bytes(x.Live), format.Signed(x.Grown)),
		}
	}
	return l.measure()
}

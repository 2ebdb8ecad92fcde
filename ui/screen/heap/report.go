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
	"ccagent/profile/timeline"
	"ccagent/ui/chart"
	"ccagent/ui/printer"
)

// Report is what was live over time, by bands, and the heap's size.
type Report struct {
	Profile *profile.Profile
	Range   profile.Range
	Buckets int // columns of the text; 0 means what fits
	Number  int // which of the log's heap profiles
	// Level says what bands are. Band, if it is not empty, chooses those by type or kind whose names have it in them.
	Level closures.Grouping
	Band  string

	in within // a band that was opened, in place of Band
}

// within is a band whose closures are divided further.
type within struct {
	level closures.Grouping
	title string
}

// profile is the heap profile that is shown: one of the log's, or that divided otherwise; nil if there is none. why says what keeps it from
// being divided so.
func (r Report) profile() (hp *columns.HeapProfile, why string) {
	if r.Number >= len(r.Profile.HeapProfiles) {
		return nil, ""
	}
	hp = &r.Profile.HeapProfiles[r.Number]
	switch {
	case r.Level == closures.ByType && r.Band == "" && r.in == (within{}):
		return hp, ""
	case !hp.HasKinds():
		return nil, diagnosis.NoKinds()
	}
	var chosen closures.Choice
	switch {
	case r.in != (within{}):
		chosen = closures.Within(r.Profile, r.in.level, r.in.title)
	case r.Band != "":
		chosen = closures.Named(r.Profile, r.Band)
	}
	return closures.Live(r.Profile, hp, r.Level, chosen), ""
}

const (
	heapLeft   = 9
	heapHeight = 12
	heapBands  = 12 // that have a letter, where Top does not say
)

// Text implements printer.Report.
func (r Report) Text(w io.Writer, o printer.Options) error {
	pr := r.Profile
	p := newOut(w, o)
	cols := r.Buckets
	if cols <= 0 {
		cols = max(10, o.Columns()-heapLeft-6)
	}
	from, to := r.Range.From, r.Range.To
	if to == 0 || to > pr.Duration {
		to = pr.Duration + 1
	}
	var series *timeline.HeapSeries
	hp, whyNot := r.profile()
	if hp != nil {
		series = timeline.Heap(hp, from, to, cols, o.Rows(len(hp.Bands), min(heapBands, len(chart.Letters))))
	}
	parts := []string{printer.Fit(o.File, 60)}
	if hp != nil {
		parts = append(parts, "heap by "+hp.What(), format.Plural(uint64(len(hp.Bands)), "band"), strings.Replace(format.Plural(uint64(series.Censuses), "census"), "censuss", "censuses", 1),
			fmt.Sprintf("peak %s at %s", format.Bytes(series.Peak), moment(series.PeakTime, to)))
		if hp.Restriction != "" {
			parts = append(parts, "only "+printer.Fit(hp.Restriction, 60))
		}
		if only := cmp.Or(r.in.title, r.Band); only != "" {
			parts = append(parts, "only "+printer.Fit(only, 60))
		}
	}
	p.Wrap(p.Bold, "   ", parts...)
	p.Line("")
	if why := cmp.Or(diagnosis.NoHeap(pr), whyNot); why != "" {
		p.Note("%s", why)
	} else if series.Censuses == 0 {
		p.Note("No census of the heap lies in the range.")
	} else if series.Censuses == 1 {
		p.censusTable(hp, series)
	} else {
		p.heapChart(series)
	}
	if hp != nil && atRest(hp) {
		p.Note("%s.", restNote)
	}
	p.heapLines(pr, from, to, cols)
	if series != nil && series.Censuses > 1 {
		p.Line("")
		p.heapTable(hp, series)
		if g := timeline.HeapGrowth(hp, from, to); g != nil {
			p.growth(hp, g, to, o.Rows(len(g.Bands), growthRows))
		}
	}
	return p.Flush()
}

func (p out) heapChart(s *timeline.HeapSeries) {
	limit := chart.Limit(s.Peak)
	cells := chart.Bands(s, heapHeight, limit)
	for y, row := range cells {
		label := ""
		switch y {
		case 0:
			label = format.ShortBytes(limit)
		case heapHeight / 2:
			label = format.ShortBytes(limit / 2)
		}
		var b strings.Builder
		for _, c := range row {
			b.WriteString(chart.Letter(c))
		}
		p.Line(printer.PadLeft(label, heapLeft-2), " |", b.String())
	}
	width := len(s.Total)
	axis, end := moment(s.From, s.To), moment(s.To, s.To)
	if gap := width - len(axis) - len(end); gap > 0 {
		axis += strings.Repeat(" ", gap) + end
	}
	p.Line(printer.PadLeft("0", heapLeft-2), " +", strings.Repeat("-", width))
	p.Line(strings.Repeat(" ", heapLeft), p.Faint(axis))
}

// heapLines prints the heap's sizes and the pauses below the chart.
func (p out) heapLines(pr *profile.Profile, from, to uint64, cols int) {
	unwatched := timeline.Unwatched(pr, "gc", from, to, max(1, (to-from+uint64(cols)-1)/uint64(cols)), cols)
	for _, k := range []struct {
		kind columns.HeapKind
		name string
	}{{columns.HeapLive, "live"}, {columns.HeapBlocks, "blocks"}, {columns.HeapSize, "heap"}} {
		line, top := timeline.HeapLine(pr, k.kind, from, to, cols)
		if top > 0 {
			p.Line(printer.PadLeft(k.name, heapLeft-2), "  ", chart.Broken(chart.Levels(line), unwatched), p.Faint(" "+format.ShortBytes(top)))
		}
	}
	if ps := timeline.PausesIn(timeline.Pauses(pr), profile.Range{From: from, To: to}); len(ps) > 0 {
		p.Line(printer.PadLeft("gc", heapLeft-2), "  ", chart.Broken(pauseLetters(ps, from, to, cols), unwatched))
		p.Line("")
		all, _ := timeline.SumPauses(ps)
		p.Note("gc: the oldest generation collected in a column: %s, %s in all, longest %s; ccview gc says more",
			format.Plural(all.Count, "pause"), format.Duration(all.TotalNs), format.Duration(all.MaxNs))
	}
	if slices.Contains(unwatched, true) {
		p.Note("%c collections, which report the sizes, were not watched: nobody knows", chart.NotWatched)
	}
}

// pauseLetters gives for each column the oldest generation collected in it.
func pauseLetters(ps []timeline.Pause, from, to uint64, cols int) string {
	out := make([]byte, cols)
	for i := range out {
		out[i] = ' '
	}
	step := max(1, (to-from+uint64(cols)-1)/uint64(cols))
	for i := range ps {
		x := &ps[i]
		sign := byte('g')
		if x.Generation >= 0 {
			sign = '0' + byte(min(x.Generation, 9))
		}
		first, last := (max(x.Start, from)-from)/step, (min(max(x.End, x.Start+1), to)-1-from)/step
		for c := first; c <= last && c < uint64(cols); c++ {
			if out[c] == ' ' || out[c] == 'g' || sign != 'g' && sign > out[c] {
				out[c] = sign
			}
		}
	}
	return strings.TrimRight(string(out), " ")
}

// censusTable prints the bands of the only census: nothing is known of other moments.
func (p out) censusTable(hp *columns.HeapProfile, s *timeline.HeapSeries) {
	drawn, margins := s.Drawn > 0, 0
	head := "        bytes"
	if drawn {
		margins = 13
		head += "            ±"
	}
	head += "   share"
	numbers := numbersOf(hp, s)
	counts := 0
	if numbers != nil {
		counts = 12
		head += "    closures"
	}
	p.Line(p.Bold(head + "  band"))
	row := func(name string, bytes uint64, margin, number string) {
		p.Line(printer.PadLeft(format.Bytes(bytes), 13), printer.PadLeft(margin, margins), printer.PadLeft(format.Percent(float64(bytes)/float64(max(s.Peak, 1))), 8), printer.PadLeft(number, counts), "  ",
			printer.Fit(name, p.room(23+margins+counts)))
	}
	for i := range s.Rows {
		margin := ""
		if drawn {
			margin = format.Bytes(chart.Peak(s.Rows[i].Margins))
		}
		number := ""
		if numbers != nil {
			number = format.Count(numbers[s.Rows[i].Band])
		}
		row(hp.Bands[s.Rows[i].Band].Title(), s.Rows[i].Peak, margin, number)
	}
	if s.Others > 0 {
		row(fmt.Sprintf("%d more: --top 0 prints all", s.Others), chart.Peak(s.Other), "", "")
	}
	if drawn {
		p.Note("%s", drawnNote(hp))
	}
}

// numbersOf is how many closures each band has at the only census of a series; nil if that was not counted.
func numbersOf(hp *columns.HeapProfile, s *timeline.HeapSeries) []uint64 {
	for i := range hp.Censuses {
		if c := &hp.Censuses[i]; c.How != nil && c.Time >= s.From && c.Time < s.To {
			all := make([]uint64, len(hp.Bands))
			hp.EachNumber(i, func(band int, number uint64) { all[band] += number })
			return all
		}
	}
	return nil
}

const restNote = "The program was counted where it stood, not at the end of a collection: what has died since the last one is counted too"

// atRest reports whether any census was of a program between its collections.
func atRest(hp *columns.HeapProfile) bool {
	return slices.ContainsFunc(hp.Censuses, func(c columns.HeapCensus) bool { return c.How != nil && c.How.AtRest })
}

// censusNotes are what is to be known of the figures of a heap profile.
func censusNotes(hp *columns.HeapProfile) (notes []string) {
	if atRest(hp) {
		notes = append(notes, restNote)
	}
	if note := drawnNote(hp); note != "" {
		notes = append(notes, note)
	}
	return notes
}

// drawnNote says how much was counted of a heap of which not all was.
func drawnNote(hp *columns.HeapProfile) string {
	n, last := 0, (*eventlog.HeapDraw)(nil)
	for i := range hp.Censuses {
		if d := hp.Censuses[i].Draw; d != nil {
			n, last = n+1, d
		}
	}
	if last == nil {
		return ""
	}
	of := fmt.Sprintf("a random %s of %s megablocks were counted", format.Count(uint64(last.Drawn)), format.Count(uint64(last.Megablocks)))
	if n > 1 || len(hp.Censuses) > 1 {
		of = fmt.Sprintf("of the heap, at %d of %d censuses, a random part was counted (the last time %s of %s megablocks)", n, len(hp.Censuses), format.Count(uint64(last.Drawn)), format.Count(uint64(last.Megablocks)))
	}
	return "±: " + of + ", within --max-pause; the interval holds the true value in 95 of 100 censuses"
}

func (p out) heapTable(hp *columns.HeapProfile, s *timeline.HeapSeries) {
	p.Line(p.Bold("         peak   average      last    growth  band"))
	length := float64(s.To-s.From) / 1e9
	row := func(letter, name string, peakBytes uint64, integral float64, by []uint64) {
		last, grown := by[len(by)-1], format.Signed(int64(by[len(by)-1])-int64(firstOf(by)))
		avg := uint64(0)
		if length > 0 {
			avg = uint64(integral / length)
		}
		room := 0
		if p.Width > 0 {
			room = p.Columns() - 46
		}
		p.Line(" ", letter, printer.PadLeft(format.Bytes(peakBytes), 11), printer.PadLeft(format.Bytes(avg), 10), printer.PadLeft(format.Bytes(last), 10), printer.PadLeft(grown, 11), "  ", printer.Fit(name, room))
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		row(chart.Letter(i), hp.Bands[r.Band].Title(), r.Peak, r.Integral, r.Bytes)
	}
	if s.Others > 0 {
		row(".", fmt.Sprintf("%d more: --top 0 prints all", s.Others), chart.Peak(s.Other), float64(chart.Sum(s.Other))*float64(s.Step)/1e9, s.Other)
	}
	if len(s.Rows) > len(chart.Letters) {
		p.Note("bands from the %dth on are . in the chart", len(chart.Letters)+1)
	}
	p.Note("growth: from the first census on screen to the last")
	if s.Drawn > 0 {
		p.Note("%s", drawnNote(hp))
	}
}

// growthRows is how many bands the growth is told of, where Top does not say.
const growthRows = 6

// growth says which bands have grown between the first and the last census.
func (p out) growth(hp *columns.HeapProfile, g *timeline.Growth, end uint64, most int) {
	p.Line("")
	all := int64(g.After) - int64(g.Before)
	p.Wrap(p.Bold, "   ", fmt.Sprintf("from %s to %s: %s", moment(g.From, end), moment(g.To, end), format.Signed(all)),
		fmt.Sprintf("%s/s", format.Signed(perSecond(all, g.To-g.From))))
	shown := 0
	for i := range g.Bands {
		b := &g.Bands[i]
		if b.Bytes() <= 0 || shown == most {
			break
		}
		if shown++; shown == 1 {
			p.Line(p.Bold("     growth    a second  closures  steps  band that grew"))
		}
		number := "-"
		if b.Counted {
			number = fmt.Sprintf("%+d", b.Gained)
		}
		room := 0
		if p.Width > 0 {
			room = p.Columns() - 42
		}
		p.Line(printer.PadLeft(format.Signed(b.Bytes()), 11), printer.PadLeft(format.Signed(perSecond(b.Bytes(), g.To-g.From)), 12), printer.PadLeft(number, 10),
			printer.PadLeft(fmt.Sprintf("%d/%d", b.Rose, g.Steps), 7), "  ", printer.Fit(hp.Bands[b.Band].Title(), room))
		if b.Margin > 0 {
			p.Line(printer.PadLeft("±"+format.Bytes(b.Margin), 11))
		}
	}
	if shown == 0 {
		p.Note("No band is larger at the last census than at the first.")
		return
	}
	p.Note("steps: in how many steps from one census to the next the band grew. What leaks grows in nearly all; ccagent heap --graph says what keeps it alive.")
}

// perSecond is a growth in a time, ns, by the second.
func perSecond(bytes int64, ns uint64) int64 {
	if ns == 0 {
		return 0
	}
	return int64(float64(bytes) / float64(ns) * 1e9)
}

// moment gives a time, in the unit that fits a log that ends at end.
func moment(t, end uint64) string {
	switch {
	case end >= 2e9:
		return format.Seconds(t)
	case end >= 2e6:
		return fmt.Sprintf("%.1f ms", float64(t)/1e6)
	}
	return fmt.Sprintf("%.1f µs", float64(t)/1e3)
}

// firstOf is the first figure that is not nought.
func firstOf(v []uint64) uint64 {
	for _, x := range v {
		if x > 0 {
			return x
		}
	}
	return 0
}

type heapJSON struct {
	Problem     *string        `json:"problem"`   // why it is not divided as was asked
	Breakdown   *string        `json:"breakdown"` // null if the log has no heap profile
	Restriction *string        `json:"restriction"`
	From        float64        `json:"from_seconds"`
	To          float64        `json:"to_seconds"`
	Censuses    []float64      `json:"census_seconds"`
	Total       []uint64       `json:"total_bytes"` // by census
	Drawn       []*drawnJSON   `json:"drawn"`       // by census; null where the whole heap was counted
	Peak        *uint64        `json:"peak_bytes"`
	PeakTime    *float64       `json:"peak_seconds"`
	Bands       []heapBandJSON `json:"bands"`
	Growth      *growthJSON    `json:"growth"` // null if there are not two censuses
	Live        []heapAtJSON   `json:"live"`
	Size        []heapAtJSON   `json:"size"`
	Blocks      []heapAtJSON   `json:"blocks"`
}

type drawnJSON struct {
	Megablocks uint32 `json:"megablocks"`
	Counted    uint32 `json:"counted"`
	Stood      uint32 `json:"read_while_stopped"`
}

type heapBandJSON struct {
	Band   string   `json:"band"`
	Stack  []string `json:"stack,omitempty"` // cost centres, innermost first
	Source string   `json:"source,omitempty"`
	Peak   uint64   `json:"peak_bytes"`
	Bytes  []uint64 `json:"bytes"` // by census
	// Closures is how many there are, by census; null where they were not counted.
	Closures []*uint64 `json:"closures"`
	// Margins are half the 95 % intervals, by census; null if all of the heap was counted.
	Margins []uint64 `json:"margin_bytes"`
}

type growthJSON struct {
	From   float64          `json:"from_seconds"`
	To     float64          `json:"to_seconds"`
	Before uint64           `json:"from_bytes"`
	After  uint64           `json:"to_bytes"`
	Bytes  int64            `json:"growth_bytes"`
	Steps  int              `json:"steps"`
	Bands  []bandGrowthJSON `json:"bands"`
}

type bandGrowthJSON struct {
	Band     string `json:"band"`
	Source   string `json:"source,omitempty"`
	Before   uint64 `json:"from_bytes"`
	After    uint64 `json:"to_bytes"`
	Bytes    int64  `json:"growth_bytes"`
	Closures *int64 `json:"growth_closures"` // null if they were not counted
	Margin   uint64 `json:"margin_bytes"`
	Rose     int    `json:"steps_grown"`
}

// growthOf gives all bands that differ between the first and the last census.
func growthOf(p *profile.Profile, hp *columns.HeapProfile, from, to uint64) *growthJSON {
	g := timeline.HeapGrowth(hp, from, to)
	if g == nil {
		return nil
	}
	doc := &growthJSON{From: float64(g.From) / 1e9, To: float64(g.To) / 1e9, Before: g.Before, After: g.After, Bytes: int64(g.After) - int64(g.Before), Steps: g.Steps, Bands: []bandGrowthJSON{}}
	for i := range g.Bands {
		b := &g.Bands[i]
		j := bandGrowthJSON{Band: hp.Bands[b.Band].Name, Source: sourceOf(p, &hp.Bands[b.Band]), Before: b.Before, After: b.After, Bytes: b.Bytes(), Margin: b.Margin, Rose: b.Rose}
		if b.Counted {
			j.Closures = &b.Gained
		}
		doc.Bands = append(doc.Bands, j)
	}
	return doc
}

type heapAtJSON struct {
	Time  float64 `json:"seconds"`
	Bytes uint64  `json:"bytes"`
}

// JSON implements printer.Report; it is by census and not by column.
func (r Report) JSON(w io.Writer, o printer.Options) error {
	pr := r.Profile
	from, to := r.Range.From, r.Range.To
	if to == 0 || to > pr.Duration {
		to = pr.Duration + 1
	}
	doc := heapJSON{
		From: float64(from) / 1e9, To: float64(to) / 1e9, Censuses: []float64{}, Total: []uint64{}, Drawn: []*drawnJSON{}, Bands: []heapBandJSON{},
		Live: heapAt(pr, columns.HeapLive, from, to), Size: heapAt(pr, columns.HeapSize, from, to), Blocks: heapAt(pr, columns.HeapBlocks, from, to),
	}
	hp, why := r.profile()
	doc.Problem = printer.Known(why)
	if hp != nil {
		doc.Breakdown, doc.Restriction = printer.Known(hp.What()), printer.Known(hp.Restriction)
		s := timeline.Heap(hp, from, to, 1, o.Rows(len(hp.Bands), len(hp.Bands)))
		doc.Growth = growthOf(pr, hp, from, to)
		if len(hp.Censuses) > 0 {
			doc.Peak, doc.PeakTime = &s.Peak, printer.If(true, float64(s.PeakTime)/1e9)
		}
		place := make(map[int]int)
		for i := range s.Rows {
			b := &hp.Bands[s.Rows[i].Band]
			j := heapBandJSON{Band: b.Name, Source: sourceOf(pr, b), Stack: b.Stack, Peak: s.Rows[i].Peak, Bytes: []uint64{}}
			place[s.Rows[i].Band] = i
			doc.Bands = append(doc.Bands, j)
		}
		for i := range hp.Censuses {
			c := &hp.Censuses[i]
			if c.Time < from || c.Time >= to {
				continue
			}
			doc.Censuses, doc.Total = append(doc.Censuses, float64(c.Time)/1e9), append(doc.Total, c.Total)
			margins := hp.Margins(i)
			var drawn *drawnJSON
			if d := c.Draw; d != nil {
				drawn = &drawnJSON{d.Megablocks, d.Drawn, d.Stood}
			}
			doc.Drawn = append(doc.Drawn, drawn)
			for k := range doc.Bands {
				doc.Bands[k].Bytes, doc.Bands[k].Closures = append(doc.Bands[k].Bytes, 0), append(doc.Bands[k].Closures, nil)
			}
			if s.Drawn > 0 {
				for band, k := range place {
					margin := uint64(0)
					if margins != nil {
						margin = margins[band]
					}
					doc.Bands[k].Margins = append(doc.Bands[k].Margins, margin)
				}
			}
			at := len(doc.Censuses) - 1
			hp.Each(i, func(band int, bytes uint64) {
				if k, ok := place[band]; ok {
					doc.Bands[k].Bytes[at] += bytes
				}
			})
			hp.EachNumber(i, func(band int, number uint64) {
				if k, ok := place[band]; ok {
					n := &doc.Bands[k].Closures[at]
					if *n == nil {
						*n = new(uint64)
					}
					**n += number
				}
			})
		}
	}
	return printer.JSON(w, doc)
}

// sourceOf is where closures of a band were written, "src/Main.hs:12:5-20"; empty if that is not known.
func sourceOf(p *profile.Profile, b *columns.HeapBand) string {
	switch {
	case b.Table != nil:
		return b.Table.SrcLoc
	case b.FileID == 0:
		return ""
	}
	source := p.File(b.FileID).Path
	switch {
	case b.Span.Col > 0:
		source += ":" + b.Span.String()
	case b.Span.Line > 0:
		source += fmt.Sprintf(":%d", b.Span.Line)
	}
	return source
}

func heapAt(pr *profile.Profile, kind columns.HeapKind, from, to uint64) []heapAtJSON {
	out := []heapAtJSON{}
	for _, h := range pr.Heap {
		if h.Kind == kind && h.Time >= from && h.Time < to {
			out = append(out, heapAtJSON{float64(h.Time) / 1e9, h.Size})
		}
	}
	return out
}

// out is a printer with what only these reports have.
type out struct{ *printer.Printer }

func newOut(w io.Writer, o printer.Options) out { return out{printer.New(w, o)} }

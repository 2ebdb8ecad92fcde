package text

import (
	"fmt"
	"io"
	"strings"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/timeline"
	"ccagent/ui/chart"
)

// HeapOptions say what of the heap is printed.
type HeapOptions struct {
	Range   profile.Range
	Buckets int // columns; 0 means what fits
	Profile int // which of the log's heap profiles
}

const (
	heapLeft   = 9
	heapHeight = 12
	heapBands  = 12 // that have a letter, where Top does not say
)

// heapWays is how a program comes to tell what is in its heap.
const heapWays = "run it with +RTS -l -hT (by closure type), -hc or -hy (by cost centre or type, built with -prof), -hi (by info table, GHC 9.2 or later, built with -finfo-table-map)"

// NoHeap says why a log has no heap profile; empty if it has.
func NoHeap(p *profile.Profile) string {
	if len(p.HeapProfiles) > 0 {
		return ""
	}
	return "The log has no heap profile: " + heapWays + "."
}

// Heap prints what was live over time, by bands, and the heap's size.
func Heap(w io.Writer, pr *profile.Profile, ho HeapOptions, o Options) error {
	p := newPrinter(w, o)
	cols := ho.Buckets
	if cols <= 0 {
		cols = max(10, o.width()-heapLeft-6)
	}
	from, to := ho.Range.From, ho.Range.To
	if to == 0 || to > pr.Duration {
		to = pr.Duration + 1
	}
	var series *timeline.HeapSeries
	var hp *columns.HeapProfile
	if ho.Profile < len(pr.HeapProfiles) {
		hp = &pr.HeapProfiles[ho.Profile]
		series = timeline.Heap(hp, from, to, cols, o.top(len(hp.Bands), min(heapBands, len(chart.Letters))))
	}
	parts := []string{fit(o.File, 60)}
	if hp != nil {
		parts = append(parts, "heap by "+BreakdownName(hp.Breakdown), plural(uint64(len(hp.Bands)), "band"), strings.Replace(plural(uint64(series.Censuses), "census"), "censuss", "censuses", 1),
			fmt.Sprintf("peak %s at %s", Bytes(series.Peak), moment(series.PeakTime, to)))
		if hp.Restriction != "" {
			parts = append(parts, "only "+fit(hp.Restriction, 60))
		}
	}
	p.wrap(p.bold, "   ", parts...)
	p.line("")
	if why := NoHeap(pr); why != "" {
		p.note("%s", why)
	} else if series.Censuses == 0 {
		p.note("No census of the heap lies in the range.")
	} else {
		p.heapChart(series)
	}
	p.heapLines(pr, from, to, cols)
	if series != nil && series.Censuses > 0 {
		p.line("")
		p.heapTable(hp, series)
	}
	return p.flush()
}

func (p *printer) heapChart(s *timeline.HeapSeries) {
	limit := chart.Limit(s.Peak)
	cells := chart.Bands(s, heapHeight, limit)
	for y, row := range cells {
		label := ""
		switch y {
		case 0:
			label = chart.Axis(limit)
		case heapHeight / 2:
			label = chart.Axis(limit / 2)
		}
		var b strings.Builder
		for _, c := range row {
			b.WriteString(chart.Letter(c))
		}
		p.line(padLeft(label, heapLeft-2), " |", b.String())
	}
	width := len(s.Total)
	axis, end := moment(s.From, s.To), moment(s.To, s.To)
	if gap := width - len(axis) - len(end); gap > 0 {
		axis += strings.Repeat(" ", gap) + end
	}
	p.line(padLeft("0", heapLeft-2), " +", strings.Repeat("-", width))
	p.line(strings.Repeat(" ", heapLeft), p.faint(axis))
}

// heapLines prints the heap's sizes and the pauses below the chart.
func (p *printer) heapLines(pr *profile.Profile, from, to uint64, cols int) {
	for _, k := range []struct {
		kind columns.HeapKind
		name string
	}{{columns.HeapLive, "live"}, {columns.HeapBlocks, "blocks"}, {columns.HeapSize, "heap"}} {
		line, top := timeline.HeapLine(pr, k.kind, from, to, cols)
		if top > 0 {
			p.line(padLeft(k.name, heapLeft-2), "  ", levelsOf(line), p.faint(" "+chart.Axis(top)))
		}
	}
	if ps := timeline.PausesIn(timeline.Pauses(pr), profile.Range{From: from, To: to}); len(ps) > 0 {
		p.line(padLeft("gc", heapLeft-2), "  ", pauseLetters(ps, from, to, cols))
		p.line("")
		all, _ := timeline.SumPauses(ps)
		p.note("gc: the oldest generation collected in a column: %s, %s in all, longest %s; ccview gc tells more",
			plural(all.Count, "pause"), Duration(all.TotalNs), Duration(all.MaxNs))
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

func (p *printer) heapTable(hp *columns.HeapProfile, s *timeline.HeapSeries) {
	p.line(p.bold("         peak   average      last    growth  band"))
	length := float64(s.To-s.From) / 1e9
	row := func(letter, name string, peakBytes uint64, integral float64, by []uint64) {
		last, grown := by[len(by)-1], Signed(int64(by[len(by)-1])-int64(firstOf(by)))
		avg := uint64(0)
		if length > 0 {
			avg = uint64(integral / length)
		}
		room := 0
		if p.o.Width > 0 {
			room = p.o.width() - 46
		}
		p.line(" ", letter, padLeft(Bytes(peakBytes), 11), padLeft(Bytes(avg), 10), padLeft(Bytes(last), 10), padLeft(grown, 11), "  ", fit(name, room))
	}
	for i := range s.Rows {
		r := &s.Rows[i]
		row(chart.Letter(i), BandName(&hp.Bands[r.Band]), r.Peak, r.Integral, r.Bytes)
	}
	if s.Others > 0 {
		row(".", fmt.Sprintf("%d more: --top 0 prints all", s.Others), peak(s.Other), float64(sum(s.Other))*float64(s.Step)/1e9, s.Other)
	}
	if len(s.Rows) > len(chart.Letters) {
		p.note("bands from the %dth on are . in the chart", len(chart.Letters)+1)
	}
	p.note("growth: from the first census on screen to the last")
}

// BandName is a band's name: a cost-centre stack whole, innermost first.
func BandName(b *columns.HeapBand) string {
	if len(b.Stack) > 1 {
		return strings.Join(b.Stack, " < ")
	}
	if b.Table != nil && b.Table.SrcLoc != "" {
		return b.Name + "  " + b.Table.SrcLoc
	}
	return b.Name
}

// moment gives a time, in the unit that fits a log that ends at end.
func moment(t, end uint64) string {
	switch {
	case end >= 2e9:
		return seconds(t)
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

// Signed gives a difference in bytes.
func Signed(n int64) string {
	switch {
	case n > 0:
		return "+" + Bytes(uint64(n))
	case n < 0:
		return "−" + Bytes(uint64(-n))
	}
	return "0"
}

type heapJSON struct {
	Breakdown   string         `json:"breakdown"` // empty if the log has no heap profile
	Restriction string         `json:"restriction"`
	From        float64        `json:"from_seconds"`
	To          float64        `json:"to_seconds"`
	Censuses    []float64      `json:"census_seconds"`
	Total       []uint64       `json:"total_bytes"` // by census
	Peak        uint64         `json:"peak_bytes"`
	PeakTime    float64        `json:"peak_seconds"`
	Bands       []heapBandJSON `json:"bands"`
	Live        []heapAtJSON   `json:"live"`
	Size        []heapAtJSON   `json:"size"`
	Blocks      []heapAtJSON   `json:"blocks"`
}

type heapBandJSON struct {
	Band   string   `json:"band"`
	Stack  []string `json:"stack,omitempty"` // cost centres, innermost first
	Source string   `json:"source,omitempty"`
	Peak   uint64   `json:"peak_bytes"`
	Bytes  []uint64 `json:"bytes"` // by census
}

type heapAtJSON struct {
	Time  float64 `json:"seconds"`
	Bytes uint64  `json:"bytes"`
}

// HeapJSON writes what Heap prints, by census and not by column.
func HeapJSON(w io.Writer, pr *profile.Profile, ho HeapOptions, o Options) error {
	from, to := ho.Range.From, ho.Range.To
	if to == 0 || to > pr.Duration {
		to = pr.Duration + 1
	}
	doc := heapJSON{
		From: float64(from) / 1e9, To: float64(to) / 1e9, Censuses: []float64{}, Total: []uint64{}, Bands: []heapBandJSON{},
		Live: heapAt(pr, columns.HeapLive, from, to), Size: heapAt(pr, columns.HeapSize, from, to), Blocks: heapAt(pr, columns.HeapBlocks, from, to),
	}
	if ho.Profile < len(pr.HeapProfiles) {
		hp := &pr.HeapProfiles[ho.Profile]
		doc.Breakdown, doc.Restriction = BreakdownName(hp.Breakdown), hp.Restriction
		s := timeline.Heap(hp, from, to, 1, o.top(len(hp.Bands), len(hp.Bands)))
		doc.Peak, doc.PeakTime = s.Peak, float64(s.PeakTime)/1e9
		place := make(map[int]int)
		for i := range s.Rows {
			b := &hp.Bands[s.Rows[i].Band]
			j := heapBandJSON{Band: b.Name, Stack: b.Stack, Peak: s.Rows[i].Peak, Bytes: []uint64{}}
			if b.Table != nil {
				j.Source = b.Table.SrcLoc
			}
			place[s.Rows[i].Band] = i
			doc.Bands = append(doc.Bands, j)
		}
		for i := range hp.Censuses {
			c := &hp.Censuses[i]
			if c.Time < from || c.Time >= to {
				continue
			}
			doc.Censuses, doc.Total = append(doc.Censuses, float64(c.Time)/1e9), append(doc.Total, c.Total)
			for k := range doc.Bands {
				doc.Bands[k].Bytes = append(doc.Bands[k].Bytes, 0)
			}
			at := len(doc.Censuses) - 1
			hp.Each(i, func(band int, bytes uint64) {
				if k, ok := place[band]; ok {
					doc.Bands[k].Bytes[at] += bytes
				}
			})
		}
	}
	return writeJSON(w, doc)
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

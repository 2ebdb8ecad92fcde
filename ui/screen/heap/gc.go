package heap

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/timeline"
	"ccagent/ui/chart"
	"ccagent/ui/printer"
)

const gcRows = 10

// GCReport is the pauses for garbage collection.
type GCReport struct {
	Profile *profile.Profile
	Range   profile.Range
}

// Text implements printer.Report.
func (g GCReport) Text(w io.Writer, o printer.Options) error {
	pr, r := g.Profile, g.Range
	p := newOut(w, o)
	from, to := r.From, r.To
	if to == 0 || to > pr.Duration {
		to = pr.Duration + 1
	}
	ps := timeline.PausesIn(timeline.Pauses(pr), profile.Range{From: from, To: to})
	all, gens := timeline.SumPauses(ps)
	cols := max(10, o.Columns()-heapLeft-10)
	step := max(1, (to-from+uint64(cols)-1)/uint64(cols))
	spent, longest := pauseColumns(ps, from, to, step, cols)
	extent, of := to-from, format.Duration(to-from)
	watched, partly := pr.Watched("gc")
	if partly && from == 0 && to > pr.Duration {
		extent, of = watched, "the "+format.Duration(watched)+" watched"
	}
	p.Wrap(p.Bold, "   ", printer.Fit(o.File, 60), format.Plural(all.Count, "pause")+" for gc",
		fmt.Sprintf("%s of %s", format.Duration(chart.Sum(spent)), of), format.Percent(format.Ratio(chart.Sum(spent), extent)))
	if partly {
		why := "they were out for the rest (╌), to cost no more. --max-overhead 0 keeps them in."
		if len(pr.Gaps) > 0 {
			why = "for the rest (╌) they were out, to cost no more, or " + pr.WhyUnrecorded() + "."
		}
		p.Note("Probes saw collections in %s of %s: %s", format.Duration(watched), format.Duration(pr.Duration), why)
	}
	p.Line("")
	if len(ps) == 0 {
		switch {
		case len(pr.GCs) > 0:
			p.Note("No collection lies in the range.")
		default:
			p.Note("The log has no collections. A run-time system reports them with +RTS -l, for a program linked with -eventlog (GHC 9.4 and later: any); (GC) in ccview hot is the time that samples found in the collector.")
		}
		return p.Flush()
	}
	unwatched := timeline.Unwatched(pr, "gc", from, to, step, cols)
	p.Line(p.Faint(fmt.Sprintf("%s – %s, a column is %s", moment(from, to), moment(to, to), format.Duration(step))))
	p.Line(printer.PadLeft("gen", heapLeft-2), "  ", chart.Broken(pauseLetters(ps, from, to, cols), unwatched))
	p.Line(printer.PadLeft("in gc", heapLeft-2), "  ", chart.Broken(chart.Levels(spent), unwatched), p.Faint(" "+format.Percent(format.Ratio(chart.Peak(spent), step))))
	p.Line(printer.PadLeft("longest", heapLeft-2), "  ", chart.Broken(chart.Levels(longest), unwatched), p.Faint(" "+format.Duration(chart.Peak(longest))))
	p.Line("")
	parts := o.Width <= 0 || o.Columns() >= 95 // else without those of a pause, which the note has
	stops := ""
	if parts {
		stops = "       sync     release"
	}
	p.Line(p.Bold("  gen   pauses      total      median         95%    longest" + stops + "      copied"))
	for i, g := range append(gens, all) {
		name := "all"
		switch {
		case g.Generation >= 0:
			name = fmt.Sprint(g.Generation)
		case i < len(gens):
			name = "?"
		}
		copied := "-"
		if g.CopiedKnown {
			copied = format.Bytes(g.Copied)
		}
		stopping := ""
		if parts {
			stopping = printer.PadLeft(format.Duration(g.SyncNs), 11) + printer.PadLeft(format.Duration(g.ReleaseNs), 12)
		}
		p.Line(printer.PadLeft(name, 5), printer.PadLeft(format.Count(g.Count), 9), printer.PadLeft(format.Duration(g.TotalNs), 11), printer.PadLeft(format.Duration(g.P50Ns), 12), printer.PadLeft(format.Duration(g.P95Ns), 12),
			printer.PadLeft(format.Duration(g.MaxNs), 11), stopping, printer.PadLeft(copied, 12))
	}
	if all.SyncNs+all.ReleaseNs > 0 {
		p.Note("A pause lasts from the request to stop until the last capability goes on. sync: until all have stopped, %s at the longest; release: from the end of the work until the last goes on. Capabilities that had stopped waited %s in all.",
			format.Duration(all.MaxSyncNs), format.Duration(all.WaitNs))
	}
	p.Line("")
	worst := slices.Clone(ps)
	slices.SortStableFunc(worst, func(a, b timeline.Pause) int { return cmp.Compare(b.Ns(), a.Ns()) })
	n := o.Rows(len(worst), gcRows)
	p.Line(p.Bold("  longest pauses at         gen   caps      copied        live"))
	for i := range worst[:n] {
		x := &worst[i]
		gen, copied, live := "?", "-", "-"
		if x.Generation >= 0 {
			gen, copied = fmt.Sprint(x.Generation), format.Bytes(x.Copied)
		}
		if x.Live > 0 {
			live = format.Bytes(x.Live)
		}
		p.Line(printer.PadLeft(format.Duration(x.Ns()), 12), printer.PadLeft(moment(x.Start, to), 12), printer.PadLeft(gen, 6), printer.PadLeft(fmt.Sprint(x.Caps), 7), printer.PadLeft(copied, 12), printer.PadLeft(live, 12))
	}
	for _, c := range pr.RTSLog.Concurrent[:min(len(pr.RTSLog.Concurrent), n)] {
		p.Line(p.Faint(fmt.Sprintf("  beside the program: %s, %s at %s", c.Kind, format.Duration(c.End-c.Start), format.Seconds(c.Start))))
	}
	return p.Flush()
}

// pauseColumns gives by column the time spent in pauses, and the longest that
// begins in it.
func pauseColumns(ps []timeline.Pause, from, to, step uint64, cols int) (spent, longest []uint64) {
	spent, longest = make([]uint64, cols), make([]uint64, cols)
	own := timeline.Exclusive(ps)
	for i := range ps {
		c := min(int((max(ps[i].Start, from)-from)/step), cols-1)
		longest[c] = max(longest[c], ps[i].Ns())
		for at := max(ps[i].End-own[i], from); at < min(ps[i].End, to); {
			c := min(int((at-from)/step), cols-1)
			end := min(ps[i].End, to)
			if c < cols-1 {
				end = min(end, from+uint64(c+1)*step)
			}
			spent[c] += end - at
			at = end
		}
	}
	return spent, longest
}

type gcJSON struct {
	From   float64       `json:"from_seconds"`
	To     float64       `json:"to_seconds"`
	Pauses []pauseJSON   `json:"pauses"`
	Total  *gcStatsJSON  `json:"total"` // null if the log says nothing of collections
	ByGen  []gcStatsJSON `json:"generations"`
	// Watched is of the whole log: for how long its collections were looked at; null if it says
	// nothing of them.
	Watched *float64 `json:"watched_seconds"`
}

type pauseJSON struct {
	Start      float64 `json:"start_seconds"`
	Seconds    float64 `json:"seconds"`
	Generation *int    `json:"generation"` // null if unknown
	Caps       int     `json:"capabilities"`
	Copied     *uint64 `json:"copied_bytes"`
	Live       *uint64 `json:"live_bytes"` // null if unknown
	Sync       float64 `json:"sync_seconds"`
	Work       float64 `json:"work_seconds"`
	Release    float64 `json:"release_seconds"`
	Wait       float64 `json:"wait_seconds"` // of capabilities
	Flush      bool    `json:"flush"`
}

type gcStatsJSON struct {
	Generation *int     `json:"generation"`
	Count      uint64   `json:"count"`
	Seconds    float64  `json:"seconds"`
	Median     *float64 `json:"median_seconds"`
	P95        *float64 `json:"p95_seconds"`
	Longest    *float64 `json:"longest_seconds"`
	Copied     uint64   `json:"copied_bytes"`
	// Parts of the pauses: until all capabilities have stopped, while one collects, and until the
	// last goes on; and what capabilities waited in them.
	Sync        float64 `json:"sync_seconds"`
	LongestSync float64 `json:"longest_sync_seconds"`
	Work        float64 `json:"work_seconds"`
	Release     float64 `json:"release_seconds"`
	Wait        float64 `json:"wait_seconds"`
}

// JSON implements printer.Report: all pauses and their sums.
func (g GCReport) JSON(w io.Writer, _ printer.Options) error {
	pr, r := g.Profile, g.Range
	from, to := r.From, r.To
	if to == 0 || to > pr.Duration {
		to = pr.Duration + 1
	}
	ps := timeline.PausesIn(timeline.Pauses(pr), profile.Range{From: from, To: to})
	gen := func(g int) *int {
		if g < 0 {
			return nil
		}
		return &g
	}
	of := func(s timeline.PauseStats) gcStatsJSON {
		some := func(ns uint64) *float64 { return printer.If(s.Count > 0, float64(ns)/1e9) }
		return gcStatsJSON{gen(s.Generation), s.Count, float64(s.TotalNs) / 1e9, some(s.P50Ns), some(s.P95Ns), some(s.MaxNs), s.Copied,
			float64(s.SyncNs) / 1e9, float64(s.MaxSyncNs) / 1e9, float64(s.WorkNs) / 1e9, float64(s.ReleaseNs) / 1e9, float64(s.WaitNs) / 1e9}
	}
	all, gens := timeline.SumPauses(ps)
	watched, _ := pr.Watched("gc")
	doc := gcJSON{Watched: printer.If(pr.Tells("gc"), float64(watched)/1e9), From: float64(from) / 1e9, To: float64(to) / 1e9, Pauses: []pauseJSON{}, Total: printer.If(len(pr.GCs) > 0 || pr.Tells("gc"), of(all)), ByGen: []gcStatsJSON{}}
	for _, g := range gens {
		doc.ByGen = append(doc.ByGen, of(g))
	}
	for i := range ps {
		x := &ps[i]
		doc.Pauses = append(doc.Pauses, pauseJSON{float64(x.Start) / 1e9, float64(x.Ns()) / 1e9, gen(x.Generation), x.Caps, printer.Known(x.Copied), printer.Known(x.Live),
			float64(x.SyncNs) / 1e9, float64(x.WorkNs) / 1e9, float64(x.ReleaseNs) / 1e9, float64(x.WaitNs) / 1e9, x.Flush})
	}
	return printer.JSON(w, doc)
}

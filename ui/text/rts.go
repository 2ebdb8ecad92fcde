package text

import (
	"fmt"
	"strings"
	"time"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/activity"
	"ccagent/profile/columns"
	"ccagent/profile/timeline"
	"ccagent/ui/chart"
	"ccagent/ui/printer"
)

// rts prints what the run-time system logged, if anything.
func (p out) rts(pr *profile.Profile) {
	r := &pr.RTSLog
	if !pr.HaveCapture {
		p.field("program", strings.Join(r.Args, " "))
		if r.PID != 0 {
			p.field("process", fmt.Sprintf("pid %d", r.PID))
		}
		if r.WallNs != 0 {
			p.field("started", time.Unix(0, int64(r.WallNs)).UTC().Format("2006-01-02 15:04:05 UTC"))
		}
	}
	if pr.RTS != "" {
		p.field("rts", pr.RTS)
	}
	runs, busy := r.Ran()
	if runs == 0 && r.Stats.Collections == 0 && r.HeapSamples == 0 && r.Created == 0 {
		return
	}
	span := pr.Duration
	if runs > 0 {
		caps := "1 capability"
		if r.Caps != 1 {
			caps = fmt.Sprintf("%d capabilities", r.Caps)
		}
		s := fmt.Sprintf("%s created, %s finished; %s ran them %s times", format.Count(r.Created), format.Count(r.Finished), caps, format.Count(runs))
		of := span
		if _, partly := pr.Watched("threads"); partly {
			all, watched := pr.Running()
			of = watched
			s += fmt.Sprintf(" in the %s of %s that were watched", format.Duration(watched), format.Duration(all))
			if e := pr.EstimatedRuns(); e.High > 0 {
				s += fmt.Sprintf(": %s to %s times in all", format.Count(uint64(e.Low)), format.Count(uint64(e.High)))
			}
		}
		if of > 0 && r.Caps > 0 {
			s += fmt.Sprintf(", %s of %d × %s", format.Percent(float64(busy)/float64(of)/float64(r.Caps)), r.Caps, format.Duration(of))
		}
		p.field("threads", s)
	}
	if st := &r.Stats; st.Collections > 0 || len(pr.GCs) > 0 {
		all, _ := timeline.SumPauses(timeline.Pauses(pr))
		parts := ""
		if all.SyncNs+all.ReleaseNs > 0 {
			parts = fmt.Sprintf(" (%s until all had stopped, %s at the longest; %s work; %s until the last went on)",
				format.Duration(all.SyncNs), format.Duration(all.MaxSyncNs), format.Duration(all.WorkNs), format.Duration(all.ReleaseNs))
		}
		seen := ""
		if watched, partly := pr.Watched("gc"); partly {
			seen = fmt.Sprintf(", seen in %s of %s", format.Duration(watched), format.Duration(span))
		}
		p.field("gc", fmt.Sprintf("%s, %s major%s; pauses of %s in all%s, longest %s; %s copied",
			format.Plural(st.Collections, "collection"), format.Count(st.Major), seen, format.Duration(all.TotalNs), parts, format.Duration(all.MaxNs), format.Bytes(st.Copied)))
	}
	if line, advice := activity.Sparks(&r.Sparks); line != "" {
		p.field("sparks", line)
		p.field("", advice)
	}
	if st := &r.Stats; st.Allocated+st.PeakSize+st.PeakLive > 0 {
		of := ""
		if _, partly := pr.Watched("gc"); partly && len(pr.GCs) > 0 {
			of = " until the last collection seen, at " + format.Duration(lastCollection(pr))
		}
		p.field("heap", fmt.Sprintf("%s allocated%s, live %s and size %s at most", format.Bytes(st.Allocated), of, format.Bytes(st.PeakLive), format.Bytes(st.PeakSize)))
	}
	if r.HeapSamples > 0 {
		p.field("profile", fmt.Sprintf("%s by %s", format.Plural(r.HeapSamples, "heap sample"), columns.BreakdownName(r.Breakdown)))
	}
	var also []string
	for _, x := range []struct {
		n    uint64
		what string
	}{{r.InfoTables, "info table"}, {r.Ticky, "ticky sample"}, {r.Binary, "binary message"}} {
		if x.n > 0 {
			also = append(also, format.Plural(x.n, x.what))
		}
	}
	markers, messages := uint64(0), uint64(0)
	for i := range pr.Markers {
		if pr.Markers[i].Message {
			messages++
		} else {
			markers++
		}
	}
	if markers > 0 {
		also = append(also, format.Plural(markers, "user marker"))
	}
	if messages > 0 {
		also = append(also, format.Plural(messages, "user message"))
	}
	p.field("also", strings.Join(also, ", "))
}

// rtsVersion splits what an RTS calls itself: "GHC-9.0.2 rts_thr_l".
func rtsVersion(id string) (version, way string) {
	v, way, _ := strings.Cut(id, " ")
	if version, ok := strings.CutPrefix(v, "GHC-"); ok {
		return version, way
	}
	return "", ""
}

func lastCollection(pr *profile.Profile) uint64 {
	var t uint64
	for _, g := range pr.GCs {
		t = max(t, g.End)
	}
	return t
}

// rtsRows prints what capabilities did, as the RTS logged it.
func (p out) rtsRows(t *timeline.Timeline) {
	for i := range t.RTS {
		a := &t.RTS[i]
		var run, gc, ofRun, ofGC uint64
		var b strings.Builder
		for c := range a.Run {
			run, gc = run+a.Run[c], gc+a.GC[c]
			seenRun, seenGC := watchedOf(t, t.UnwatchedThreads, c), watchedOf(t, t.UnwatchedGC, c)
			ofRun, ofGC = ofRun+seenRun, ofGC+seenGC
			if seen := min(seenRun, seenGC); seen*2 < t.Step && (t.UnwatchedThreads != nil || t.UnwatchedGC != nil) {
				b.WriteRune(chart.NotWatched)
			} else {
				b.WriteRune(rtsLetter(a.Run[c], a.GC[c], t.Step))
			}
		}
		p.row(fmt.Sprintf("rts %d", a.Cap), b.String(), share(run, ofRun)+", gc "+share(gc, ofGC))
	}
}

// gcRow prints the part of each column that collections took, broken where they were not watched; nothing of a log
// without any.
func (p out) gcRow(pr *profile.Profile, t *timeline.Timeline) {
	gc := t.InPauses(pr)
	if chart.Peak(gc) == 0 {
		return
	}
	peak := 0.0
	for i, ns := range gc {
		if seen := watchedOf(t, t.UnwatchedGC, i); seen*2 > t.Step {
			peak = max(peak, min(1, float64(ns)/float64(seen))) // a collection may reach into what was not watched
		}
	}
	if peak == 0 {
		peak = float64(chart.Peak(gc)) / float64(t.Step)
	}
	unwatched := timeline.Unwatched(pr, "gc", t.From, t.To, t.Step, len(t.Weight))
	p.row("gc", chart.Broken(chart.Levels(gc), unwatched), "peak "+format.Percent(peak))
}

// watchedOf returns how much of a column was watched, in ns.
func watchedOf(t *timeline.Timeline, unwatched []uint64, column int) uint64 {
	of := min(t.Step, t.To-min(t.From+uint64(column)*t.Step, t.To))
	if unwatched == nil {
		return of
	}
	return of - min(of, unwatched[column])
}

// share formats a part of the time that was watched.
func share(ns, of uint64) string {
	if of == 0 {
		return "?"
	}
	return format.Percent(format.Ratio(ns, of))
}

// rtsLetter is what a capability did most in a column: small below half of it.
func rtsLetter(run, gc, step uint64) rune {
	letter := 'R'
	if gc > run {
		letter = 'G'
	}
	switch busy := run + gc; {
	case busy*50 < step:
		return '·'
	case busy*2 < step:
		return letter + 'a' - 'A'
	}
	return letter
}

// rtsTimeline prints a timeline of a log without samples.
func (p out) rtsTimeline(s *profile.Selection, t *timeline.Timeline) {
	p.Line(p.Faint(fmt.Sprintf("%s – %s, a column is %s", format.Seconds(t.From), format.Seconds(t.To), format.Duration(t.Step))))
	p.rtsRows(t)
	p.gcRow(s.Profile, t)
	p.heapRow(s.Profile, t)
	p.markers(s.Profile, t)
	p.Line("")
	p.Line(p.Faint("R runs a Haskell thread  G gc  · idle  " + string(chart.NotWatched) + " not watched; small letters: below half. By the run-time system's word."))
}

// heapRow prints live data, or if the log has none the heap's size: the highest in each
// column.
func (p out) heapRow(pr *profile.Profile, t *timeline.Timeline) {
	for _, k := range []struct {
		kind columns.HeapKind
		name string
	}{{columns.HeapLive, "live"}, {columns.HeapSize, "heap"}} {
		by := make([]uint64, len(t.Weight))
		for i := range pr.Heap {
			h := &pr.Heap[i]
			if h.Kind == k.kind && h.Time >= t.From && h.Time < t.To {
				c := min(int((h.Time-t.From)/t.Step), len(by)-1)
				by[c] = max(by[c], h.Size)
			}
		}
		if chart.Peak(by) > 0 {
			p.row(k.name, chart.Broken(chart.Levels(by), timeline.Unwatched(pr, "gc", t.From, t.To, t.Step, len(by))), "peak "+format.Bytes(chart.Peak(by)))
			return
		}
	}
}

// markerRows bounds the markers that a timeline lists.
const markerRows = 20

// markers lists the program's own markers and messages.
func (p out) markers(pr *profile.Profile, t *timeline.Timeline) {
	shown := 0
	for i := range pr.Markers {
		m := &pr.Markers[i]
		if m.Time < t.From || m.Time >= t.To {
			continue
		}
		if shown++; shown > p.Rows(len(pr.Markers), markerRows) {
			continue
		}
		p.Line("  ", p.Faint(printer.PadRight(format.Seconds(m.Time), 10)), printer.Fit(m.Text, 0))
	}
	if rest := shown - p.Rows(len(pr.Markers), markerRows); rest > 0 {
		p.Line("  ", p.Faint(fmt.Sprintf("%d more markers and messages", rest)))
	}
}

type activityJSON struct {
	Capability uint32    `json:"capability"`
	Run        []float64 `json:"run_seconds"`
	GC         []float64 `json:"gc_seconds"`
}

func activityOf(t *timeline.Timeline) []activityJSON {
	out := []activityJSON{}
	for i := range t.RTS {
		a := activityJSON{Capability: t.RTS[i].Cap}
		for c := range t.RTS[i].Run {
			a.Run = append(a.Run, float64(t.RTS[i].Run[c])/1e9)
			a.GC = append(a.GC, float64(t.RTS[i].GC[c])/1e9)
		}
		out = append(out, a)
	}
	return out
}

type rtsJSON struct {
	Args         []string `json:"args"`
	PID          *uint32  `json:"pid"`
	Capabilities *int     `json:"capabilities"`
	Created      *uint64  `json:"threads_created"`
	Finished     *uint64  `json:"threads_finished"`
	Runs         *uint64  `json:"runs"`
	RunSeconds   *float64 `json:"run_seconds"`
	Collections  *uint64  `json:"collections"`
	Major        *uint64  `json:"major_collections"`
	GCSeconds    *float64 `json:"gc_seconds"`
	Copied       *uint64  `json:"copied_bytes"`
	PeakLive     *uint64  `json:"peak_live_bytes"`
	PeakSize     *uint64  `json:"peak_heap_bytes"`
	Allocated    *uint64  `json:"allocated_bytes"`
	HeapSamples  uint64   `json:"heap_samples"`
	InfoTables   uint64   `json:"info_tables"`
	TickySamples uint64   `json:"ticky_samples"`
	Markers      int      `json:"markers"`
	// RunsEstimate is how many runs there were in all of the log, where they were watched in a
	// part of it; null if all were, or too little for an interval.
	RunsEstimate *estimateJSON `json:"runs_estimate"`
	// For how long of the log collections, and runs of threads, were watched. runs, run_seconds
	// and collections are of that time.
	GCWatched      *float64    `json:"gc_watched_seconds"`
	Pauses         *pausesJSON `json:"pauses"`
	ThreadsWatched *float64    `json:"threads_watched_seconds"`
	Sparks         *sparksJSON `json:"sparks"`
}

// pausesJSON is the times in which collections stopped the program, from the request to stop
// until the last capability went on.
type pausesJSON struct {
	Count       uint64   `json:"count"`
	Total       float64  `json:"total_seconds"`
	Longest     *float64 `json:"longest_seconds"`
	Median      *float64 `json:"median_seconds"`
	P95         *float64 `json:"p95_seconds"`
	Sync        float64  `json:"sync_seconds"` // until all had stopped; the sum, as the following
	LongestSync *float64 `json:"longest_sync_seconds"`
	Work        float64  `json:"work_seconds"`    // while a capability collected
	Release     float64  `json:"release_seconds"` // until the last went on
	Wait        float64  `json:"wait_seconds"`    // of capabilities that had stopped and did not collect
	Of          float64  `json:"of_seconds"`      // for how long collections were watched
}

func pausesOf(pr *profile.Profile) *pausesJSON {
	all, _ := timeline.SumPauses(timeline.Pauses(pr))
	watched, _ := pr.Watched("gc")
	s := func(ns uint64) float64 { return float64(ns) / 1e9 }
	some := func(ns uint64) *float64 { return printer.If(all.Count > 0, s(ns)) }
	return &pausesJSON{Count: all.Count, Total: s(all.TotalNs), Longest: some(all.MaxNs), Median: some(all.P50Ns), P95: some(all.P95Ns),
		Sync: s(all.SyncNs), LongestSync: some(all.MaxSyncNs), Work: s(all.WorkNs), Release: s(all.ReleaseNs), Wait: s(all.WaitNs), Of: s(watched)}
}

// estimateJSON is an estimate with its 95 % interval.
type estimateJSON struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

type sparksJSON struct {
	Made       uint64 `json:"made"`
	Converted  uint64 `json:"converted"`
	Fizzled    uint64 `json:"fizzled"`
	Collected  uint64 `json:"collected"`
	Overflowed uint64 `json:"overflowed"`
	Dud        uint64 `json:"dud"`
}

// rtsOf is nil for a log that no RTS wrote anything in.
func rtsOf(pr *profile.Profile) *rtsJSON {
	r := &pr.RTSLog
	runs, busy := r.Ran()
	if pr.RTS == "" && runs == 0 && len(pr.GCs) == 0 && activity.SparksMade(&r.Sparks) == 0 {
		return nil
	}
	gcTold, threadsTold := pr.Tells("gc"), pr.Tells("threads")
	of := func(told bool, n uint64) *uint64 { return printer.If(told, n) }
	j := &rtsJSON{
		Args: append([]string{}, r.Args...), PID: printer.Known(r.PID), Capabilities: printer.Known(r.Caps),
		Created: of(threadsTold, r.Created), Finished: of(threadsTold, r.Finished), Runs: of(threadsTold, runs), RunSeconds: printer.If(threadsTold, float64(busy)/1e9),
		Collections: of(gcTold, r.Stats.Collections), Major: of(gcTold, r.Stats.Major), Copied: of(gcTold && (r.Stats.Copied > 0 || r.Stats.Collections == 0), r.Stats.Copied),
		PeakLive: printer.Known(r.Stats.PeakLive), PeakSize: printer.Known(r.Stats.PeakSize), Allocated: printer.Known(r.Stats.Allocated),
		HeapSamples: r.HeapSamples, InfoTables: r.InfoTables, TickySamples: r.Ticky, Markers: len(pr.Markers),
	}
	if k := &r.Sparks; activity.SparksMade(k) > 0 {
		j.Sparks = &sparksJSON{activity.SparksMade(k), k.Converted, k.Fizzled, k.Collected, k.Overflowed, k.Dud}
	}
	gc, _ := pr.Watched("gc")
	threads, _ := pr.Watched("threads")
	j.GCWatched, j.ThreadsWatched = printer.If(gcTold, float64(gc)/1e9), printer.If(threadsTold, float64(threads)/1e9)
	if gcTold {
		j.Pauses = pausesOf(pr)
		var sum float64
		for _, g := range pr.GCs {
			sum += float64(g.End-g.Start) / 1e9
		}
		j.GCSeconds = &sum
	}
	if _, partly := pr.Watched("threads"); partly && runs > 0 {
		if e := pr.EstimatedRuns(); e.High > 0 {
			j.RunsEstimate = &estimateJSON{e.Value, e.Low, e.High}
		}
	}
	return j
}

package text

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/activity"
	"ccagent/profile/timeline"
	"ccagent/ui/chart"
	"ccagent/ui/printer"
)

// timelineMargin is what stands before and after a timeline's columns.
const (
	timelineLeft  = 9
	timelineRight = 18
)

// TimelineBuckets is how many columns of a timeline fit.
func TimelineBuckets(o printer.Options) int { return max(10, o.Columns()-timelineLeft-timelineRight) }

// OverTime is the report of a selection over time, a column a bucket.
type OverTime struct {
	Selection *profile.Selection
	Timeline  *timeline.Timeline
}

// Text implements printer.Report.
func (tl OverTime) Text(w io.Writer, o printer.Options) error {
	s, t := tl.Selection, tl.Timeline
	p := newOut(w, o)
	if t.To > t.From && s.Event < 0 && t.RTS != nil {
		p.Line(p.Bold(printer.Fit(o.File, 60)), "  ", printer.Fit(s.Profile.RTS, 40))
		p.Line("")
		p.rtsTimeline(s, t)
		return p.Flush()
	}
	p.Heading(s)
	if t.To <= t.From || s.Event < 0 {
		if s.Profile.Duration == 0 && s.Samples > 0 {
			p.Line("The log does not say when its samples were taken, so there is no timeline.")
		}
		return p.Flush()
	}
	unit := s.EventDef().Unit
	p.Line(p.Faint(fmt.Sprintf("%s – %s, a column is %s", format.Seconds(t.From), format.Seconds(t.To), format.Duration(t.Step))))
	missing := t.Missing()
	p.row(eventLabel(s), chart.Broken(chart.Levels(t.Weight), missing), "peak "+rate(chart.Peak(t.Weight), t.Step, unit))
	for i := range t.Caps {
		r := &t.Caps[i]
		label := "no cap"
		if r.Cap != eventlog.NoCapability {
			label = fmt.Sprintf("cap %d", r.Cap)
		}
		p.row(label, chart.Broken(letters(r, t, unit), missing), format.Percent(s.Fraction(r.Weight)))
	}
	p.rtsRows(t)
	p.gcRow(s.Profile, t)
	if t.Allocated != nil && unit != "bytes" {
		p.row("alloc", chart.Broken(chart.Levels(t.Allocated), missing), "peak "+rate(chart.Peak(t.Allocated), t.Step, "bytes"))
	}
	if chart.Peak(t.Lost) > 0 {
		p.row("lost", chart.Levels(t.Lost), format.Plural(chart.Sum(t.Lost), "sample"))
	}
	if len(t.RTS) > 0 {
		p.heapRow(s.Profile, t)
		p.markers(s.Profile, t)
	}
	p.Line("")
	p.activity(activity.Of(s), o)
	p.sparks(&s.Profile.RTSLog.Sparks)
	watchedNote(p, s.Profile, t)
	legend := []string{"R Haskell", "G gc", "S run-time system", "F foreign", "K kernel", "? unresolved"}
	switch {
	case !s.CountsTime():
		legend = append(legend, "· none")
	case t.Unseen == nil || slices.Contains(t.Unseen, false):
		legend = append(legend, "· idle")
	case t.RTS != nil:
		legend = append(legend, "· idle, by the RTS")
	}
	if t.Unseen != nil {
		legend = append(legend, "no letter: no sample, for columns are shorter than the time between two")
	}
	legend = append(legend, "small letters: below half")
	if t.UnwatchedThreads != nil || t.UnwatchedGC != nil || t.Unrecorded != nil {
		legend = append(legend, string(chart.NotWatched)+" not watched: nobody knows")
	}
	p.Wrap(p.Faint, "  ", legend...)
	return p.Flush()
}

func eventLabel(s *profile.Selection) string { return printer.Fit(s.EventDef().Name(), timelineLeft-2) }

func (p out) row(label, columns, note string) {
	p.Line(" ", printer.PadRight(label, timelineLeft-1), columns, "  ", p.Faint(note))
}

var categoryLetters = [profile.Categories]byte{'?', 'R', 'S', 'G', 'S', 'F', 'K'}

// letters gives for each column the letter of what a capability did most, a
// small one where it was busy less than half of its busiest.
func letters(r *profile.CapWeight, t *timeline.Timeline, unit string) string {
	total := make([]uint64, len(t.Weight))
	for _, by := range r.ByCategory {
		for i, w := range by {
			total[i] += w
		}
	}
	full := chart.Peak(total)
	if unit == "ns" && full < t.Step {
		full = t.Step
	}
	var b strings.Builder
	for i, w := range total {
		if w == 0 || float64(w) < 0.02*float64(full) {
			none := '·'
			if t.Unseen != nil && t.Unseen[i] {
				none = ' '
			}
			b.WriteRune(none)
			continue
		}
		var letters ['Z']uint64
		best := byte('?')
		for c, by := range r.ByCategory {
			if by == nil {
				continue
			}
			l := categoryLetters[c]
			letters[l] += by[i]
			if letters[l] > letters[best] {
				best = l
			}
		}
		if w*2 < full && best != '?' {
			best += 'a' - 'A'
		}
		b.WriteByte(best)
	}
	return b.String()
}

// rate formats a weight per time: in CPUs for ns, otherwise per second.
func rate(w, step uint64, unit string) string {
	perSecond := float64(w) / (float64(step) / 1e9)
	if unit == "ns" {
		return fmt.Sprintf("%.2f CPUs", perSecond/1e9)
	}
	return printer.Quantity(uint64(perSecond), unit) + "/s"
}

type timelineJSON struct {
	Event       *string           `json:"event"`
	Unit        *string           `json:"unit"`
	From        float64           `json:"from_seconds"`
	To          float64           `json:"to_seconds"`
	Step        float64           `json:"step_seconds"`
	Weight      []uint64          `json:"weight"`
	Samples     []uint64          `json:"samples"`
	Lost        []uint64          `json:"lost"`
	Capability  []timelineRowJSON `json:"capabilities"`
	Allocated   []uint64          `json:"allocated_bytes"`
	GCSeconds   []float64         `json:"gc_seconds"`
	TotalWeight uint64            `json:"total"`
	RTS         []activityJSON    `json:"rts,omitempty"`
	// Activity is null for events that do not count time.
	Activity *activityOfJSON `json:"activity"`
	// By column: for how long collections and runs of threads were not watched.
	GCUnwatched      []float64 `json:"gc_unwatched_seconds"`
	ThreadsUnwatched []float64 `json:"threads_unwatched_seconds"`
	// Unrecorded is by column, too: for how long the log says nothing.
	Unrecorded []float64 `json:"unrecorded_seconds"`
}

type timelineRowJSON struct {
	Capability *uint32             `json:"capability"` // null for samples of none
	Weight     uint64              `json:"weight"`
	Categories map[string][]uint64 `json:"categories"`
}

// JSON implements printer.Report.
func (tl OverTime) JSON(w io.Writer, _ printer.Options) error {
	s, t := tl.Selection, tl.Timeline
	e := s.EventDef()
	doc := timelineJSON{
		Event: printer.Known(e.Name()), Unit: printer.Known(e.Unit), From: float64(t.From) / 1e9, To: float64(t.To) / 1e9, Step: float64(t.Step) / 1e9,
		Weight: t.Weight, Samples: t.Samples, Lost: t.Lost, Capability: []timelineRowJSON{},
		Allocated: t.Allocated, GCSeconds: []float64{}, TotalWeight: s.Total, RTS: activityOf(t),
	}
	if doc.Allocated == nil {
		doc.Allocated = []uint64{}
	}
	for _, g := range t.InPauses(s.Profile) {
		doc.GCSeconds = append(doc.GCSeconds, float64(g)/1e9)
	}
	doc.Activity = activityJSONOf(activity.Of(s))
	doc.GCUnwatched, doc.ThreadsUnwatched, doc.Unrecorded = seconds(t.UnwatchedGC), seconds(t.UnwatchedThreads), seconds(t.Unrecorded)
	for i := range t.Caps {
		r := &t.Caps[i]
		row := timelineRowJSON{Weight: r.Weight, Categories: make(map[string][]uint64)}
		if r.Cap != eventlog.NoCapability {
			row.Capability = &r.Cap
		}
		for c, by := range r.ByCategory {
			if by != nil {
				row.Categories[eventlog.Category(c).String()] = by
			}
		}
		doc.Capability = append(doc.Capability, row)
	}
	return printer.JSON(w, doc)
}

func seconds(ns []uint64) []float64 {
	out := make([]float64, len(ns))
	for i, n := range ns {
		out[i] = float64(n) / 1e9
	}
	return out
}

// watchedNote says that rows cover only a part of the time.
func watchedNote(p out, pr *profile.Profile, t *timeline.Timeline) {
	if gap := pr.Log.Unrecorded(t.From, t.To); gap > 0 {
		p.Note("What happened in %s of the time is not known: %s. Shares of time are of the rest.", format.Duration(gap), pr.Log.WhyUnrecorded())
	}
	threads, partlyThreads := pr.Watched("threads")
	gc, partlyGC := pr.Watched("gc")
	var saw []string
	if partlyThreads && len(pr.RTSLog.Runs) > 0 {
		saw = append(saw, "runs of threads in "+format.Duration(threads))
	}
	if partlyGC && len(pr.GCs) > 0 {
		saw = append(saw, "collections in "+format.Duration(gc))
	}
	if len(saw) > 0 {
		p.Note("Probes saw %s of %s. What happened in the rest is not in the rows rts, gc and heap, whose figures are of what was seen; samples are of all. --max-overhead 0 keeps the probes in.", strings.Join(saw, ", "), format.Duration(pr.Duration))
	}
}

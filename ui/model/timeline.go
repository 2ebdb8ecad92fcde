package model

import (
	"cmp"
	"fmt"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/timeline"
)

// activity is the timeline of a window: all transforms but the range hold in
// it, because it is where the range is chosen.
func (e *Engine) activity(q Query) *Lanes {
	var ts []Transform
	for _, t := range q.Transforms.All() {
		if t.Op != OpRange {
			ts = append(ts, t)
		}
	}
	sel, err := e.Select(Samples{q.Event, TransformsOf(ts...)})
	if err != nil {
		return nil
	}
	o := timeline.Options{Buckets: q.Window.Cols, Window: profile.Range{From: q.Window.From, To: q.Window.To}}
	if q.Selected != NoKey {
		id := q.Selected.ID
		o.Mark, o.Level = &id, q.Selected.Level
	}
	t := timeline.Of(sel, o)
	w := q.Window
	out := &Lanes{}
	peak, total, marked := uint64(0), uint64(0), uint64(0)
	for i, w := range t.Weight {
		peak = max(peak, w)
		total += w
		if t.Marked != nil {
			marked += t.Marked[i]
		}
	}
	scale := func(vs []uint64) []float64 {
		fs := make([]float64, len(t.Weight))
		for i := range min(len(vs), len(fs)) {
			if peak > 0 {
				fs[i] = float64(vs[i]) / float64(peak)
			}
		}
		return fs
	}
	out.Total, out.Selected = scale(t.Weight), scale(t.Marked)
	if total > 0 {
		out.SelectedShare = float64(marked) / float64(total)
	}
	out.Missing = t.Missing()
	for _, row := range t.Caps {
		c := capActivity(&row, len(t.Weight))
		c.NotWatched, c.Unseen = out.Missing, t.Unseen
		out.Caps = append(out.Caps, c)
	}
	out.Scheduler = Recall(e, w, func() *Scheduler { return e.scheduler(w, t) })
	return out
}

func (e *Engine) scheduler(w Window, t *timeline.Timeline) *Scheduler {
	s := &Scheduler{Threads: timeline.Threads(e.p, w.From, w.To, w.Cols)}
	var not []bool
	for i := range t.UnwatchedThreads {
		not = append(not, t.UnwatchedThreads[i]*2 >= t.Step)
	}
	for i := range t.UnwatchedGC {
		if not == nil {
			not = make([]bool, len(t.UnwatchedGC))
		}
		not[i] = not[i] || t.UnwatchedGC[i]*2 >= t.Step
	}
	s.NotWatched = not
	for i := range t.RTS {
		if not != nil && !slices.Contains(not, false) {
			break // rows in which nothing is known say nothing
		}
		a := &t.RTS[i]
		c := CapActivity{Cap: int(a.Cap), Name: fmt.Sprintf("rts%d", a.Cap), NotWatched: not}
		for b := range a.Run {
			c.Run = append(c.Run, float64(a.Run[b])/float64(t.Step))
			c.GC = append(c.GC, float64(a.GC[b])/float64(t.Step))
		}
		s.RTS = append(s.RTS, c)
	}
	for _, m := range e.p.Markers {
		if m.Time >= w.From && m.Time < w.To {
			s.Markers = append(s.Markers, m)
		}
	}
	slices.SortStableFunc(s.Markers, func(a, b columns.Marker) int { return cmp.Compare(a.Time, b.Time) })
	return s
}

// capActivity gives a capability's rows: run is a column's weight against the
// capability's busiest, GC the part of the column that collected.
func capActivity(row *profile.CapWeight, n int) CapActivity {
	c := CapActivity{Cap: int(row.Cap), Name: fmt.Sprintf("cap%d", row.Cap), Run: make([]float64, n), GC: make([]float64, n)}
	if row.Cap == eventlog.NoCapability {
		c.Cap, c.Name = -1, "other"
	}
	all := make([]float64, n)
	peak := 0.0
	for cat, ws := range row.ByCategory {
		for i, w := range ws {
			all[i] += float64(w)
			peak = max(peak, all[i])
			if eventlog.Category(cat) == eventlog.CategoryGC {
				c.GC[i] += float64(w)
			}
		}
	}
	for i, w := range all {
		if w > 0 {
			c.GC[i] /= w
			c.Run[i] = w / peak
		}
	}
	return c
}

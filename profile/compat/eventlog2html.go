package compat

import (
	"cmp"
	"errors"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/stacks"
)

// steps is the number of heap samples that a log's allocation is divided into.
const steps = 200

// eventlog2html writes allocation by binding as heap samples. A sample has the bytes that
// each binding allocated since the sample before.
func eventlog2html(ss []*profile.Selection) (Write, error) {
	i := slices.IndexFunc(ss, func(s *profile.Selection) bool { return s.CountsBytes() && s.Samples > 0 })
	if i < 0 {
		return nil, errors.New("the log has no allocation samples, and only these are bytes: record with -e alloc")
	}
	s := ss[i]
	return func(w *eventlog.Writer) error {
		begin := &eventlog.HeapProfBegin{PeriodNs: max(1, s.Profile.Duration/steps), Breakdown: eventlog.BreakdownClosureDescr}
		if err := w.Write(0, eventlog.NoCap, begin); err != nil {
			return err
		}
		type point struct {
			time, bytes uint64
			site        columns.SiteID
		}
		var points []point
		for site, smp := range s.EachSample() {
			points = append(points, point{smp.Time, smp.Weight, site})
		}
		slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.time, b.time) })
		labels := make([]string, len(s.Profile.Sites))
		walker := stacks.NewWalker(s, false)
		bands := make(map[string]uint64)
		era, next := uint64(1), begin.PeriodNs
		flush := func(time uint64) error {
			if len(bands) == 0 {
				return nil
			}
			err := census(w, max(1, time), era, bands)
			clear(bands)
			era++
			return err
		}
		for _, p := range points {
			if p.time >= next {
				if err := flush(next); err != nil {
					return err
				}
				next = p.time - p.time%begin.PeriodNs + begin.PeriodNs
			}
			if labels[p.site] == "" {
				labels[p.site] = "allocated by " + hiddenFrame.Name
				if stack := walker.Stack(p.site); len(stack) > 0 {
					labels[p.site] = "allocated by " + name(stack[0].Frame)
				}
			}
			bands[labels[p.site]] += p.bytes
		}
		// The chart ends with the log's last event, so no census may be later.
		if n := len(points); n > 0 {
			next = min(next, max(points[n-1].time, next-begin.PeriodNs+1))
		}
		return flush(next)
	}, nil
}

func census(w *eventlog.Writer, time, era uint64, bands map[string]uint64) error {
	evs := []eventlog.Event{&eventlog.HeapSampleBegin{Era: era}}
	var labels []string
	for l := range bands {
		labels = append(labels, l)
	}
	slices.Sort(labels)
	for _, l := range labels {
		evs = append(evs, &eventlog.HeapSampleString{Bytes: bands[l], Label: l})
	}
	for _, ev := range append(evs, &eventlog.HeapSampleEnd{Era: era}) {
		if err := w.Write(time, eventlog.NoCap, ev); err != nil {
			return err
		}
	}
	return nil
}

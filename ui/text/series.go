package text

import (
	"fmt"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile"
)

// seriesJSON is the account of a series of censuses of the heap.
type seriesJSON struct {
	PID         uint32       `json:"pid"`
	Problem     string       `json:"problem"`
	Period      float64      `json:"period_seconds"`
	MaxPause    float64      `json:"max_pause_seconds"` // 0: no bound
	Collections uint64       `json:"collections"`
	Majors      uint64       `json:"major_collections"`
	Taken       uint64       `json:"censuses"`
	Missed      []missedJSON `json:"given_up"`
	Longest     float64      `json:"longest_pause_seconds"`
	Stops       uint64       `json:"stops"`
	Over        uint64       `json:"stops_over_max_pause"`
	Stood       float64      `json:"stood_seconds"`
	Agent       float64      `json:"agent_cpu_seconds"`
	Cost        float64      `json:"cost_seconds"`
	Deferred    float64      `json:"deferred_seconds"`
}

type missedJSON struct {
	Reason string `json:"reason"`
	Count  uint64 `json:"count"`
}

func seriesOf(pr *profile.Profile) (all []seriesJSON) {
	for i := range pr.HeapSeries {
		h := &pr.HeapSeries[i]
		j := seriesJSON{
			PID: h.PID, Problem: h.Problem, Period: float64(h.PeriodNs) / 1e9, MaxPause: float64(h.MaxPauseNs) / 1e9, Collections: h.Collections, Majors: h.Majors,
			Taken: h.Taken, Missed: []missedJSON{}, Longest: float64(h.LongestNs) / 1e9, Stops: h.Stops, Over: h.Over, Stood: float64(h.StoodNs) / 1e9, Agent: float64(h.AgentNs) / 1e9,
			Cost: float64(h.CostNs) / 1e9, Deferred: float64(h.DeferredNs) / 1e9,
		}
		h.EachMiss(func(_ eventlog.HeapMiss, why string, n uint64) { j.Missed = append(j.Missed, missedJSON{why, n}) })
		all = append(all, j)
	}
	return all
}

// series prints what censuses of the heap were taken.
func (p out) series(pr *profile.Profile) {
	for i := range pr.HeapSeries {
		h := &pr.HeapSeries[i]
		if h.Problem != "" && h.Taken == 0 {
			if !warned(pr, h.Problem) {
				p.field("censuses", "of the heap: none: "+h.Problem)
			}
			continue
		}
		censuses := strings.Replace(format.Plural(h.Taken, "census"), "censuss", "censuses", 1)
		s := fmt.Sprintf("%s of the heap, no more often than every %s, at %s of all generations, of %s; the program stood for %s at the longest, %s in all (%s of the time)",
			censuses, format.Duration(h.PeriodNs), format.Plural(h.Majors, "collection"), format.Plural(h.Collections, "collection"),
			format.Duration(h.LongestNs), format.Duration(h.StoodNs), format.Percent(format.Ratio(h.StoodNs, pr.Duration)))
		if h.Over > 0 {
			s += fmt.Sprintf("; %d of %s lasted longer than the %s of --max-pause", h.Over, format.Plural(h.Stops, "stop"), format.Duration(h.MaxPauseNs))
		}
		h.EachMiss(func(_ eventlog.HeapMiss, why string, n uint64) { s += fmt.Sprintf("; %d given up: %s", n, why) })
		if h.DeferredNs > 0 {
			s += fmt.Sprintf("; for %s one was due and would have cost more than --max-overhead allows", format.Duration(h.DeferredNs))
		}
		p.field("censuses", s)
	}
}

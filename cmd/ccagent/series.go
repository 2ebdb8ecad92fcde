package main

import (
	"fmt"
	"strings"
	"time"

	"ccagent/agent"
	"ccagent/eventlog"
)

// seriesLines says what a series of censuses has taken and what not.
func seriesLines(h *eventlog.HeapSeries, wall time.Duration) []string {
	if h.Problem != "" && h.Taken == 0 {
		return []string{"heap: no census: " + h.Problem}
	}
	var lines []string
	of := fmt.Sprintf("%s of all generations, of %s", count(h.Majors, "collection"), count(h.Collections, "collection"))
	var missed uint64
	var why []string
	h.EachMiss(func(_ eventlog.HeapMiss, reason string, n uint64) {
		missed += n
		why = append(why, fmt.Sprintf("%d: %s", n, reason))
	})
	switch {
	case h.Taken == 0 && h.Majors == 0:
		return []string{fmt.Sprintf("heap: no census: the program made no collection of all generations in %.1f s (%s of younger ones). It makes one when what is alive has about doubled, and a threaded one when it has been idle: capture for longer, or run it with a smaller +RTS -F", wall.Seconds(), count(h.Collections, "collection"))}
	case h.Taken == 0 && missed == 0:
		lines = append(lines, fmt.Sprintf("heap: no census was due when the program collected: %s", of))
	default:
		lines = append(lines, fmt.Sprintf("heap: %s, at %s; it stood for %.1f ms at the longest, %.1f ms in all",
			strings.Replace(count(h.Taken, "census"), "censuss", "censuses", 1), of, float64(h.LongestNs)/1e6, float64(h.StoodNs)/1e6))
	}
	if missed > 0 {
		lines = append(lines, fmt.Sprintf("heap: %d given up: %s", missed, strings.Join(why, "; ")))
	}
	if h.DeferredNs > 0 {
		lines = append(lines, fmt.Sprintf("heap: for %.1f s a census was due and would have cost more than --max-overhead allows: a larger one, or a longer --duration, brings more", float64(h.DeferredNs)/1e9))
	}
	return lines
}

// censuses is how many censuses a capture has.
func censuses(s *agent.Summary) (n uint64) {
	for _, h := range s.Heap {
		n += h.Taken
	}
	return n
}

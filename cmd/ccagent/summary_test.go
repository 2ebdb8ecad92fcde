package main

import (
	"strings"
	"testing"
	"time"

	"ccagent/agent"
)

// The summary of a capture names an event as the viewer does, also where its rate was lowered.
func TestSummaryNamesEvents(t *testing.T) {
	const title = "cycles (cpu-clock)"
	e := agent.EventSummary{Requested: "cycles", Granted: "cpu-clock", Fallback: "no counters", Unit: "ns", Samples: 3, Weight: 3e6, Rate: 997}
	r := agent.RateChange{At: time.Second}
	r.Rate, r.SampleNs = 97, 1000
	e.Rates = append(e.Rates, r)
	var b strings.Builder
	printSummary(&b, &agent.Summary{Events: []agent.EventSummary{e}, Log: "x.eventlog"})
	if got := b.String(); strings.Count(got, title) != 2 || strings.Contains(strings.ReplaceAll(got, title, ""), "cpu-clock") {
		t.Errorf("want the event twice as %s, and in no other way:\n%s", title, got)
	}
}

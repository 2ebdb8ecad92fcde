package main

import (
	"strings"
	"testing"
	"time"

	"ccagent/agent"
	"ccagent/agent/census"
	"ccagent/internal/transactions"
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

// CPU time inside of transactions is said once: where attempts were counted in windows, by all samples of CPU time.
func TestSummarySaysTransactionsOnce(t *testing.T) {
	var b strings.Builder
	printSummary(&b, &agent.Summary{
		Events:       []agent.EventSummary{{Requested: "stm-cpu", Granted: "stm-cpu", Unit: "ns", Samples: 2, Weight: 8e8}},
		Transactions: &transactions.Totals{Windows: 2, LengthNs: 1e6, StandsNs: 4e9}, InTransactions: 0.006, CPUSamples: 370,
	})
	if got := b.String(); strings.Contains(got, "0.80 s") || !strings.Contains(got, "stm-cpu: 2 samples\n") || !strings.Contains(got, "by 370 samples of CPU time") {
		t.Error(got)
	}
}

// What was not looked at of waits is said.
func TestSummarySaysWhatIsNotWatched(t *testing.T) {
	for out, want := range map[time.Duration]string{0: "", 3 * time.Second: "off-cpu: not watched for 3.00 s, to cost no more: threads that wait in calls were off the CPU for 1.00 to 2.00 s then, (not watched); others, which may have been idle, for 4.00 s"} {
		var b strings.Builder
		e := agent.EventSummary{Requested: "off-cpu", Granted: "off-cpu", Unit: "ns"}
		if out > 0 {
			e.Unwatched = agent.Unwatched{Out: out, Least: time.Second, Most: 2 * time.Second, Idle: 4 * time.Second}
		}
		printSummary(&b, &agent.Summary{Events: []agent.EventSummary{e}, TargetCPU: 4 * time.Second})
		if got := b.String(); !strings.Contains(got, want) || strings.Contains(got, "not watched") != (want != "") {
			t.Errorf("%v:\n%s", out, got)
		}
	}
}

// A program that was stopped several times is said to have been.
func TestStopsText(t *testing.T) {
	const ms = time.Millisecond
	for want, stops := range map[string]census.Stops{
		"not stopped, as it is frozen": {},
		"stopped for 1.5 ms":           {Number: 1, Longest: 1500 * time.Microsecond, Sum: 1500 * time.Microsecond},
		"stopped 3 times, for 2.0 ms at the longest and 4.5 ms altogether": {Number: 3, Longest: 2 * ms, Sum: 4500 * time.Microsecond},
	} {
		if got := stopsText(stops); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

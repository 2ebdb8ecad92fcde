package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ccagent/agent"
	"ccagent/eventlog"
	"ccagent/profile/activity"
	"ccagent/profile/columns"
	"ccagent/ui/text"
)

// printSummary prints the results of a capture.
func printSummary(w io.Writer, s *agent.Summary) {
	line := func(format string, args ...any) { sayTo(w, format, args...) }
	for _, e := range s.Events {
		if e.Granted == "" {
			line("%s: not available", e.Requested)
			continue
		}
		of := ", " + amount(e.Weight, e.Unit)
		if t := s.Transactions; e.Granted == columns.STMCPU && t != nil && !t.Exact() && s.CPUSamples > 0 {
			of = "" // samples of CPU time, of which there are more, say how much it is
		}
		line("%s: %s%s%s", eventlog.EventTitle(e.Requested, e.Granted), count(e.Samples, "sample"), of, idleness(e.Idle))
		if n := len(e.Rates); n > 0 {
			line("%s", rateLine(&e))
		}
	}
	if s.Transactions != nil && s.Transactions.Windows > 0 {
		for i, words := range text.Transactions(s.Transactions, text.InTransactions{Share: s.InTransactions, Samples: s.CPUSamples}) {
			line("%s: %s", []string{"stm", "stm CPU time"}[i], words)
		}
	}
	if words, ok := duplicatedLine(s); ok {
		line("duplicated: %s", words)
	}
	for _, p := range s.Probes {
		if p.Problem != "" {
			line("%s: not available", p.Group)
			continue
		}
		text := fmt.Sprintf("%s: %s of probes, about %.1f ms", p.Group, count(p.Hits, "hit"), float64(p.CostNs)/1e6)
		if p.OutNs > 0 {
			text += fmt.Sprintf("; out for %.1f s to cost no more", float64(p.OutNs)/1e9)
		}
		if p.Dropped > 0 {
			text += fmt.Sprintf("; %d of the hits not recorded: more than are kept", p.Dropped)
		}
		line("%s", text)
	}
	for _, h := range s.Heap {
		for _, text := range seriesLines(h, s.Wall) {
			line("%s", text)
		}
	}
	lost := fmt.Sprintf("%d lost, %d throttled", s.Lost, s.Throttled)
	if n := notRecorded(s); n > 0 {
		lost += fmt.Sprintf("; %s of probes not recorded", count(n, "hit"))
	}
	line("%s", lost)
	walked := s.Complete + s.Truncated + s.Failed
	if walked > 0 {
		line("Haskell stacks: %s complete, %s truncated, %s failed; %s without one",
			percent(s.Complete, walked), percent(s.Truncated, walked), percent(s.Failed, walked), count(s.NoHaskell, "sample"))
	}
	if s.Samples > 0 {
		line("unresolved: %s of the samples of all events", percent(s.Unresolved, s.Samples))
	}
	cost := fmt.Sprintf("agent: %.0f ms CPU", s.AgentCPU.Seconds()*1e3)
	if s.BPFRuns > 0 {
		cost += fmt.Sprintf(", %d ns a sample in BPF (walk: median %d, p99 %d)",
			s.BPFTime.Nanoseconds()/int64(s.BPFRuns), s.WalkMedian.Nanoseconds(), s.WalkP99.Nanoseconds())
	}
	line("%s", cost)
	if s.TargetCPU > 0 {
		line("%s", overheadLine(s))
	}
	for _, e := range s.Events {
		if u := e.Unwatched; u.Most > 0 || u.Out > 0 {
			line("%s", unwatchedLine(e.Granted, u))
		}
	}
	for _, p := range s.SymbolProblems {
		line("symbols: %s", p)
	}
	if s.Dropped > 0 {
		line("%s removed, as --keep asks", count(uint64(s.Dropped), "older log"))
	}
	if len(s.Pieces) > 0 {
		line("%s and %d before it, from %s on (%s); ccview export --to eventlog merges them", s.Log, len(s.Pieces), s.Pieces[0], bytesAmount(s.LogSize))
		return
	}
	line("%s (%s)", s.Log, bytesAmount(s.LogSize))
}

// unwatchedLine says what was not looked at of waits.
func unwatchedLine(event string, u agent.Unwatched) string {
	s := fmt.Sprintf("%s: not watched for %.2f s, to cost no more: threads that wait in calls were off the CPU for %.2f to %.2f s then, (not watched)",
		event, u.Out.Seconds(), u.Least.Seconds(), u.Most.Seconds())
	if u.Idle > 0 {
		s += fmt.Sprintf("; others, which may have been idle, for %.2f s", u.Idle.Seconds())
	}
	return s
}

// notRecorded is the number of hits of probes that had no record: there were too many.
func notRecorded(s *agent.Summary) (n uint64) {
	for _, p := range s.Probes {
		n += p.Dropped
	}
	return n
}

// rateLine reports the rate at which an event was sampled instead of the requested one.
func rateLine(e *agent.EventSummary) string {
	last := e.Rates[len(e.Rates)-1]
	unit := "Hz"
	if e.Period {
		unit = e.Unit + " a sample"
	}
	why := fmt.Sprintf("a sample costs %.0f µs", float64(last.SampleNs)/1e3)
	if last.InterruptNs > last.SampleNs {
		why = fmt.Sprintf("an interrupt costs %.0f µs", float64(last.InterruptNs)/1e3)
	}
	return fmt.Sprintf("%s: %d %s asked, %d taken since %.1f s: %s here; --max-overhead 0 keeps the rate", eventlog.EventTitle(e.Requested, e.Granted), e.Rate, unit, last.Rate, last.At.Seconds(), why)
}

// overheadLine reports the part of the program's CPU time that measuring took.
func overheadLine(s *agent.Summary) string {
	part := func(d time.Duration) string { return fmt.Sprintf("%.2f %%", 100*d.Seconds()/s.TargetCPU.Seconds()) }
	text := fmt.Sprintf("overhead: about %s of the program's CPU time", part(s.InterruptTime+s.BPFTime+s.ProbeTime+s.Stood))
	if s.Interrupts > 0 {
		text += fmt.Sprintf(": %s interrupts (%.1f µs each), %s BPF", part(s.InterruptTime), s.InterruptTime.Seconds()*1e6/float64(s.Interrupts), part(s.BPFTime))
		if s.ProbeTime > 0 {
			text += fmt.Sprintf(", %s hits of probes", part(s.ProbeTime))
		}
	}
	if s.Stood > 0 {
		text += fmt.Sprintf("; %s of it stood for censuses of its heap", part(s.Stood))
	}
	return text
}

// idleness reports the waiting time of idle OS threads, which is not counted.
func idleness(idle time.Duration) string {
	if idle == 0 {
		return ""
	}
	return fmt.Sprintf("; %.2f s of idle OS threads are not counted", idle.Seconds())
}

// count is a number of things.
func count(n uint64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func percent(part, whole uint64) string {
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

func amount(n uint64, unit string) string {
	switch unit {
	case "ns":
		return fmt.Sprintf("%.2f s", time.Duration(n).Seconds())
	case "bytes":
		return bytesAmount(int64(n))
	}
	return fmt.Sprintf("%d %s", n, unit)
}

func bytesAmount(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.0f KiB", float64(n)/(1<<10))
}

// watched reports whether a log without samples says something all the same: that there were no collections and
// no switches of Haskell threads, or none but those that it has, or that no thread waited.
func watched(s *agent.Summary) bool {
	probed := slices.ContainsFunc(s.Probes, func(p eventlog.RTSProbes) bool { return p.Problem == "" })
	return probed || !slices.ContainsFunc(s.Events, func(e agent.EventSummary) bool { return e.WhyNone == "" })
}

// whyNoSample returns the likely reason why there are no samples.
func whyNoSample(s *agent.Summary) string {
	switch {
	case len(s.Events) == 1 && s.Events[0].WhyNone != "":
		return s.Events[0].WhyNone
	case s.Lost > 0:
		return fmt.Sprintf("all %d were lost", s.Lost)
	case s.TargetCPU == 0 && s.Wall > time.Second:
		return "the program used no CPU time; it may have been waiting throughout"
	case s.Wall < 100*time.Millisecond:
		return fmt.Sprintf("the program ended within %v; raise the rate with -F, or give it more to do", s.Wall.Round(100*time.Microsecond))
	}
	return "the program hardly used CPU time while it was watched; capture longer or raise the rate with -F"
}

// duplicatedLine says how much CPU time went into evaluating what another thread evaluates too; false if that was not measured.
func duplicatedLine(s *agent.Summary) (string, bool) {
	var part, all *agent.EventSummary
	for i := range s.Events {
		sum := &s.Events[i]
		switch e := (columns.Event{EventDef: eventlog.EventDef{Granted: sum.Granted, Unit: sum.Unit}}); {
		case e.Granted == columns.Duplicated:
			part = sum
		case all == nil && e.CPU():
			all = sum
		}
	}
	if part == nil || all == nil {
		return "", false
	}
	share, ok := activity.DuplicatedShare(part.Weight, all.Weight, all.Samples)
	words, advice := activity.Duplicated(share)
	return strings.TrimSuffix(words+"; "+advice, "; "), ok
}

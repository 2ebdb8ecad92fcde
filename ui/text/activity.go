package text

import (
	"fmt"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile/activity"
	"ccagent/ui/printer"
)

// threadRows bounds the threads that a timeline lists.
const threadRows = 8

// activity prints how capabilities and Haskell threads spent the time, by samples.
func (p out) activity(a *activity.Activity, o printer.Options) {
	if a == nil {
		return
	}
	p.Wrap(p.Bold, " ", "time of each capability,", format.Duration(a.Ns), "from", format.Seconds(a.From), "to", format.Seconds(a.To)+",", "by samples")
	several := false
	for i := range a.Capabilities {
		several = several || a.Capabilities[i].PID != a.Capabilities[0].PID
	}
	for i := range a.Capabilities {
		c := &a.Capabilities[i]
		label := fmt.Sprintf("cap %d", c.Cap)
		if several {
			label = fmt.Sprintf("%d:%d", c.PID, c.Cap)
		}
		parts := []string{" " + label}
		for s := range c.Shares {
			parts = append(parts, activity.State(s).String()+" "+sure(&c.Shares[s]))
		}
		p.Wrap(plain, "   ", parts...)
	}
	shown := p.Rows(len(a.Threads), threadRows)
	for i := range a.Threads[:shown] {
		t := &a.Threads[i]
		p.Wrap(plain, "   ", printer.PadRight(fmt.Sprintf(" thread %d", t.TSO), timelineLeft), sure(&t.Share), printer.Fit(t.Label, 20))
	}
	if rest := len(a.Threads) - shown; rest > 0 {
		p.Wrap(p.Faint, " ", " "+format.Plural(uint64(rest), "more thread"), "that ran")
	}
	p.Line("")
}

// sparks prints what became of sparks.
func (p out) sparks(s *eventlog.Sparks) {
	line, advice := activity.Sparks(s)
	if line == "" {
		return
	}
	p.Wrap(plain, "   ", strings.Split(" "+line, ", ")...)
	if advice != "" {
		p.Note("%s", advice)
	}
	p.Line("")
}

func plain(s string) string { return s }

func sure(s *activity.Share) string {
	return format.Percent(s.Of) + " " + format.PlusMinus(s.Of, s.PlusMinus(s.Of))
}

type activityOfJSON struct {
	From         float64              `json:"from_seconds"`
	Seconds      float64              `json:"seconds"`
	Capabilities []capabilityTimeJSON `json:"capabilities"`
	Threads      []threadTimeJSON     `json:"threads"`
}

type capabilityTimeJSON struct {
	PID        uint32        `json:"pid"`
	Capability uint32        `json:"capability"`
	Mutator    timeShareJSON `json:"mutator"`
	GC         timeShareJSON `json:"gc"`
	GCWaiting  timeShareJSON `json:"gc_waiting"`
	Scheduler  timeShareJSON `json:"scheduler"`
	Off        timeShareJSON `json:"off_cpu"`
}

type threadTimeJSON struct {
	PID   *uint32 `json:"pid"`
	ID    uint64  `json:"id"`
	Label *string `json:"label"`
	timeShareJSON
}

type timeShareJSON struct {
	Share   float64 `json:"share"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Samples uint64  `json:"samples"`
}

func activityJSONOf(a *activity.Activity) *activityOfJSON {
	if a == nil {
		return nil
	}
	of := func(s *activity.Share) timeShareJSON { return timeShareJSON{s.Of, s.Low, s.High, s.Samples} }
	doc := &activityOfJSON{From: float64(a.From) / 1e9, Seconds: float64(a.Ns) / 1e9, Capabilities: []capabilityTimeJSON{}, Threads: []threadTimeJSON{}}
	for i := range a.Capabilities {
		c := &a.Capabilities[i]
		s := &c.Shares
		doc.Capabilities = append(doc.Capabilities, capabilityTimeJSON{c.PID, c.Cap, of(&s[activity.Mutator]), of(&s[activity.GC]),
			of(&s[activity.GCWaiting]), of(&s[activity.Scheduler]), of(&s[activity.Off])})
	}
	for i := range a.Threads {
		t := &a.Threads[i]
		doc.Threads = append(doc.Threads, threadTimeJSON{printer.Known(t.PID), t.TSO, printer.Known(t.Label), of(&t.Share)})
	}
	return doc
}

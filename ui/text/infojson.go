package text

import (
	"fmt"
	"io"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/activity"
	"ccagent/profile/columns"
	"ccagent/ui/printer"
)

type infoJSON struct {
	Program    programJSON         `json:"program"`
	RTS        *rtsJSON            `json:"rts,omitempty"`
	GHC        ghcJSON             `json:"ghc"`
	Host       hostJSON            `json:"host"`
	Events     []eventJSON         `json:"events"`
	Stacks     stacksInfoJSON      `json:"stacks"`
	Exact      *exactJSON          `json:"cost_centre_stacks,omitempty"`
	Categories map[string]*float64 `json:"categories"`
	Agent      agentJSON           `json:"agent"`
	Duration   *float64            `json:"duration_seconds"`
	Symbolised bool                `json:"symbolised"`
	Complete   bool                `json:"complete"`
	Log        logJSON             `json:"log"`
	Modules    []moduleJSON        `json:"modules"`
	Warnings   []string            `json:"warnings,omitempty"`
	Loss       []lossJSON          `json:"loss"`
	Probes     []probesJSON        `json:"probes"`
	// Transactions are the attempts to run STM transactions, if they were counted.
	Transactions *transactionsJSON `json:"transactions,omitempty"`
	// Duplicated is the part of the CPU time that went into evaluating what another thread evaluates too, if it was estimated.
	Duplicated *figureJSON  `json:"duplicated_evaluation,omitempty"`
	Heap       []seriesJSON `json:"heap,omitempty"`
}

type programJSON struct {
	Path       *string  `json:"path"`
	Args       []string `json:"args"`
	PID        *uint32  `json:"pid"`
	UID        *uint32  `json:"uid"`
	Mode       *string  `json:"mode"`
	Start      *string  `json:"start"`
	End        *string  `json:"end"`
	ExitStatus *uint32  `json:"exit_status"`
}

type ghcJSON struct {
	Version       *string `json:"version"`
	Way           *string `json:"way"`
	LayoutAssumed *bool   `json:"layout_assumed"`
	RTS           *string `json:"rts"`
}

type hostJSON struct {
	Name     *string `json:"name"`
	Kernel   *string `json:"kernel"`
	Arch     *string `json:"arch"`
	CPUModel *string `json:"cpu_model"`
	CPUs     *uint32 `json:"cpus"`
	Agent    *string `json:"ccagent_version"`
}

// rateJSON is at what rate an event was sampled from a time on, and why.
type rateJSON struct {
	Since       float64 `json:"since_seconds"`
	Rate        uint64  `json:"rate"`
	InterruptNs *uint32 `json:"interrupt_ns"`
	SampleNs    *uint32 `json:"sample_ns"`
}

type eventJSON struct {
	Name      string  `json:"name"`
	Requested string  `json:"requested"`
	Granted   *string `json:"granted"`
	Fallback  *string `json:"fallback"`
	Unit      *string `json:"unit"`
	Samples   uint64  `json:"samples"`
	Weight    uint64  `json:"weight"`
	Lost      *uint64 `json:"lost"`
	Throttled *uint64 `json:"throttled"`
	Frequency *uint64 `json:"frequency_hz"`
	Period    *uint64 `json:"period"`
	// Rates are what --max-overhead made of either, in order of time.
	Rates []rateJSON `json:"rates,omitempty"`
	// Achieved is samples a second of cpu time, OnCounter the part of the time in
	// which the event was counted.
	Achieved  *float64 `json:"achieved_hz"`
	OnCounter *float64 `json:"on_counter"`
	Counted   *uint64  `json:"counted"`
	// Categories are shares of the event by category of the code.
	Categories []categoryJSON `json:"categories"`
	// Sampling is how the event was sampled.
	Sampling *samplingJSON `json:"sampling,omitempty"`
	// NotWatched is for how long threads that wait were off the CPU where that was not looked at.
	NotWatched *notWatchedJSON `json:"not_watched"`
}

// categoryJSON is a category's share, with its 95 % interval, which is null in logs too large for it.
type categoryJSON struct {
	Name  string   `json:"category"`
	Share *float64 `json:"share"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

type stacksInfoJSON struct {
	Complete  uint64            `json:"complete"`
	Truncated uint64            `json:"truncated"`
	Failed    uint64            `json:"failed"`
	None      uint64            `json:"none"`
	Reasons   map[string]uint64 `json:"reasons"`
	TopsByCFI uint64            `json:"tops_by_cfi"`
	Scanned   uint64            `json:"tops_scanned"`
}

type agentJSON struct {
	CPUSeconds  *float64 `json:"cpu_seconds"`
	MaxRSS      *uint64  `json:"max_rss_bytes"`
	NsPerSample *float64 `json:"bpf_ns_per_sample"`
	// WalkMedianNs and WalkP99Ns are what one sample's stack walk took.
	WalkMedianNs *uint64  `json:"walk_median_ns"`
	WalkP99Ns    *uint64  `json:"walk_p99_ns"`
	BPFRuns      *uint64  `json:"bpf_runs"`
	BPFSeconds   *float64 `json:"bpf_seconds"`
	// Overhead is time in BPF as a fraction of the program's CPU time; null where
	// one of the two is unknown.
	Overhead *float64 `json:"overhead"`
	// Budget is the cost of measuring, probes included, and what was left out.
	Budget *overheadJSON `json:"budget,omitempty"`
}

type logJSON struct {
	Bytes      int64             `json:"damaged_bytes"`
	Malformed  int               `json:"malformed"`
	Unknown    uint64            `json:"unknown_events"`
	Undefined  uint64            `json:"undefined_references"`
	Redefined  uint64            `json:"redefined"`
	Dropped    uint64            `json:"dropped_samples"`
	Damage     []damageJSON      `json:"damage"`
	References map[string]uint64 `json:"undefined"`
}

type damageJSON struct {
	Offset int64  `json:"offset"`
	Length int64  `json:"length"`
	Reason string `json:"reason"`
}

type moduleJSON struct {
	Path       string  `json:"path"`
	BuildID    *string `json:"build_id"`
	Symbolised bool    `json:"symbolised"`
	GHCVersion *string `json:"ghc_version"`
	Way        *string `json:"way"`
	Symtab     *bool   `json:"symtab"`
	DWARF      *bool   `json:"dwarf"`
	Notes      *bool   `json:"source_notes"`
	IPE        *bool   `json:"ipe"`
	Problem    *string `json:"problem"`
}

type lossJSON struct {
	Seconds float64 `json:"seconds"`
	CPU     uint32  `json:"cpu"`
	Event   uint32  `json:"event"`
	Reason  string  `json:"reason"`
	Count   uint64  `json:"count"`
}

// JSON implements printer.Report; it has every loss.
func (i Info) JSON(w io.Writer, _ printer.Options) error { return printer.JSON(w, infoOf(i.Profile)) }

func infoOf(p *profile.Profile) infoJSON {
	c := &p.Capture
	version, way := ghcOf(p)
	doc := infoJSON{
		Program: programJSON{Path: printer.Known(c.Program), Args: append([]string{}, c.Args...), PID: printer.Known(c.PID), UID: printer.If(p.HaveCapture, c.UID)},
		GHC:     ghcJSON{printer.Known(version), printer.Known(way), printer.If(p.HaveCapture, c.LayoutAssumed), printer.Known(p.RTS)},
		Host: hostJSON{printer.Known(c.Label(eventlog.LabelHost)), printer.Known(c.Kernel), printer.Known(c.Arch), printer.Known(c.CPUModel),
			printer.Known(c.CPUs), printer.Known(c.AgentVersion)},
		Events: []eventJSON{}, Categories: map[string]*float64{}, Modules: []moduleJSON{}, Loss: []lossJSON{},
		Duration: printer.Known(float64(p.Lasted()) / 1e9), Symbolised: p.Symbolised, Complete: p.Accounting.Complete && (p.HaveEnd || !p.HaveCapture),
	}
	doc.RTS = rtsOf(p)
	doc.Probes, doc.Heap = probesOf(p), seriesOf(p)
	doc.Transactions = transactionsOf(p)
	if s, ok := activity.DuplicatedOf(p); ok {
		doc.Duplicated = &figureJSON{s.Of, s.Low, s.High}
	}
	if p.HaveCapture {
		mode := "record"
		if c.Mode == eventlog.CaptureAttach {
			mode = "attach"
		}
		doc.Program.Mode = &mode
		doc.Program.Start = printer.If(c.StartUnixNs > 0, time.Unix(0, int64(c.StartUnixNs)).UTC().Format(time.RFC3339Nano))
	}
	if p.HaveEnd {
		doc.Program.End = printer.Known(map[eventlog.EndReason]string{
			eventlog.EndExited: "exited", eventlog.EndDuration: "duration", eventlog.EndInterrupted: "interrupted", eventlog.EndFailed: "failed",
			eventlog.EndRotated: "rotated",
		}[p.End.Reason])
		if p.End.HaveStatus {
			doc.Program.ExitStatus = &p.End.ExitStatus
		}
	}
	for i := range p.Events {
		e := &p.Events[i]
		ours := p.HaveCapture && !e.Undefined // else nobody counted what was lost
		ev := eventJSON{Name: e.Name(), Requested: e.Requested, Granted: printer.Known(e.Granted), Fallback: printer.Known(e.Fallback), Unit: printer.Known(e.Unit),
			Samples: e.Samples, Weight: e.Weight, Lost: printer.If(ours, e.Lost), Throttled: printer.If(ours, e.Throttled), Achieved: printer.Known(e.Achieved()),
			OnCounter: printer.If(e.Count.EnabledNs > 0, e.OnCounter()), Counted: printer.If(e.Count != eventlog.EventCount{}, e.Count.Value)}
		if e.RateMode == eventlog.RateFrequency {
			ev.Frequency = printer.Known(e.Rate)
		} else {
			ev.Period = printer.Known(e.Rate)
		}
		ev.Sampling, ev.NotWatched, ev.Categories = samplingJSONOf(e), notWatchedOf(e), categoriesOf(p, i)
		for _, r := range e.Rates {
			ev.Rates = append(ev.Rates, rateJSON{float64(r.Time) / 1e9, r.Rate, printer.Known(r.InterruptNs), printer.Known(r.SampleNs)})
		}
		doc.Events = append(doc.Events, ev)
	}
	doc.Exact = exactOf(p)
	st := p.Stacks()
	doc.Stacks = stacksInfoJSON{st.Complete, st.Truncated, st.Failed, st.None, st.Reasons, st.TopsByCFI, st.TopsScanned}
	if st.Reasons == nil {
		doc.Stacks.Reasons = map[string]uint64{}
	}
	for _, cat := range p.Select(profile.Filter{}).Categories() {
		doc.Categories[cat.Name] = printer.If(shareKnown(p, cat.Name, uint64(p.Samples())), cat.Share)
	}
	doc.Agent = agentOf(p)
	a := &p.Accounting
	doc.Log = logJSON{a.Passed, a.Malformed, a.Unknown, a.Undefined.Sum(), a.Redefined, a.Dropped, []damageJSON{}, undefinedOf(&a.Undefined)}
	for _, d := range a.Damage {
		doc.Log.Damage = append(doc.Log.Damage, damageJSON{d.Offset, d.Length, d.Reason})
	}
	for i := range p.Modules {
		m := &p.Modules[i]
		s := &m.Symbols
		has := func(what bool) *bool { return printer.If(m.HaveSymbols && p.HaveCapture, what) }
		doc.Modules = append(doc.Modules, moduleJSON{m.Path, printer.Known(fmt.Sprintf("%x", m.BuildID)), m.HaveSymbols, printer.Known(s.GHCVersion), printer.Known(s.Way),
			has(s.HasSymtab), has(s.HasDWARF), has(s.HasNotes), has(s.HasIPE), printer.Known(s.Problem)})
	}
	for _, w := range p.Warnings {
		doc.Warnings = append(doc.Warnings, w.Text)
	}
	for _, l := range p.Losses {
		doc.Loss = append(doc.Loss, lossJSON{float64(l.Time) / 1e9, l.CPU, l.Event, lossName(l.Reason), l.Count})
	}
	return doc
}

// ghcOf is the release and the way of the program, as far as the log says.
func ghcOf(p *profile.Profile) (version, way string) {
	if p.Capture.GHCVersion == "" {
		return rtsVersion(p.RTS)
	}
	return p.Capture.GHCVersion, p.Capture.Way
}

func undefinedOf(u *columns.Undefined) map[string]uint64 {
	out := map[string]uint64{}
	for _, x := range []struct {
		name string
		n    uint64
	}{{"events", u.Events}, {"nodes", u.Nodes}, {"parents", u.Parents}, {"bindings", u.Bindings}, {"spans", u.Spans}, {"files", u.Files}, {"blocks", u.Blocks}, {"cores", u.Cores}} {
		if x.n > 0 {
			out[x.name] = x.n
		}
	}
	return out
}

func agentOf(p *profile.Profile) agentJSON {
	c, ok := p.Cost()
	if !ok {
		return agentJSON{}
	}
	told := c.BPFRuns > 0 && c.BPFNs > 0 // else the kernel does not measure it
	a := agentJSON{CPUSeconds: printer.If(true, float64(c.CPUNs)/1e9), MaxRSS: printer.Known(c.RSS), BPFRuns: printer.If(told, c.BPFRuns), BPFSeconds: printer.If(told, float64(c.BPFNs)/1e9),
		WalkMedianNs: printer.Known(c.WalkMedianNs), WalkP99Ns: printer.Known(c.WalkP99Ns)}
	a.Budget = overheadOf(p)
	if !told {
		return a
	}
	a.NsPerSample = printer.If(true, float64(c.BPFNs)/float64(c.BPFRuns))
	// An event in ns is a clock: its weight is the program's cpu time.
	for i := range p.Events {
		if e := &p.Events[i]; e.Clock() && e.Weight > 0 {
			a.Overhead = printer.If(true, format.Ratio(c.BPFNs, e.Weight))
			break
		}
	}
	return a
}

func lossName(r eventlog.LossReason) string {
	switch r {
	case eventlog.LossRingFull:
		return "ring-full"
	case eventlog.LossThrottled:
		return "throttled"
	case eventlog.LossNested:
		return "nested"
	case eventlog.LossDecode:
		return "decode"
	case eventlog.LossWait:
		return "wait"
	case eventlog.LossSideBand:
		return "side-band"
	case eventlog.LossUnread:
		return "unread"
	case eventlog.LossUnwritten:
		return "unwritten"
	default:
		return "unknown"
	}
}

// base is a path's last element.

// shareKnown reports whether a category's share of samples is known: without names of code, that
// of others than the kernel is not.
func shareKnown(p *profile.Profile, category string, samples uint64) bool {
	unresolved := category == eventlog.CategoryUnresolved.String() || category == eventlog.CategoryKernel.String()
	return samples > 0 && (p.Symbolised || unresolved)
}

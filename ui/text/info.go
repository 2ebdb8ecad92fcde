package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/activity"
	"ccagent/profile/columns"
	"ccagent/profile/diagnosis"
	"ccagent/profile/interval"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
)

// Info is the report of a log's metadata and of all accounting.
type Info struct{ Profile *profile.Profile }

// Text implements printer.Report.
func (i Info) Text(w io.Writer, o printer.Options) error {
	pr := i.Profile
	p := newOut(w, o)
	doc := infoOf(pr)
	c := &pr.Capture
	p.Line(p.Bold(printer.Fit(o.File, o.Width)))
	if pr.HaveCapture {
		p.field("program", strings.TrimSpace(c.Program+" "+strings.Join(tail(c.Args), " ")))
		p.field("process", fmt.Sprintf("pid %d, uid %d", c.PID, c.UID))
		p.field("recorded", time.Unix(0, int64(c.StartUnixNs)).UTC().Format("2006-01-02 15:04:05 UTC")+" by ccagent "+c.AgentVersion+modeName(c.Mode))
		p.field("host", strings.Trim(fmt.Sprintf("%s, %s, Linux %s %s, %s", c.Label(eventlog.LabelHost), c.CPUModel, c.Kernel, c.Arch, format.Plural(uint64(c.CPUs), "CPU")), ", "))
	}
	if version, way := ghcOf(pr); version != "" || way != "" {
		ghc := strings.TrimSpace(version + " " + way)
		if c.LayoutAssumed {
			ghc += " (heap layout assumed: this version is not known)"
		}
		p.field("ghc", ghc)
	}
	p.rts(pr)
	p.field("duration", format.Duration(pr.Lasted())+endName(pr))
	p.Line("")
	p.events(pr)
	p.stacks(doc.Stacks)
	p.categories(pr, doc)
	p.exact(doc.Exact)
	p.transactions(pr)
	if share, ok := activity.DuplicatedOf(pr); ok {
		line, advice := activity.Duplicated(share)
		p.field("duplicated", strings.TrimSuffix(line+"; "+advice, "; "))
	}
	p.agent(pr, doc)
	p.warnings(pr)
	p.probes(pr)
	p.series(pr)
	p.modules(pr)
	p.logState(pr)
	return p.Flush()
}

func (p out) field(name, value string) {
	if value == "" {
		return
	}
	p.Hang("  "+p.Faint(printer.PadRight(name, 10))+" ", plain, printer.Fit(value, 0))
}

func tail(args []string) []string {
	if len(args) == 0 {
		return nil
	}
	return args[1:]
}

func modeName(m eventlog.CaptureMode) string {
	if m == eventlog.CaptureAttach {
		return ", attached to the running process"
	}
	return ""
}

func endName(p *profile.Profile) string {
	switch {
	case !p.HaveCapture:
		return ""
	case !p.HaveEnd:
		return ", the capture was cut off"
	}
	var s string
	switch p.End.Reason {
	case eventlog.EndExited:
		s = ", until the program ended"
	case eventlog.EndDuration:
		s = ", as long as was asked for"
	case eventlog.EndInterrupted:
		s = ", until interrupted"
	case eventlog.EndRotated:
		s = ", then the capture goes on in the next log"
	case eventlog.EndFailed:
		s = ", until ccagent failed: " + p.End.Detail
	}
	if p.End.HaveStatus {
		s += fmt.Sprintf(" (exit status %d)", p.End.ExitStatus)
	}
	return s
}

func (p out) events(pr *profile.Profile) {
	if len(pr.Events) == 0 {
		if pr.RTS == "" {
			p.Line("  no event was recorded in this log")
		}
		return
	}
	p.Line(p.Bold(fmt.Sprintf("  %-33s %10s %14s %8s %9s", "event", "samples", "weight", "lost", "throttled")))
	room := 0 // for the weight
	if p.Width > 0 {
		room = 14
	}
	for i := range pr.Events {
		e := &pr.Events[i]
		p.Linef("  %s %10s %s %8s %9s", printer.PadRight(printer.Fit(e.Title(), 33), 33),
			format.Count(e.Samples), printer.PadLeft(printer.Fit(printer.Quantity(e.Weight, e.Unit), room), 14), format.Count(e.Lost), format.Count(e.Throttled))
		if e.Fallback != "" {
			p.Hang("    ", p.Faint, printer.Fit(e.Fallback, 0))
		}
		if e.Granted != "" {
			p.Hang("    ", p.Faint, printer.Fit(rateOf(e), 0))
		}
		for _, line := range samplingOf(e) {
			p.Hang("    ", p.Faint, printer.Fit(line, 0))
		}
		if len(e.Rates) > 0 {
			p.Hang("    ", p.Faint, printer.Fit(loweredRate(e), 0))
		}
	}
	p.Line("")
}

// rateOf describes the rate at which an event was to be sampled, and was.
func rateOf(e *columns.Event) string {
	var s string
	switch {
	case e.Granted == columns.Duplicated:
		return "estimated: samples of CPU time in which a thread evaluates what another one has evaluated, or evaluates too"
	case e.Granted == "blocked":
		return "at random moments, Haskell threads that wait, with the time from moment to moment"
	case e.Waits():
		return "each wait in a call from Haskell, with its time off the CPU"
	case e.Requested == "alloc":
		return "where memory is allocated, within the budget; code whose heap checks ask for more than it uses has too large a share"
	case e.RateMode == eventlog.RatePeriod && e.Rate == 0:
		return "by probes, within the budget"
	case e.RateMode == eventlog.RatePeriod:
		s = fmt.Sprintf("every %s %s", format.Count(e.Rate), e.Unit)
	default:
		s = fmt.Sprintf("%s a second", format.Count(e.Rate))
	}
	if a := e.Achieved(); a > 0 {
		s += fmt.Sprintf("; %.0f a second of CPU time were taken", a)
	}
	if on := e.OnCounter(); on < 0.9995 {
		s += fmt.Sprintf("; on a counter %s of the time, by which weights are scaled", format.Percent(on))
	}
	return s
}

// loweredRate describes how --max-overhead lowered an event's rate, and why.
func loweredRate(e *columns.Event) string {
	last := e.Rates[len(e.Rates)-1]
	unit := "Hz"
	if e.RateMode == eventlog.RatePeriod {
		unit = e.Unit + " a sample"
	}
	s := fmt.Sprintf("%s %s asked, %s taken since %s", format.Count(e.Rate), unit, format.Count(last.Rate), format.Duration(last.Time))
	if n := len(e.Rates); n > 1 {
		s += fmt.Sprintf(" (lowered first after %s)", format.Duration(e.Rates[0].Time))
	}
	s += ": "
	if last.InterruptNs > 0 {
		s += fmt.Sprintf("an interrupt costs %s here, ", format.Duration(uint64(last.InterruptNs)))
	}
	return s + fmt.Sprintf("a sample %s; --max-overhead 0 keeps the rate", format.Duration(uint64(last.SampleNs)))
}

func (p out) stacks(st stacksInfoJSON) {
	total := st.Complete + st.Truncated + st.Failed
	if total+st.None == 0 {
		return
	}
	of := func(n uint64) string { return format.Count(n) + " (" + format.Percent(format.Ratio(n, total)) + ")" }
	none := ""
	if st.None > 0 {
		none = "; " + format.Plural(st.None, "sample") + " outside Haskell"
	}
	p.field("stacks", fmt.Sprintf("complete %s, truncated %s, failed %s", of(st.Complete), of(st.Truncated), of(st.Failed))+none)
	var names []string
	for n := range st.Reasons {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		if st.Reasons[a] != st.Reasons[b] {
			if st.Reasons[a] > st.Reasons[b] {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	var parts []string
	for _, n := range names {
		parts = append(parts, n+" "+format.Count(st.Reasons[n]))
	}
	p.field("ended by", strings.Join(parts, ", "))
	if st.TopsByCFI+st.Scanned > 0 {
		p.field("begun by", "call frame information "+of(st.TopsByCFI)+", a scan for the top frame "+of(st.Scanned))
	}
}

func (p out) categories(pr *profile.Profile, doc infoJSON) {
	if len(pr.Events) == 0 || doc.Categories == nil {
		return
	}
	for i := range doc.Events {
		e := &doc.Events[i]
		if e.Samples == 0 {
			continue
		}
		var parts []string
		cats := slices.DeleteFunc(slices.Clone(e.Categories), func(c categoryJSON) bool { return c.Share == nil || *c.Share == 0 })
		slices.SortStableFunc(cats, func(a, b categoryJSON) int { return cmp.Compare(*b.Share, *a.Share) })
		for _, c := range cats {
			share := *c.Share
			part := c.Name + " " + format.Percent(share)
			if c.Low != nil {
				part += " " + format.PlusMinus(share, max(share-*c.Low, *c.High-share))
			}
			parts = append(parts, strings.TrimSpace(part))
		}
		p.field(printer.Fit(e.Name, 16)+" in", strings.Join(parts, ", "))
	}
}

// categoriesOf returns an event's shares by category. A log of totals does not say how sure they
// are.
func categoriesOf(p *profile.Profile, event int) []categoryJSON {
	s := p.Select(profile.Filter{}.WithEvent(event))
	out := []categoryJSON{}
	var sure []interval.Interval
	if p.Totals == nil && s.Samples > 0 {
		sure = s.SureCategories()
	}
	for i, c := range s.Categories() {
		j := categoryJSON{Name: c.Name, Share: printer.If(shareKnown(p, c.Name, s.Samples), c.Share)}
		if sure != nil && j.Share != nil {
			j.Low, j.High = &sure[i].Low, &sure[i].High
		}
		out = append(out, j)
	}
	return out
}

func (p out) agent(pr *profile.Profile, doc infoJSON) {
	c, ok := pr.Cost()
	if !ok {
		if pr.HaveCapture {
			p.field("agent", "its own cost is not in the log")
		}
		return
	}
	p.field("agent", fmt.Sprintf("%s of CPU time (%s of one core), %s resident at most", format.Duration(c.CPUNs), format.Percent(format.Ratio(c.CPUNs, c.Time)), format.Bytes(c.RSS)))
	if c.BPFRuns == 0 || c.BPFNs == 0 {
		p.field("sampling", "the kernel reported no CPU time of BPF programs (kernel.bpf_stats_enabled)")
		return
	}
	s := fmt.Sprintf("%d ns a sample in BPF, %s runs, %s in all", c.BPFNs/c.BPFRuns, format.Count(c.BPFRuns), format.Duration(c.BPFNs))
	if c.WalkMedianNs > 0 {
		s += fmt.Sprintf("; walks took %d ns (median) to %d ns (99th percentile)", c.WalkMedianNs, c.WalkP99Ns)
	}
	if o := doc.Agent.Overhead; o != nil && *o > 0 {
		s += ": " + format.Percent(*o) + " of the program's CPU time"
	}
	p.field("sampling", s)
	p.overhead(pr)
}

// moduleRows bounds the modules that Info lists.
const moduleRows = 12

func (p out) modules(pr *profile.Profile) {
	if len(pr.Modules) == 0 {
		return
	}
	p.Line("")
	p.Line(p.Bold("  file                                      has"))
	n := p.Rows(len(pr.Modules), moduleRows)
	for i := range pr.Modules[:n] {
		m := &pr.Modules[i]
		p.Hang("  "+printer.PadRight(printer.Fit(m.Path, 40), 40)+"  ", plain, printer.Fit(moduleHas(pr, m), 0))
	}
	if rest := len(pr.Modules) - n; rest > 0 {
		p.Line("  ", p.Faint(fmt.Sprintf("%d more", rest)))
	}
}

func moduleHas(pr *profile.Profile, m *columns.Module) string {
	switch {
	case !m.HaveSymbols && pr.Symbolised:
		return "no samples" // only what was seen is symbolised
	case !m.HaveSymbols:
		return "not symbolised"
	}
	var has []string
	s := &m.Symbols
	if s.GHCVersion != "" {
		has = append(has, strings.TrimSpace("GHC "+s.GHCVersion+" "+s.Way))
	}
	for _, h := range []struct {
		is   bool
		name string
	}{{s.HasSymtab, "symbols"}, {s.HasDWARF, "DWARF"}, {s.HasNotes, "source notes"}, {s.HasIPE, "IPE"}} {
		if h.is {
			has = append(has, h.name)
		}
	}
	out := strings.Join(has, ", ")
	if out == "" {
		out = "nothing"
	}
	if problem, _, _ := strings.Cut(s.Problem, ";"); problem != "" {
		out += "; " + problem // the remedy is printed once, below
	}
	return out
}

func (p out) logState(pr *profile.Profile) {
	first := true
	for _, c := range diagnosis.Diagnose(pr) {
		if c.Status == diagnosis.StatusOK || c.Name == "samples" && pr.Samples() > 0 {
			continue
		}
		if first {
			p.Line("")
			first = false
		}
		p.Hang("  ", plain, safe.String(c.Detail))
		p.remedy("  ", c.Remedy)
	}
}

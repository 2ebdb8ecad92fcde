// Package diagnosis checks whether a log is complete, what is missing in it, and how to
// get that.
package diagnosis

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Status is the outcome of a check.
type Status string

const (
	StatusOK   Status = "ok"
	StatusWarn Status = "warn" // something is missing, and the views mark it
	StatusFail Status = "fail" // the log is incomplete
)

// Check is one question about a log, with its answer.
type Check struct {
	Name   string
	Status Status
	Detail string
	Remedy string // how to get what is missing, as lines of text; may be empty
}

// Diagnose checks whether a log is complete, what is missing and how to get it.
func Diagnose(p *profile.Profile) []Check {
	d := &diagnosis{p: p}
	d.complete()
	d.damage()
	d.samples()
	d.loss()
	d.symbols()
	d.stacks()
	d.sources()
	d.waiting()
	return d.checks
}

type diagnosis struct {
	p      *profile.Profile
	checks []Check
	listed []string // packages whose remedy is already listed, without versions
}

func (d *diagnosis) add(name string, st Status, detail, remedy string) {
	d.checks = append(d.checks, Check{name, st, detail, remedy})
}

const symbolizeRemedy = "ccagent symbolize FILE, on the machine that has the program"

func (d *diagnosis) complete() {
	p := d.p
	switch {
	case p.Import != nil && p.Import.Passed > 0:
		d.add("capture", StatusWarn, fmt.Sprintf("imported from a %s; %s made no sense and were left out, the first is line %d",
			p.Import.Format, format.Plural(p.Import.Passed, "line"), p.Import.First), "")
	case p.Import != nil:
		d.add("capture", StatusOK, fmt.Sprintf("imported from a %s, which has neither causes nor categories of its own", p.Import.Format), "")
	case !p.HaveCapture && p.RTS != "" && p.Samples() > 0:
		d.add("capture", StatusOK, "a GHC eventlog that an RTS wrote, with the samples of its own time profiler", "")
	case !p.HaveCapture && p.RTS != "":
		d.add("capture", StatusWarn, "this is a GHC eventlog that an RTS wrote: it has no samples of ccagent's", "ccagent record -- PROG makes one that has")
	case !p.HaveCapture:
		d.add("capture", StatusFail, "the log does not say what was captured", "")
	case p.Accounting.Growing:
		d.add("capture", StatusWarn, fmt.Sprintf("the log is still being written: this is its first %s; names come with its end", format.Duration(p.Duration)), "")
	case !p.HaveEnd:
		d.add("capture", StatusFail, fmt.Sprintf("the capture was cut off after %s: what was recorded up to there is here", format.Duration(p.Duration)), "")
	case !p.Accounting.Complete:
		d.add("capture", StatusFail, "the log has no end marker: its tail is missing", symbolizeRemedy)
	default:
		whole := "complete, " + format.Duration(p.Duration)
		if gap := p.Unrecorded(0, p.Duration); gap > 0 {
			whole += fmt.Sprintf(", in %s of which %s", format.Duration(gap), p.WhyUnrecorded())
		}
		d.add("capture", StatusOK, whole, "")
	}
}

func (d *diagnosis) damage() {
	a := &d.p.Accounting
	switch {
	case a.Malformed == 1 && !a.Complete && a.Damage[0].Offset+a.Damage[0].Length == a.Bytes:
		d.add("bytes", StatusOK, fmt.Sprintf("every event could be read but the last one, at offset %d, which is cut short", a.Damage[0].Offset), "")
	case a.Malformed > 0:
		first := a.Damage[0]
		d.add("bytes", StatusFail, fmt.Sprintf("%s could not be read (%s in all), the first at offset %d: %s",
			format.Plural(uint64(a.Malformed), "place"), format.Bytes(uint64(a.Passed)), first.Offset, first.Reason), "copy the log again from where it was recorded")
	default:
		d.add("bytes", StatusOK, "every event could be read", "")
	}
	if n := a.Undefined.Sum(); n > 0 {
		d.add("references", StatusFail, fmt.Sprintf("%s to what the log does not define", format.Plural(n, "reference")), "")
	}
	if a.Redefined > 0 {
		d.add("definitions", StatusWarn, fmt.Sprintf("%s repeated or out of order: the first one holds", format.Plural(a.Redefined, "definition")), "")
	}
	if a.Dropped > 0 {
		d.add("dropped", StatusFail, fmt.Sprintf("%s could not be kept: the log names too many events", format.Plural(a.Dropped, "record")), "")
	}
	if a.Unknown > 0 && d.p.HaveCapture {
		d.add("version", StatusWarn, fmt.Sprintf("%s of kinds that this ccview does not know", format.Plural(a.Unknown, "event")), "use the ccview that came with the ccagent that recorded it")
	}
}

func (d *diagnosis) samples() {
	p := d.p
	if !p.HaveCapture && p.RTS != "" && p.Samples() == 0 {
		return
	}
	if p.Samples() == 0 && len(p.Events) == 0 && len(p.Dumps) > 0 {
		d.add("samples", StatusOK, "none: it is a thread dump, which ccview threads shows", "")
		return
	}
	if p.Samples() == 0 && len(p.Events) == 0 && len(p.HeapProfiles) > 0 {
		d.add("samples", StatusOK, "none: it is a census of the heap, which ccview heap shows", "")
		return
	}
	if p.Samples() == 0 {
		d.add("samples", StatusFail, "the log has no samples", "ccagent doctor PROG says why; a program that ends within milliseconds needs -F higher")
		return
	}
	for i := range p.Events {
		e := &p.Events[i]
		switch {
		case e.Samples == 0:
			d.add("samples", StatusWarn, fmt.Sprintf("%s: no sample", e.Title()), "")
		case e.Fallback != "":
			d.add("samples", StatusWarn, fmt.Sprintf("%s: %s: %s", e.Title(), format.Plural(e.Samples, "sample"), e.Fallback), "")
		default:
			d.add("samples", StatusOK, fmt.Sprintf("%s: %s", e.Title(), format.Plural(e.Samples, "sample")), "")
		}
	}
	if p.Capture.LayoutAssumed {
		d.add("layout", StatusWarn, "the program's GHC version is not known: stacks were walked with an assumed heap layout", "")
	}
}

func (d *diagnosis) loss() {
	for i := range d.p.Events {
		e := &d.p.Events[i]
		if e.Lost+e.Throttled == 0 {
			continue
		}
		d.add("loss", StatusWarn, fmt.Sprintf("%s: %s lost, %s throttled: shares hold, small ones less surely",
			e.Title(), format.Plural(e.Lost, "sample"), format.Count(e.Throttled)), "record with a lower -F")
	}
}

// unresolvedWorth is the smallest unresolved share that is reported.
const unresolvedWorth = 0.05

func (d *diagnosis) symbols() {
	p := d.p
	if p.Samples() == 0 {
		return
	}
	if !p.Symbolised && p.Accounting.Growing {
		return
	}
	if !p.Symbolised {
		d.add("symbols", StatusFail, "the log has no symbol tables: its addresses have no names", symbolizeRemedy)
		return
	}
	notes := false
	var libraries, packages, problems []string
	having := make(map[string][]string) // modules by their problem
	for i := range p.Modules {
		m := &p.Modules[i]
		notes = notes || m.Symbols.HasNotes
		pkg, shared := sharedPackage(m.Path)
		switch {
		case m.Symbols.Problem == "":
		case shared && !m.Symbols.HasDWARF && m.Symbols.GHCVersion != "":
			libraries = append(libraries, path.Base(m.Path))
			packages = append(packages, pkg)
		default:
			problem := m.Symbols.Problem
			if having[problem] == nil {
				problems = append(problems, problem)
			}
			having[problem] = append(having[problem], path.Base(m.Path))
		}
	}
	for _, problem := range problems {
		d.add("symbols", StatusWarn, strings.Join(having[problem], ", ")+": "+problem, "")
	}
	if len(libraries) > 0 {
		verb := "has"
		if len(libraries) > 1 {
			verb = "have"
		}
		d.add("symbols", StatusWarn, strings.Join(libraries, ", ")+" "+verb+" no debug information", NotesRemedy(packages...))
		for _, pkg := range packages {
			d.listed = append(d.listed, unitVersion().ReplaceAllString(pkg, ""))
		}
	}
	if !notes && p.Capture.GHCVersion != "" {
		d.add("source notes", StatusWarn, "the program has no source notes: costs go to bindings by symbol, not to source spans",
			"build with ghc -g3; cabal: --ghc-options=-g3; stack: --ghc-options=-g3")
	}
	sel := p.Select(profile.Filter{})
	sum := sel.Summary()
	d.libraries(sel, sum.Title, notes)
	if sum.Unresolved > unresolvedWorth {
		remedy := "ccagent symbolize --debug-file PROG.unstripped FILE, with the same build before it was stripped"
		if p.Import != nil {
			remedy = ""
		}
		detail := format.Percent(sum.Unresolved) + " of " + sum.Title + " hit code that no symbol names"
		if d.stripped() {
			detail += "; the garbage collector of a stripped program, or of a shared run-time system, is among it"
		}
		d.add("unresolved", StatusWarn, detail, remedy)
	} else {
		d.add("unresolved", StatusOK, format.Percent(sum.Unresolved)+" of "+sum.Title, "")
	}
}

// stripped reports whether a program compiled by GHC has no symbols.
func (d *diagnosis) stripped() bool {
	for i := range d.p.Modules {
		if s := &d.p.Modules[i].Symbols; s.GHCVersion != "" && !s.HasSymtab {
			return true
		}
	}
	return false
}

// unnotedWorth is the smallest share of code without source notes for which a package is
// reported.
const unnotedWorth = 0.01

// libraries reports the packages whose code was sampled and has no source notes. If the
// program has no notes at all, its own code is reported elsewhere.
func (d *diagnosis) libraries(sel *profile.Selection, event string, notes bool) {
	for _, u := range sel.Unnoted() {
		if u.Share < unnotedWorth || u.Package == "main" && !notes {
			continue
		}
		what := "package " + u.Package
		if u.Package == "main" {
			what = "module " + u.Modules[0]
			if n := len(u.Modules) - 1; n > 0 {
				what += fmt.Sprintf(" and %d more of the program's", n)
			}
		}
		remedy := NotesRemedy(u.Package)
		if slices.Contains(d.listed, unitVersion().ReplaceAllString(u.Package, "")) {
			remedy = ""
		}
		d.add("source notes", StatusWarn, fmt.Sprintf("%s of %s is in %s, which has none", format.Percent(u.Share), event, what), remedy)
	}
}

// cutWorth is the smallest share of incomplete stacks that is reported.
const cutWorth = 0.05

func (d *diagnosis) stacks() {
	p := d.p
	st := p.Stacks()
	total := st.Complete + st.Truncated + st.Failed
	if total == 0 {
		return
	}
	detail := fmt.Sprintf("%s of %s complete", format.Percent(float64(st.Complete)/float64(total)), format.Plural(total, "stack"))
	if float64(st.Truncated) > cutWorth*float64(total) {
		d.add("stacks", StatusWarn, fmt.Sprintf("%s, %s cut by the frame budget", detail, format.Percent(float64(st.Truncated)/float64(total))), "record with a larger --max-frames")
		return
	}
	d.add("stacks", StatusOK, detail, "")
}

func (d *diagnosis) sources() {
	p := d.p
	noted := make([]bool, p.Files())
	for i := 1; i < p.Spans(); i++ {
		noted[p.Span(columns.SpanID(i)).File] = true
	}
	with, without := 0, 0
	for i := 1; i < p.Files(); i++ {
		if !noted[i] { // only the line table names it
			continue
		}
		if len(p.File(columns.FileID(i)).Text) > 0 {
			with++
		} else {
			without++
		}
	}
	switch {
	case with+without == 0 || !p.HaveCapture:
	case without > 0:
		d.add("source text", StatusWarn, fmt.Sprintf("%d of %d source files have their text in the log", with, with+without),
			"ccagent symbolize FILE where the sources are")
	default:
		d.add("source text", StatusOK, format.Plural(uint64(with), "source file")+" in the log", "")
	}
}

// waitingWorth is the smallest share of collector threads that wait for each other that is
// reported.
const waitingWorth = 0.03

// GCWaiting says that threads of the collector wait for each other, and what can be done about
// it; empty where it is not worth it.
func GCWaiting(c profile.Collector) (detail, remedy string) {
	if c.Waiting < waitingWorth {
		return "", ""
	}
	return "GC waiting: in " + format.Percent(c.Waiting) + " of the time threads of the parallel collector wait for each other",
		"collect less often (+RTS -A64m), on fewer threads (-qn2), or on one (-qg)"
}

func (d *diagnosis) waiting() {
	sel := d.p.Select(profile.Filter{})
	if sel.Samples == 0 || !sel.CountsTime() {
		return
	}
	if detail, remedy := GCWaiting(sel.Collector()); detail != "" {
		d.add("gc", StatusWarn, detail, remedy)
	}
}

// heapWays says how a log gets heap profiles.
const heapWays = "ccagent record -e heap takes one of any program; a run-time system does by +RTS -l -hT, built with -prof by -hc and -hy too, with -finfo-table-map by -hi"

// NoHeap returns the reason why a log has no heap profile; empty if it has one.
func NoHeap(p *profile.Profile) string {
	if len(p.HeapProfiles) > 0 {
		return ""
	}
	for _, g := range p.RTSLog.Probes {
		if g.Group == "gc" && g.Problem != "" {
			return "The log has no heap profile, nor can a recording have one, since the program's collections are not seen: ccagent heap PID counts its heap between them."
		}
	}
	return "The log has no heap profile: " + heapWays + "."
}

// NoKinds is why what was live is divided by the log's own bands alone.
func NoKinds() string {
	return "The log has its censuses by their own bands alone: those of ccagent heap PID, and of the event heap, are counted by where closures were written, too."
}

// NoGraph returns the reason why a log does not say what keeps what alive; empty if it does.
func NoGraph(p *profile.Profile) string {
	if len(p.HeapGraphs) > 0 {
		return ""
	}
	return "The log does not say what keeps what alive: take a census of the running program with sudo ccagent heap --graph PID."
}

// NoFootprint returns the reason why a log does not say where the memory of its process is; empty if
// it does.
func NoFootprint(p *profile.Profile) string {
	if len(p.Footprints) > 0 {
		return ""
	}
	return "The log does not say where memory is: take a census of the running program with sudo ccagent heap PID."
}

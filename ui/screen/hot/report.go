package hot

import (
	"fmt"
	"io"
	"path"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/diagnosis"
	"ccagent/profile/reasons"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
)

const hotRows = 30

// Report is the elements of a level by share.
type Report struct {
	Selection *profile.Selection
	Level     profile.Level
}

// Text implements printer.Report.
func (r Report) Text(w io.Writer, o printer.Options) error {
	s, level := r.Selection, r.Level
	p := newOut(w, o)
	p.Heading(s)
	if said := reasons.SentenceOf(s); said.Text != "" {
		p.Wrap(p.Bold, " ", strings.Fields(safe.String(said.Text+said.More+commands(said.All())))...)
		p.Line("")
	}
	h := s.Hot(level)
	if len(h.Rows) == 0 {
		return p.Flush()
	}
	n := o.Rows(len(h.Rows), hotRows)
	barWidth := 20
	if o.Columns() < 100 {
		barWidth = 12
	}
	if o.Columns() < 70 {
		barWidth = 0
	}
	ratios := s.Ratios(level)
	sure := s.Sure(level, n)
	further := ""
	parts := make([]profile.SureParts, n)
	if p.Wide() {
		further = p.SureHead()
		parts = s.SurePartsOf(level, h.IDs(n), sure)
	}
	p.Line(p.Bold(" share " + p.SureHead() + "   only" + further + "   incl" + further + "  " + printer.PadRight("", barWidth) + "  " + ratioHeads(ratios) + level.String()))
	tied := false
	for i := range h.Rows[:n] {
		p.hotRow(s, &h.Rows[i], sure[i], parts[i], barWidth, ratioCells(ratios, h.Rows[i].Element.ID))
		tied = tied || sure[i].Tied
	}
	if rest := len(h.Rows) - n; rest > 0 {
		p.Line(p.Faint(fmt.Sprintf("%s more: --top 0 prints all", format.Plural(uint64(rest), "row"))))
	}
	p.Line("")
	p.SureNote(tied)
	p.ratioNote(s.Profile, ratios)
	if h.Sum > 1.0005 {
		p.Note("# alone, ~ shared with other elements: the shares sum to %.0f%% of the %s", h.Sum*100, format.Plural(s.Samples, "sample"))
	}
	if shareOf(h, func(e *profile.Element) bool { return e.Kind == profile.KindNoFile }) >= noteWorth {
		p.Note("a module is listed in the place of its file where no source notes say which that is: libraries have notes if they are built with -g3")
	}
	if s.Event >= 0 && s.Profile.Events[s.Event].Requested == "alloc" && len(s.Profile.Nurseries.Blocks) > 0 {
		p.Note("small objects are sampled where heap checks fail: code whose check asks for more than it mostly takes draws more samples than its bytes. ccview alloc says what was allocated, without that bias")
	}
	if s.CountsTime() {
		c := s.Collector()
		if c.Kernel >= worthKernel || c.Waiting > 0 && c.Inclusive >= noteWorth {
			text := fmt.Sprintf("the garbage collector with all that it causes: %s of the time; its own code %s, the kernel on its behalf %s",
				format.Percent(c.Inclusive), format.Percent(c.Share), format.Percent(c.Kernel))
			if c.Waiting > 0 {
				text += "; of both, waiting of its threads for each other " + format.Percent(c.Waiting)
			}
			p.Note("%s", text)
		}
		if detail, remedy := diagnosis.GCWaiting(c); detail != "" {
			p.Note("%s: %s", detail, remedy)
		}
	}
	if shareOf(h, func(e *profile.Element) bool { return e.Kind == profile.KindCategory && e.Name == "(STG)" }) >= noteWorth {
		p.Note(`--hide '\(STG\)' charges the STG machine's own code to the Haskell code that ran it`)
	}
	return p.Flush()
}

// commands names the commands that show more.
func commands(see []reasons.See) string {
	var out []string
	for _, v := range see {
		switch v {
		case reasons.SeeStacks:
			out = append(out, "ccview stacks")
		case reasons.SeePauses:
			out = append(out, "ccview gc")
		case reasons.SeeAllocation:
			out = append(out, "ccview hot --event alloc")
		}
	}
	if out == nil {
		return ""
	}
	return ": see " + strings.Join(out, ", ")
}

// worthKernel is the share of the kernel's work for the collector from which on it is noted.
const worthKernel = 0.02

// noteWorth is the share of a kind of elements from which on a note says what can be done
// about it.
const noteWorth = 0.1

func shareOf(h *profile.Hot, is func(*profile.Element) bool) float64 {
	var sum float64
	for i := range h.Rows {
		if is(h.Rows[i].Element) {
			sum += h.Rows[i].Share
		}
	}
	return sum
}

func (p out) hotRow(s *profile.Selection, r *profile.Row, sure profile.Sure, parts profile.SureParts, barWidth int, ratios string) {
	e := r.Element
	left := p.Heat(r.Share, format.Column(r.Share)) + " " + p.Sure(r.Share, sure) + " " + p.FaintZero(r.Only)
	used := 23 + safe.Width(p.SureHead())
	if p.Wide() {
		left += p.PlusMinus(r.Only, parts.Only) + " " + p.FaintZero(r.Inclusive) + p.PlusMinus(r.Inclusive, parts.Inclusive) + "  "
		used += 2 * safe.Width(p.SureHead())
	} else {
		left += " " + p.FaintZero(r.Inclusive) + "  "
	}
	if barWidth > 0 {
		left += printer.Bar(r.Only, r.Share, barWidth) + "  "
		used += barWidth + 2
	}
	left += ratios
	used += len(ratios)
	name, where := e.Name, ""
	switch {
	case e.Kind == profile.KindCategory:
		where = functions(s, e.Name)
	case e.Kind == profile.KindNoFile:
		where = e.Package
	case (e.Level == profile.LevelBinding || e.Level == profile.LevelFunction) && e.File != "":
		where = fmt.Sprintf("%s:%d", path.Base(e.File), e.Span.Line)
	case e.Level == profile.LevelModule && e.File != "":
		where = e.File
	case e.Level == profile.LevelSpan && e.Module != "":
		where = e.Module
	}
	if r.NearWeight > 0 && e.Kind == profile.KindSource {
		where = strings.TrimSpace(where + " (" + format.Percent(s.Fraction(r.NearWeight)) + " by the nearest symbol)")
	}
	room := 0
	if p.Width > 0 {
		room = max(12, p.Columns()-used)
	}
	name = printer.Fit(name, room)
	if where != "" {
		if room == 0 {
			where = printer.Fit(where, 200)
		} else if free := room - max(safe.Width(name), 28) - 2; free >= 12 {
			where = printer.Fit(where, free)
		} else {
			where = ""
		}
	}
	if e.Kind == profile.KindCategory || e.Kind == profile.KindNoFile {
		name = p.Style("3", name)
	}
	if where == "" {
		p.Line(left, name)
		return
	}
	pad := max(0, 28-safe.Width(printer.Fit(e.Name, room)))
	p.Line(left, name, strings.Repeat(" ", pad), "  ", p.Faint(where))
}

// functions names the largest parts of a category.
func functions(s *profile.Selection, category string) string {
	var parts []string
	for i, f := range s.CategoryFunctions(category) {
		if i == 3 || f.Share < 0.001 {
			break
		}
		parts = append(parts, fmt.Sprintf("%s %s", safe.String(f.Name), format.Percent(f.Share)))
	}
	return strings.Join(parts, ", ")
}

type hotJSON struct {
	Event      *string      `json:"event"`
	Unit       *string      `json:"unit"`
	Samples    uint64       `json:"samples"`
	Total      uint64       `json:"total"`
	Lost       *uint64      `json:"lost"`
	Unresolved *float64     `json:"unresolved"`
	Level      string       `json:"level"`
	Rows       []hotRowJSON `json:"rows"`
	AllSamples uint64       `json:"all_samples"`
	AllTotal   uint64       `json:"all_total"`
	ShareSum   float64      `json:"share_sum"`
	Effective  float64      `json:"effective_samples"`
	// Collector is the garbage collector's part, with what others do for it.
	Collector *collectorJSON `json:"collector,omitempty"`
	// Sentence says in words where the weight is.
	Sentence *string `json:"sentence"`
}

type collectorJSON struct {
	Share     float64 `json:"share"`
	Kernel    float64 `json:"kernel"`
	Waiting   float64 `json:"waiting"`
	Inclusive float64 `json:"inclusive"`
}

type hotRowJSON struct {
	Element   string  `json:"element"`
	Kind      string  `json:"kind"`
	File      *string `json:"file"`
	Span      *string `json:"span"`
	Module    *string `json:"module"`
	Program   *string `json:"program"` // null but in a log of several
	Share     float64 `json:"share"`
	Only      float64 `json:"only"`
	Inclusive float64 `json:"inclusive"`
	Samples   uint64  `json:"samples"`
	Package   *string `json:"package"`
	Near      float64 `json:"near"`
	printer.SureJSON
	printer.PartsJSON
	Functions []functionJSON `json:"functions,omitempty"`
	// Ratios relate the log's events, where it has instructions.
	Ratios *ratiosJSON `json:"ratios,omitempty"`
}

type functionJSON struct {
	Name    string  `json:"name"`
	Share   float64 `json:"share"`
	Samples uint64  `json:"samples"`
}

// JSON implements printer.Report.
func (r Report) JSON(w io.Writer, o printer.Options) error {
	s, level := r.Selection, r.Level
	sum, h := s.Summary(), s.Hot(level)
	doc := hotJSON{
		Event: printer.Known(sum.Event), Unit: printer.Known(sum.Unit), Samples: sum.Samples, Total: sum.Total, Lost: printer.If(s.Profile.HaveCapture, sum.Lost),
		Unresolved: printer.If(sum.Samples > 0, sum.Unresolved), Level: level.String(), Rows: []hotRowJSON{},
		AllSamples: sum.AllSamples, AllTotal: sum.AllTotal, ShareSum: h.Sum, Effective: s.Batched().Effective(),
	}
	if c := s.Collector(); c.Inclusive > 0 {
		doc.Collector = &collectorJSON{c.Share, c.Kernel, c.Waiting, c.Inclusive}
	}
	said := reasons.SentenceOf(s)
	doc.Sentence = printer.Known(said.Text + said.More)
	ratios := s.Ratios(level)
	n := o.Rows(len(h.Rows), len(h.Rows))
	sure := s.Sure(level, n)
	parts := s.SurePartsOf(level, h.IDs(n), sure)
	for i := range h.Rows[:n] {
		r := &h.Rows[i]
		e := r.Element
		row := hotRowJSON{
			Element: e.Plain(), Kind: e.KindName(), File: printer.Known(e.File), Span: printer.Known(e.Span.String()),
			Module: printer.Known(e.Module), Program: printer.Known(e.Program), Package: printer.Known(e.Package),
			Share: r.Share, Only: r.Only, Inclusive: r.Inclusive, Samples: r.Samples, Near: s.Fraction(r.NearWeight),
			Ratios: ratiosOf(s.Profile, ratios, e.ID), SureJSON: printer.SureOf(sure[i]), PartsJSON: printer.PartsOf(parts[i]),
		}
		if e.Kind == profile.KindCategory {
			for _, f := range s.CategoryFunctions(e.Name) {
				row.Functions = append(row.Functions, functionJSON{f.Name, f.Share, f.Samples})
			}
		}
		doc.Rows = append(doc.Rows, row)
	}
	return printer.JSON(w, doc)
}

// out is a printer with what only these reports have.
type out struct{ *printer.Printer }

func newOut(w io.Writer, o printer.Options) out { return out{printer.New(w, o)} }

package source

import (
	"fmt"
	"io"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
	"ccagent/profile/source"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
)

// letters name spans in the causes column.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// maxCauses is how many letters a line shows.
const maxCauses = 4

// sourceContext is how many lines around a hot one are printed.
const sourceContext = 3

// Report is a source file with its costs: with All every line, else those that bear costs,
// and the whole of a binding that was asked for.
type Report struct {
	Selection *profile.Selection
	View      *source.View
	All       bool
}

// Text implements printer.Report.
func (r Report) Text(w io.Writer, o printer.Options) error {
	s, v, all := r.Selection, r.View, r.All
	p := newOut(w, o)
	p.Heading(s)
	title := v.Path
	if v.Name != "" {
		title = v.Name + "   " + v.Path + ":" + v.Extent.String()
	}
	p.Line(p.Bold(printer.Fit(title, o.Width)))
	parts := v.SureParts(s)
	p.Linef("share %s   only %s   inclusive %s   %s", sure(v.Share, v.Sure.Interval), sure(v.Only, parts.Whole.Only), sure(v.Inclusive, parts.Whole.Inclusive), format.Plural(v.Samples, "sample"))
	if v.Problem != "" {
		p.Line("note: ", printer.Fit(v.Problem, 0))
	}
	p.Line("")
	if len(v.Lines) == 0 {
		p.Line("No line of this source bears a cost in the selection.")
		return p.Flush()
	}
	letter := lettersOf(v)
	number := len(fmt.Sprint(v.Lines[len(v.Lines)-1].Number))
	p.Line(p.Bold(fmt.Sprintf(" share%s   only%s  %-*s  %*s", p.SureHead(), p.furtherHead(), maxCauses, "by", max(number, 4), "line")))
	show := shownLines(v, all)
	gap := false
	for i := range v.Lines {
		if !show[i] {
			gap = true
			continue
		}
		if gap {
			p.Line(p.Faint(strings.Repeat(" ", 15+safe.Width(p.SureHead()+p.furtherHead())+maxCauses+2+max(number, 4)-1) + "⋮"))
			gap = false
		}
		p.sourceLine(&v.Lines[i], &parts.Lines[i], letter, max(number, 4))
	}
	p.spans(v, &parts, letter)
	p.also(s, v)
	return p.Flush()
}

// lettersOf gives the spans with the largest shares a letter each.
func lettersOf(v *source.View) map[int]byte {
	letter := make(map[int]byte)
	for i := range v.Spans {
		if i == len(letters) || v.Spans[i].Share == 0 {
			break
		}
		letter[i] = letters[i]
	}
	return letter
}

func shownLines(v *source.View, all bool) []bool {
	show := make([]bool, len(v.Lines))
	for i := range v.Lines {
		l := &v.Lines[i]
		inBinding := v.Extent.Line > 0 && l.Number >= v.Extent.Line && l.Number <= v.Extent.EndLine
		if all || inBinding {
			show[i] = true
		}
		if l.Share == 0 || v.Name != "" && !inBinding {
			continue
		}
		for j := max(0, i-sourceContext); j <= min(len(v.Lines)-1, i+sourceContext); j++ {
			show[j] = true
		}
	}
	for _, s := range show {
		if s {
			return show
		}
	}
	for i := range show {
		show[i] = true
	}
	return show
}

// sure is a figure with its interval, for sentences.
func sure(share float64, i interval.Interval) string {
	return strings.TrimSpace(format.Percent(share) + " " + format.PlusMinus(share, i.PlusMinus(share)))
}

// furtherHead is the head of the intervals of the second figure; empty where there is no room.
func (p out) furtherHead() string {
	if !p.Wide() {
		return ""
	}
	return p.SureHead()
}

// further is the cell below furtherHead.
func (p out) further(share float64, i interval.Interval) string {
	if !p.Wide() {
		return ""
	}
	return p.PlusMinus(share, i)
}

func (p out) sourceLine(l *source.Line, parts *profile.SureParts, letter map[int]byte, number int) {
	causes := make([]byte, 0, maxCauses)
	for _, j := range l.Spans {
		if c, ok := letter[j]; ok && len(causes) < maxCauses {
			causes = append(causes, c)
		}
	}
	room := 0
	if p.Width > 0 {
		room = max(20, p.Columns()-15-safe.Width(p.SureHead()+p.furtherHead())-maxCauses-4-number)
	}
	text := safe.String(l.Text)
	if room > 0 && safe.Width(text) > room {
		text = safe.Front(text, room-1) + "…"
	}
	share, sure, only := "      ", printer.PadRight("", safe.Width(p.SureHead())), printer.PadRight("", 6+safe.Width(p.furtherHead()))
	if l.Share > 0 {
		share, sure, only = format.Column(l.Share), p.Sure(l.Share, l.Sure), format.Column(l.Only)+p.further(l.Only, parts.Only)
	}
	p.Line(p.Heat(l.Share, share), sure, " ", only, "  ", printer.PadRight(string(causes), maxCauses), "  ", p.Faint(fmt.Sprintf("%*d", number, l.Number)), "  ", text)
}

func (p out) spans(v *source.View, parts *source.Parts, letter map[int]byte) {
	if len(letter) == 0 {
		return
	}
	p.Line("")
	p.Line(p.Bold(" share" + p.SureHead() + "   only" + p.furtherHead() + "      span"))
	tied := false
	for i := range v.Spans {
		c, ok := letter[i]
		if !ok || i >= p.Rows(len(v.Spans), 12) {
			break
		}
		sp := &v.Spans[i]
		p.Line(fmt.Sprintf("%s%s %s%s  %c   %-18s  ", format.Column(sp.Share), p.Sure(sp.Share, sp.Sure), format.Column(sp.Only), p.further(sp.Only, parts.Spans[i].Only), c, sp.Element.Span), printer.Fit(sp.Binding, 60))
		tied = tied || sp.Sure.Tied
	}
	p.Line("")
	p.SureNote(tied)
}

func (p out) also(s *profile.Selection, v *source.View) {
	if len(v.Also) == 0 {
		return
	}
	p.Line("")
	p.Line(p.Bold("the same samples are also attributed to"))
	n := p.Rows(len(v.Also), 8)
	for i, sure := range alsoSure(s, v, n) {
		o := &v.Also[i]
		p.Line(format.Column(o.Share), p.Sure(o.Share, sure), "  ", printer.Fit(o.Element.Name, 80))
	}
}

// alsoSure says how sure the first n rows are of what a view's samples are also attributed to.
func alsoSure(s *profile.Selection, v *source.View, n int) []profile.Sure {
	sites := make([][]columns.SiteID, n)
	for i := range sites {
		sites[i] = v.Also[i].Sites
	}
	return s.Batched().List(sites)
}

type sourceJSON struct {
	Event     *string `json:"event"`
	Unit      *string `json:"unit"`
	Samples   uint64  `json:"samples"`
	Total     uint64  `json:"total"`
	File      *string `json:"file"`
	Problem   *string `json:"problem"`
	Binding   *string `json:"binding"`
	Span      *string `json:"span"`
	Share     float64 `json:"share"`
	Only      float64 `json:"only"`
	Inclusive float64 `json:"inclusive"`
	printer.SureJSON
	Lines []sourceLineJSON `json:"lines"`
	Spans []sourceSpanJSON `json:"spans"`
	Also  []alsoJSON       `json:"also"`
	// Effective is what the selection's samples are worth by their weights.
	AllEffective float64 `json:"selection_effective_samples"`
	printer.PartsJSON
}

type sourceLineJSON struct {
	Line      uint32  `json:"line"`
	Text      string  `json:"text"`
	Share     float64 `json:"share"`
	Only      float64 `json:"only"`
	Inclusive float64 `json:"inclusive"`
	Samples   uint64  `json:"samples"`
	printer.SureJSON
	printer.PartsJSON
	Spans []int `json:"spans"`
}

type sourceSpanJSON struct {
	Span      string  `json:"span"`
	Binding   *string `json:"binding"`
	Share     float64 `json:"share"`
	Only      float64 `json:"only"`
	Inclusive float64 `json:"inclusive"`
	Samples   uint64  `json:"samples"`
	printer.SureJSON
	printer.PartsJSON
}

type alsoJSON struct {
	Element string  `json:"element"`
	Share   float64 `json:"share"`
	Samples uint64  `json:"samples"`
	printer.SureJSON
}

// JSON implements printer.Report; it has every line. The spans of a line
// are positions in the document's list of spans.
func (r Report) JSON(w io.Writer, _ printer.Options) error {
	s, v := r.Selection, r.View
	sum, parts := s.Summary(), v.SureParts(s)
	doc := sourceJSON{
		Event: printer.Known(sum.Event), Unit: printer.Known(sum.Unit), Samples: sum.Samples, Total: sum.Total,
		File: printer.Known(v.Path), Problem: printer.Known(v.Problem), Binding: printer.Known(v.Name), Span: printer.Known(v.Extent.String()),
		Share: v.Share, Only: v.Only, Inclusive: v.Inclusive, SureJSON: printer.SureOf(v.Sure), PartsJSON: printer.PartsOf(parts.Whole),
		AllEffective: s.Batched().Effective(),
		Lines:        []sourceLineJSON{}, Spans: []sourceSpanJSON{}, Also: []alsoJSON{},
	}
	for i := range v.Lines {
		l := &v.Lines[i]
		spans := l.Spans
		if spans == nil {
			spans = []int{}
		}
		doc.Lines = append(doc.Lines, sourceLineJSON{l.Number, strings.ToValidUTF8(l.Text, "\ufffd"), l.Share, l.Only, l.Inclusive, l.Samples, printer.SureOf(l.Sure), printer.PartsOf(parts.Lines[i]), spans})
	}
	for i := range v.Spans {
		sp := &v.Spans[i]
		doc.Spans = append(doc.Spans, sourceSpanJSON{sp.Element.Span.String(), printer.Known(sp.Binding), sp.Share, sp.Only, sp.Inclusive, sp.Samples, printer.SureOf(sp.Sure), printer.PartsOf(parts.Spans[i])})
	}
	for i, sure := range alsoSure(s, v, len(v.Also)) {
		a := &v.Also[i]
		doc.Also = append(doc.Also, alsoJSON{a.Element.Name, a.Share, a.Samples, printer.SureOf(sure)})
	}
	return printer.JSON(w, doc)
}

// out is a printer with what only these reports have.
type out struct{ *printer.Printer }

func newOut(w io.Writer, o printer.Options) out { return out{printer.New(w, o)} }

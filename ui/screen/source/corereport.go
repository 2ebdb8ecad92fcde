package source

import (
	"fmt"
	"io"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/source"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
)

// CoreReport is the Core of an element with its costs.
type CoreReport struct {
	Selection *profile.Selection
	View      *source.CoreView
}

// Text implements printer.Report.
func (r CoreReport) Text(w io.Writer, o printer.Options) error {
	s, v := r.Selection, r.View
	p := newOut(w, o)
	p.Heading(s)
	p.Line(p.Bold(printer.Fit("Core of "+v.Element.Name, o.Width)))
	if v.Problem != "" {
		p.Line(printer.Fit(v.Problem, 0))
		return p.Flush()
	}
	for i := range v.Bindings[:p.Rows(len(v.Bindings), len(v.Bindings))] {
		p.coreBinding(&v.Bindings[i])
	}
	return p.Flush()
}

func (p out) coreBinding(b *source.CoreBinding) {
	p.Line("")
	title := b.Name
	if b.Detail != "" {
		title += " (" + b.Detail + ")"
	}
	p.Line(p.Bold(printer.Fit(title, p.Width)))
	with := ""
	if b.WithWeight != b.Weight {
		with = fmt.Sprintf(" of which %s", format.Percent(b.With))
	}
	p.Linef("share %s%s   %s   %s:%d", format.Percent(b.Share), with, format.Plural(b.Samples, "sample"), printer.Fit(b.Core.Dump, 0), b.Core.Line)
	if b.Core.Problem != "" {
		p.Line("note: ", printer.Fit(b.Core.Problem, 0))
	}
	number := max(4, len(fmt.Sprint(len(b.Lines))))
	room := 0
	if p.Width > 0 {
		room = max(20, p.Columns()-13-number)
	}
	for i := range b.Lines {
		l := &b.Lines[i]
		text := safe.String(l.Text)
		if room > 0 && safe.Width(text) > room {
			text = safe.Front(text, room-1) + "…"
		}
		share, mark := "      ", " "
		if l.Samples > 0 {
			share = format.Column(l.Share)
		}
		if l.Of {
			mark = "*"
		}
		p.Line(p.Heat(l.Share, share), " ", mark, "  ", p.Faint(fmt.Sprintf("%*d", number, l.Number)), "  ", text)
	}
}

type coreJSON struct {
	Event    *string           `json:"event"`
	Unit     *string           `json:"unit"`
	Samples  uint64            `json:"samples"`
	Total    uint64            `json:"total"`
	Element  string            `json:"element"`
	Problem  *string           `json:"problem"`
	Bindings []coreBindingJSON `json:"bindings"`
}

type coreBindingJSON struct {
	Binding string         `json:"binding"`
	Detail  *string        `json:"detail"`
	Binder  *string        `json:"binder"`
	Own     bool           `json:"own"`
	Dump    *string        `json:"dump"`
	Line    *uint32        `json:"line"`
	Problem *string        `json:"problem"`
	Share   float64        `json:"share"`
	With    float64        `json:"with"`
	Samples uint64         `json:"samples"`
	Lines   []coreLineJSON `json:"lines"`
}

type coreLineJSON struct {
	Line    uint32   `json:"line"`
	Text    string   `json:"text"`
	Share   float64  `json:"share"`
	Samples uint64   `json:"samples"`
	Of      bool     `json:"of"`
	Spans   []string `json:"spans"` // that scope over the line, innermost last
}

// JSON implements printer.Report.
func (r CoreReport) JSON(w io.Writer, _ printer.Options) error {
	s, v := r.Selection, r.View
	sum := s.Summary()
	doc := coreJSON{
		Event: printer.Known(sum.Event), Unit: printer.Known(sum.Unit), Samples: sum.Samples, Total: sum.Total,
		Element: v.Element.Name, Problem: printer.Known(v.Problem), Bindings: []coreBindingJSON{},
	}
	for i := range v.Bindings {
		b := &v.Bindings[i]
		out := coreBindingJSON{
			b.Name, printer.Known(b.Detail), printer.Known(b.Core.Name), b.Own, printer.Known(b.Core.Dump), printer.Known(b.Core.Line), printer.Known(b.Core.Problem), b.Share, b.With, b.Samples, []coreLineJSON{},
		}
		for j := range b.Lines {
			l := &b.Lines[j]
			spans := []string{}
			for _, n := range l.Notes {
				sp := s.Profile.Span(b.Notes[n].Span)
				spans = append(spans, s.Profile.File(sp.File).Path+":"+sp.Extent.String())
			}
			out.Lines = append(out.Lines, coreLineJSON{l.Number, strings.ToValidUTF8(l.Text, "\ufffd"), l.Share, l.Samples, l.Of, spans})
		}
		doc.Bindings = append(doc.Bindings, out)
	}
	return printer.JSON(w, doc)
}

package text

import (
	"fmt"
	"io"
	"strings"

	"ccagent/profile"
	"ccagent/profile/source"
	"ccagent/ui/safe"
)

// Core prints the Core of an element with its costs.
func Core(w io.Writer, s *profile.Selection, v *source.CoreView, o Options) error {
	p := newPrinter(w, o)
	p.heading(s)
	p.line(p.bold(fit("Core of "+v.Element.Name, o.Width)))
	if v.Problem != "" {
		p.line(fit(v.Problem, 0))
		return p.flush()
	}
	for i := range v.Bindings[:p.o.top(len(v.Bindings), len(v.Bindings))] {
		p.coreBinding(&v.Bindings[i])
	}
	return p.flush()
}

func (p *printer) coreBinding(b *source.CoreBinding) {
	p.line("")
	title := b.Name
	if b.Detail != "" {
		title += " (" + b.Detail + ")"
	}
	p.line(p.bold(fit(title, p.o.Width)))
	with := ""
	if b.WithWeight != b.Weight {
		with = fmt.Sprintf(" of which %s", percent(b.With))
	}
	p.linef("share %s%s   %s   %s:%d", percent(b.Share), with, plural(b.Samples, "sample"), fit(b.Core.Dump, 0), b.Core.Line)
	if b.Core.Problem != "" {
		p.line("note: ", fit(b.Core.Problem, 0))
	}
	number := max(4, len(fmt.Sprint(len(b.Lines))))
	room := 0
	if p.o.Width > 0 {
		room = max(20, p.o.width()-13-number)
	}
	for i := range b.Lines {
		l := &b.Lines[i]
		text := safe.String(l.Text)
		if room > 0 && safe.Width(text) > room {
			text = safe.Front(text, room-1) + "…"
		}
		share, mark := "      ", " "
		if l.Samples > 0 {
			share = Percent(l.Share)
		}
		if l.Of {
			mark = "*"
		}
		p.line(p.heat(l.Share, share), " ", mark, "  ", p.faint(fmt.Sprintf("%*d", number, l.Number)), "  ", text)
	}
}

type coreJSON struct {
	Event    string            `json:"event"`
	Unit     string            `json:"unit"`
	Samples  uint64            `json:"samples"`
	Total    uint64            `json:"total"`
	Element  string            `json:"element"`
	Problem  string            `json:"problem"`
	Bindings []coreBindingJSON `json:"bindings"`
}

type coreBindingJSON struct {
	Binding string         `json:"binding"`
	Detail  string         `json:"detail"`
	Binder  string         `json:"binder"`
	Own     bool           `json:"own"`
	Dump    string         `json:"dump"`
	Line    uint32         `json:"line"`
	Problem string         `json:"problem"`
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

// CoreJSON writes what Core prints.
func CoreJSON(w io.Writer, s *profile.Selection, v *source.CoreView) error {
	sum := s.Summary()
	doc := coreJSON{
		Event: sum.Event, Unit: sum.Unit, Samples: sum.Samples, Total: sum.Total,
		Element: v.Element.Name, Problem: v.Problem, Bindings: []coreBindingJSON{},
	}
	for i := range v.Bindings {
		b := &v.Bindings[i]
		out := coreBindingJSON{
			b.Name, b.Detail, b.Core.Name, b.Own, b.Core.Dump, b.Core.Line, b.Core.Problem, b.Share, b.With, b.Samples, []coreLineJSON{},
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
	return writeJSON(w, doc)
}

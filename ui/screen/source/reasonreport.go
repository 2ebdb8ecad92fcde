package source

import (
	"io"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/reasons"
	"ccagent/ui/printer"
)

// ReasonReport explains an element that has no source.
type ReasonReport struct {
	Selection *profile.Selection
	Reason    *reasons.Reason
}

// Text implements printer.Report.
func (r ReasonReport) Text(w io.Writer, o printer.Options) error {
	p := newOut(w, o)
	p.Heading(r.Selection)
	unit := r.Selection.EventDef().Unit
	p.Line(p.Bold(r.Reason.Element))
	p.Linef("share %s   %s", format.Percent(r.Reason.Share), format.Quantity(r.Reason.Weight, unit))
	parts := func(head string, parts []reasons.Part, unit string) {
		if len(parts) == 0 {
			return
		}
		p.Line("")
		p.Line(p.Bold(head))
		for _, q := range parts {
			line := p.Heat(q.Share, format.Column(q.Share)) + printer.PadLeft(format.Quantity(q.Weight, unit), 11) + "  " + printer.Fit(q.Name, 100)
			if len(q.Functions) > 0 {
				line += "  " + p.Faint(printer.Fit(strings.Join(q.Functions, ", "), 100))
			}
			p.Line(line)
		}
	}
	parts("what it consists of", r.Reason.Parts, unit)
	if by := r.Reason.By; by != "" {
		parts("who causes it: "+by+", by the nearest function with source", r.Reason.Causes, "bytes")
	} else {
		parts("who causes it, by the nearest function with source", r.Reason.Causes, unit)
	}
	if len(r.Reason.Advice) > 0 {
		p.Line("")
		p.Line(p.Bold("what usually helps"))
		for _, a := range r.Reason.Advice {
			p.Wrap(func(s string) string { return s }, " ", strings.Fields("- "+a)...)
		}
	}
	return p.Flush()
}

type reasonJSON struct {
	Event   *string    `json:"event"`
	Unit    *string    `json:"unit"`
	Element string     `json:"element"`
	Share   float64    `json:"share"`
	Weight  uint64     `json:"weight"`
	Parts   []partJSON `json:"parts"`
	By      *string    `json:"by"` // null where causes are parts of the selection
	Causes  []partJSON `json:"causes"`
	Advice  []string   `json:"advice"`
}

type partJSON struct {
	Name      string   `json:"name"`
	Functions []string `json:"functions"`
	Share     float64  `json:"share"`
	Weight    uint64   `json:"weight"`
}

// JSON implements printer.Report.
func (r ReasonReport) JSON(w io.Writer, _ printer.Options) error {
	of := func(parts []reasons.Part) []partJSON {
		out := []partJSON{}
		for _, q := range parts {
			out = append(out, partJSON{q.Name, append([]string{}, q.Functions...), q.Share, q.Weight})
		}
		return out
	}
	e := r.Selection.EventDef()
	doc := reasonJSON{
		Event: printer.Known(e.Name()), Unit: printer.Known(e.Unit), Element: r.Reason.Element, Share: r.Reason.Share, Weight: r.Reason.Weight,
		Parts: of(r.Reason.Parts), Causes: of(r.Reason.Causes), Advice: append([]string{}, r.Reason.Advice...),
	}
	if r.Reason.By != "" {
		doc.By = &r.Reason.By
	}
	return printer.JSON(w, doc)
}

package text

import (
	"io"
	"strings"

	"ccagent/profile"
	"ccagent/profile/diagnosis"
	"ccagent/ui/printer"
	"ccagent/ui/safe"
)

// Doctor is the report of a diagnosis.
type Doctor struct{ Profile *profile.Profile }

// Text implements printer.Report.
func (d Doctor) Text(w io.Writer, o printer.Options) error {
	p := newOut(w, o)
	p.Line(p.Bold(printer.Fit(o.File, o.Width)))
	marks := map[diagnosis.Status]string{diagnosis.StatusOK: p.Style("32", "ok  "), diagnosis.StatusWarn: p.Style("33", "warn"), diagnosis.StatusFail: p.Style("31", "FAIL")}
	for _, c := range diagnosis.Diagnose(d.Profile) {
		p.Hang("  "+marks[c.Status]+"  "+printer.PadRight(c.Name, 12)+" ", plain, safe.String(c.Detail))
		p.remedy(strings.Repeat(" ", 21), c.Remedy)
	}
	return p.Flush()
}

// remedy prints the lines of a remedy, if there is one.
func (p out) remedy(indent, text string) {
	if text == "" {
		return
	}
	mark := "→ "
	for line := range strings.SplitSeq(text, "\n") {
		p.Hang(indent+mark, plain, safe.String(line))
		mark = "  "
	}
}

type checkJSON struct {
	Name   string           `json:"check"`
	Status diagnosis.Status `json:"status"`
	Detail string           `json:"detail"`
	Remedy *string          `json:"remedy"`
}

// JSON implements printer.Report. A log is whole if no check fails.
func (d Doctor) JSON(w io.Writer, _ printer.Options) error {
	whole := true
	checks := []checkJSON{}
	for _, c := range diagnosis.Diagnose(d.Profile) {
		whole = whole && c.Status != diagnosis.StatusFail
		checks = append(checks, checkJSON{c.Name, c.Status, c.Detail, printer.Known(c.Remedy)})
	}
	return printer.JSON(w, struct {
		Whole  bool        `json:"whole"`
		Checks []checkJSON `json:"checks"`
	}{whole, checks})
}

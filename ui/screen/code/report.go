package code

import (
	"fmt"
	"io"
	"path/filepath"

	"ccagent/internal/format"
	"ccagent/profile/machinecode"
	"ccagent/ui/printer"
)

// Report is a function's machine code.
type Report struct {
	Listing *machinecode.Listing
	All     bool // also the instructions far from any sample
}

// near is how many instructions around one with samples are printed.
const near = 6

// Text implements printer.Report.
func (r Report) Text(w io.Writer, o printer.Options) error {
	p, l := printer.New(w, o), r.Listing
	p.Wrap(p.Bold, "   ", printer.Fit(o.File, 60), printer.Fit(l.Name, 80), fmt.Sprintf("%s of the weight, %s", format.Share(l.Share), format.Plural(l.Samples, "sample")))
	for _, problem := range l.Problems {
		p.Note("%s", printer.Fit(problem, 0))
	}
	n := o.Rows(len(l.Ranges), len(l.Ranges))
	for i := range l.Ranges[:n] {
		x := &l.Ranges[i]
		p.Line("")
		p.Line(p.Bold(format.Share(x.Share)+"  "+printer.Fit(x.Procedure, 80)), "  ", p.Faint(fmt.Sprintf("%#x-%s in %s", x.Lo, end(x), printer.Fit(filepath.Base(x.Path), 40))))
		r.lines(p, x)
	}
	if rest := len(l.Ranges) - n + l.Omitted; rest > 0 {
		p.Line("")
		p.Line(p.Faint(fmt.Sprintf("%s more, with less weight", format.Plural(uint64(rest), "piece"))))
	}
	p.Line("")
	p.Note("A sample lies on the instruction that was to be executed next: what took the time is often the one before.")
	return p.Flush()
}

// lines prints a range's instructions, and leaves out what is far from samples.
func (r Report) lines(p *printer.Printer, x *machinecode.Range) {
	last, left := -near-1, 0
	next := func(i int) bool { // a sample is near
		for k := i; k < len(x.Lines) && k <= i+near; k++ {
			if x.Lines[k].Samples > 0 {
				return true
			}
		}
		return false
	}
	file, row := "", uint32(0)
	for i := range x.Lines {
		l := &x.Lines[i]
		if l.Samples > 0 {
			last = i
		}
		if !r.All && i-last > near && !next(i) {
			left++
			continue
		}
		if left > 0 {
			p.Line(p.Faint(fmt.Sprintf("                          … %s without samples", format.Plural(uint64(left), "instruction"))))
			left = 0
		}
		share, where := printer.PadLeft("", 6), ""
		if l.Samples > 0 {
			share = p.Heat(l.Share, printer.PadLeft(format.Column(l.Share), 6))
			if l.File != "" && (l.File != file || l.Row != row) {
				file, row = l.File, l.Row
				where = "  " + place(l)
				if l.Source != "" {
					where += "  " + printer.Fit(l.Source, 60)
				}
			}
		}
		p.Line(share, fmt.Sprintf("  %10x  ", l.Addr), printer.PadRight(printer.Fit(l.Text, 0), 44), p.Faint(where))
	}
	if left > 0 {
		p.Line(p.Faint(fmt.Sprintf("                          … %s without samples", format.Plural(uint64(left), "instruction"))))
	}
}

type listingJSON struct {
	Function string      `json:"function"`
	Share    float64     `json:"share"`
	Samples  uint64      `json:"samples"`
	Pieces   []pieceJSON `json:"pieces"`
	Omitted  int         `json:"omitted"`
	Problems []string    `json:"problems"`
}

type pieceJSON struct {
	Procedure    string            `json:"procedure"`
	File         string            `json:"binary"`
	Lo           uint64            `json:"lo"`
	Hi           *uint64           `json:"hi"` // null where it is not known
	Share        float64           `json:"share"`
	Instructions []instructionJSON `json:"instructions"`
}

type instructionJSON struct {
	Addr    uint64  `json:"addr"`
	Text    *string `json:"text"`
	Share   float64 `json:"share"`
	Samples uint64  `json:"samples"`
	File    *string `json:"file"`
	Line    *uint32 `json:"line"`
}

// JSON implements printer.Report.
func (r Report) JSON(w io.Writer, _ printer.Options) error {
	l := r.Listing
	doc := listingJSON{Function: l.Name, Share: l.Share, Samples: l.Samples, Pieces: []pieceJSON{}, Omitted: l.Omitted, Problems: append([]string{}, l.Problems...)}
	for i := range l.Ranges {
		x := &l.Ranges[i]
		j := pieceJSON{Procedure: x.Procedure, File: x.Path, Lo: x.Lo, Share: x.Share, Instructions: []instructionJSON{}}
		if !x.Guessed {
			j.Hi = &x.Hi
		}
		for k := range x.Lines {
			in := &x.Lines[k]
			row := instructionJSON{Addr: in.Addr, Text: printer.Known(in.Text), Share: in.Share, Samples: in.Samples, File: printer.Known(in.File)}
			if in.Row > 0 {
				row.Line = &in.Row
			}
			j.Instructions = append(j.Instructions, row)
		}
		doc.Pieces = append(doc.Pieces, j)
	}
	return printer.JSON(w, doc)
}

// Package printer sets plain text and JSON for pipes and scripts: lines cut to a width,
// styles, bars, and JSON in which nothing can reach a terminal.
//
// Names, paths and sources come from the profiled program, so text must pass through
// [Fit] or package safe. JSON keeps names as they are and escapes what is not printable.
package printer

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"ccagent/internal/format"
	"ccagent/ui/safe"
)

// Report is what a command or an export prints, in either form. Each method writes one
// whole document.
//
// The fields of the JSON documents are a contract with scripts: fields may be added, none
// may change.
type Report interface {
	Text(w io.Writer, o Options) error
	JSON(w io.Writer, o Options) error
}

// Options say how text is set.
type Options struct {
	Width int  // columns; 0 means as wide as it gets
	Color bool // styles by SGR sequences
	File  string
	Top   int // rows; 0 means the view's default, below 0 all
}

// defaultWidth is what bars and timelines are made for where the width is open.
const defaultWidth = 110

// Columns is the width to set text for.
func (o Options) Columns() int {
	if o.Width <= 0 {
		return defaultWidth
	}
	return max(o.Width, 40)
}

// Wide reports whether there is room for what is left out on small terminals.
func (o Options) Wide() bool { return o.Columns() >= 100 }

// Rows is the number of rows to print of n; standard is the view's default.
func (o Options) Rows(n, standard int) int {
	switch {
	case o.Top < 0:
		return n
	case o.Top == 0:
		return min(n, standard)
	default:
		return min(n, o.Top)
	}
}

// Printer writes lines and keeps the first error.
type Printer struct {
	Options
	w *bufio.Writer
}

// New gives a printer on w. Flush ends it.
func New(w io.Writer, o Options) *Printer {
	return &Printer{o, bufio.NewWriterSize(w, 64<<10)}
}

// Flush writes what is left and gives the first error.
func (p *Printer) Flush() error { return p.w.Flush() }

// Line writes one line without trailing spaces.
func (p *Printer) Line(parts ...string) {
	s := strings.TrimRight(strings.Join(parts, ""), " ")
	p.w.WriteString(s)
	p.w.WriteByte('\n')
}

// Linef is Line with a format.
func (p *Printer) Linef(format string, args ...any) { p.Line(fmt.Sprintf(format, args...)) }

// Wrap writes parts, with sep between them, on as many lines as they need.
func (p *Printer) Wrap(style func(string) string, sep string, parts ...string) {
	line := ""
	for _, part := range parts {
		if p.Width > 0 {
			part = Fit(part, p.Columns())
		}
		switch {
		case line == "":
			line = part
		case p.Width > 0 && safe.Width(line)+len(sep)+safe.Width(part) > p.Columns():
			p.Line(style(line))
			line = part
		default:
			line += sep + part
		}
	}
	p.Line(style(line))
}

// proseWidth is the width of text that is wrapped where the width is open.
const proseWidth = 80

// Hang writes safe text after what stands first on its line, on as many lines as it needs; further
// ones begin below the text's first word. Where the width is open, what is longer than a line, such as a path,
// stays whole.
func (p *Printer) Hang(first string, style func(string) string, text string) {
	indent := ansi.StringWidth(first)
	if p.Width > 0 {
		text = ansi.Wrap(text, max(20, p.Columns()-indent), "")
	} else {
		text = format.Fill(text, max(20, proseWidth-indent))
	}
	for line := range strings.SplitSeq(text, "\n") {
		p.Line(first, style(line))
		first = strings.Repeat(" ", indent)
	}
}

// Note writes a footnote.
func (p *Printer) Note(format string, args ...any) {
	p.Wrap(p.Faint, " ", strings.Fields(fmt.Sprintf(format, args...))...)
}

// Style encloses text in an SGR sequence; that does not change its width.
func (p *Printer) Style(sgr, s string) string {
	if !p.Color || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

// Bold and Faint are styles.
func (p *Printer) Bold(s string) string { return p.Style("1", s) }

// Faint see Bold.
func (p *Printer) Faint(s string) string { return p.Style("2", s) }

// FaintZero gives a share as a column, faint if it is zero.
func (p *Printer) FaintZero(f float64) string {
	if f == 0 {
		return p.Faint(format.Column(f))
	}
	return format.Column(f)
}

// Heat colours a figure by its share, in steps of a factor of about three.
func (p *Printer) Heat(share float64, s string) string {
	switch {
	case share >= 0.3:
		return p.Style("1;31", s)
	case share >= 0.1:
		return p.Style("31", s)
	case share >= 0.03:
		return p.Style("33", s)
	case share > 0:
		return s
	default:
		return p.Faint(s)
	}
}

// Fit makes s visible text of at most width columns. Width ≤ 0 does not cut.
func Fit(s string, width int) string {
	if width <= 0 {
		return safe.String(s)
	}
	return safe.Fit(s, width, "…")
}

// Quantity is format.Quantity with a unit that a log chose.
func Quantity(w uint64, unit string) string { return format.Quantity(w, Fit(unit, 16)) }

// PadRight fills safe text to a width.
func PadRight(s string, width int) string {
	if n := width - safe.Width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// PadLeft see PadRight; the text stands at the right.
func PadLeft(s string, width int) string {
	if n := width - safe.Width(s); n > 0 {
		return strings.Repeat(" ", n) + s
	}
	return s
}

// Bar draws what is an element's alone as # and what it shares as ~.
func Bar(only, share float64, width int) string {
	cells := func(f float64) int { return min(width, max(0, int(f*float64(width)+0.5))) }
	all, own := cells(share), cells(only)
	if all == 0 && share > 0 {
		all = 1
	}
	if own == 0 && only > 0 && only >= share/2 {
		own = 1
	}
	own = min(own, all)
	return strings.Repeat("#", own) + strings.Repeat("~", all-own) + strings.Repeat(" ", width-all)
}

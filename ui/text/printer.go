package text

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"ccagent/ui/safe"
)

// Options say how text is set.
type Options struct {
	Width int  // columns; 0 means as wide as it gets
	Color bool // styles by SGR sequences
	File  string
	Top   int // rows; 0 means the view's default, below 0 all
}

// defaultWidth is what bars and timelines are made for where the width is open.
const defaultWidth = 110

func (o Options) width() int {
	if o.Width <= 0 {
		return defaultWidth
	}
	return max(o.Width, 40)
}

// top is the number of rows to print of n.
func (o Options) top(n, standard int) int {
	switch {
	case o.Top < 0:
		return n
	case o.Top == 0:
		return min(n, standard)
	default:
		return min(n, o.Top)
	}
}

// printer writes lines and keeps the first error.
type printer struct {
	w *bufio.Writer
	o Options
}

func newPrinter(w io.Writer, o Options) *printer { return &printer{bufio.NewWriterSize(w, 64<<10), o} }

func (p *printer) flush() error { return p.w.Flush() }

// line writes one line, cut to the width where there is one.
func (p *printer) line(parts ...string) {
	s := strings.TrimRight(strings.Join(parts, ""), " ")
	p.w.WriteString(s)
	p.w.WriteByte('\n')
}

func (p *printer) linef(format string, args ...any) { p.line(fmt.Sprintf(format, args...)) }

// wrap writes parts, with sep between them, on as many lines as they need.
func (p *printer) wrap(style func(string) string, sep string, parts ...string) {
	line := ""
	for _, part := range parts {
		if p.o.Width > 0 {
			part = fit(part, p.o.width())
		}
		switch {
		case line == "":
			line = part
		case p.o.Width > 0 && safe.Width(line)+len(sep)+safe.Width(part) > p.o.width():
			p.line(style(line))
			line = part
		default:
			line += sep + part
		}
	}
	p.line(style(line))
}

// note writes a footnote.
func (p *printer) note(format string, args ...any) {
	p.wrap(p.faint, " ", strings.Fields(fmt.Sprintf(format, args...))...)
}

// Styles. They enclose text without changing its width.

func (p *printer) style(sgr, s string) string {
	if !p.o.Color || s == "" {
		return s
	}
	return "\x1b[" + sgr + "m" + s + "\x1b[0m"
}

func (p *printer) bold(s string) string  { return p.style("1", s) }
func (p *printer) faint(s string) string { return p.style("2", s) }

// heat colours a figure by its share, in steps of a factor of about three.
func (p *printer) heat(share float64, s string) string {
	switch {
	case share >= 0.3:
		return p.style("1;31", s)
	case share >= 0.1:
		return p.style("31", s)
	case share >= 0.03:
		return p.style("33", s)
	case share > 0:
		return s
	default:
		return p.faint(s)
	}
}

// fit makes s visible text of at most width columns. Width ≤ 0 does not cut.
func fit(s string, width int) string {
	if width <= 0 {
		return safe.String(s)
	}
	return safe.Fit(s, width, "…")
}

// padRight fills safe text to a width.
func padRight(s string, width int) string {
	if n := width - safe.Width(s); n > 0 {
		return s + strings.Repeat(" ", n)
	}
	return s
}

// bar draws what is an element's alone as # and what it shares as ~.
func bar(only, share float64, width int) string {
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

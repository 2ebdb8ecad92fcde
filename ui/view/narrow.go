package view

import (
	"strings"

	"ccagent/internal/format"
	"ccagent/ui/widget"
)

// narrowed tells in a box's border what keeps rows out of its list; empty if nothing
// does.
func (c *Context) narrowed() string {
	var parts []string
	if c.Filter.RE != nil {
		parts = append(parts, "& "+c.Filter.Text)
	}
	if c.Minimum > 0 {
		parts = append(parts, "min "+format.Share(c.Minimum))
	}
	return strings.Join(parts, "  ")
}

// emptied tells why a list of these has no row, and which key brings some back: no
// sample is kept, or what narrows it; nil if it is for another reason.
func (c *Context) emptied(what string) []string {
	s := c.Data.Summary
	switch {
	case s != nil && s.Event != "" && s.Samples > 0 && s.Kept == 0:
		return []string{"no sample is left by the transforms", "backspace takes the last one off, t shows the next event"}
	case c.Filter.RE != nil:
		return []string{"no " + what + " matches & " + c.Filter.Text, "& and enter lists all"}
	case c.Minimum > 0:
		return []string{"no " + what + " has " + format.Share(c.Minimum), "L changes the minimum"}
	}
	return nil
}

// drawInstead draws lines in the place of a list that has no rows, broken where they
// are too long.
func drawInstead(p *widget.Painter, in widget.Rect, lines []string) {
	y := in.Min.Y
	for _, l := range lines {
		pieces := wrap(p, l, in.Dx()-2)
		if l == "" {
			y++
		}
		for _, piece := range pieces {
			if y < in.Max.Y {
				p.Text(in.Min.X+1, y, in.Max.X, piece, p.Theme.Dim)
			}
			y++
		}
	}
}

// computing is what stands where figures are yet to come.
func computing(p *widget.Painter) []string { return []string{"computing" + p.Glyphs.More} }

// unresolved is the element of code without a name.
const unresolved = "(unresolved)"

const notYet = "  not yet"

// pending tells whether code has no name only because nobody has looked yet; empty if
// none.
func (c *Context) pending() string {
	s := c.Data.Summary
	switch {
	case s == nil || s.Pending == 0:
		return ""
	case s.Pending > s.Unresolved-1e-9:
		return notYet
	}
	return "  partly" + notYet
}

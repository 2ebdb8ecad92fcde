package screen

import (
	"strings"

	"ccagent/internal/format"
	"ccagent/ui/model"
	"ccagent/ui/widget"
)

// Narrowed tells in a box's border what keeps rows out of its list; empty if nothing
// does.
func (c *Context) Narrowed() string {
	var parts []string
	if c.Filter.RE != nil {
		parts = append(parts, "& "+c.Filter.Text)
	}
	if c.Minimum > 0 {
		parts = append(parts, "min "+format.Share(c.Minimum))
	}
	return strings.Join(parts, "  ")
}

// Emptied tells why a list of these has no row, and which key brings some back: no
// sample is kept, or what narrows it; nil if it is for another reason.
func (c *Context) Emptied(what string) []string {
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

// DrawInstead draws lines in the place of a list that has no rows, broken where they
// are too long.
func DrawInstead(p *widget.Painter, in widget.Rect, lines []string) {
	y := in.Min.Y
	for _, l := range lines {
		pieces := Wrap(p, l, in.Dx()-2)
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

// Computing is what stands where figures are yet to come.
func Computing(p *widget.Painter) []string { return []string{"computing" + p.Glyphs.More} }

// Unresolved is the element of code without a name.
const Unresolved = "(unresolved)"

// NotYet stands beside code that nobody has looked up yet.
const NotYet = "  not yet"

// Pending tells whether code has no name only because nobody has looked yet; empty if
// none.
func (c *Context) Pending() string {
	s := c.Data.Summary
	switch {
	case s == nil || s.Pending == 0:
		return ""
	case s.Pending > s.Unresolved-1e-9:
		return NotYet
	}
	return "  partly" + NotYet
}

// Wrap breaks a sentence at its spaces, and keeps those that it begins with.
func Wrap(p *widget.Painter, s string, w int) []string {
	var out []string
	indent := s[:len(s)-len(strings.TrimLeft(s, " "))]
	line := indent
	for _, word := range strings.Fields(s) {
		if line != indent && p.Width(line)+1+p.Width(word) > w {
			out = append(out, line)
			line = indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	if line != indent {
		out = append(out, line)
	}
	return out
}

// Tail keeps a path's end, which tells more than its beginning.
func Tail(p *widget.Painter, s string, w int) string {
	cut := ""
	for p.Width(cut+s) > w {
		_, rest, ok := strings.Cut(s, "/")
		if !ok {
			break
		}
		s, cut = rest, p.Glyphs.More+"/"
	}
	return cut + s
}

// Pad fills ASCII text to a width.
func Pad(s string, w int) string {
	if len(s) < w {
		return s + strings.Repeat(" ", w-len(s))
	}
	return s
}

// Row finds an element's row in the hot list.
func (c *Context) Row(k model.Key) *model.Row {
	if c.Data.Hot == nil {
		return nil
	}
	for i := range c.Data.Hot.Rows {
		if c.Data.Hot.Rows[i].Key == k {
			return &c.Data.Hot.Rows[i]
		}
	}
	return nil
}

package screen

import (
	"strings"

	"ccagent/internal/format"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/widget"
)

// Narrowed is the filter and the minimum, as a box's border shows them; empty if there
// are none.
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

// Few is a box's title, with what its list is worth before it if that rests on a handful of samples.
func (c *Context) Few(title string) string {
	if s := c.Data.Summary; s != nil {
		if few := printer.FewShort(s.Kept, s.Effective); few != "" {
			return few + "  " + title
		}
	}
	return title
}

// Emptied explains why a list has no rows and which key brings some back: no sample is
// kept, or a filter or the minimum leaves out all. It is nil for other reasons.
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

// DrawInstead draws lines in the place of an empty list, and wraps long ones.
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

// Computing is shown until figures are computed.
func Computing(p *widget.Painter) []string { return []string{"computing" + p.Glyphs.More} }

// Unresolved is the element of code without a name.
const Unresolved = "(unresolved)"

// NotYet is shown beside code whose name has not been looked up yet.
const NotYet = "  not yet"

// Pending is NotYet if code without a name has not been looked up yet, in all or in
// part, or else empty.
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

// Wrap breaks a sentence at spaces into lines of at most w columns, and indents all of
// them as it is indented.
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

// Tail shortens a path to w columns by leaving out its first directories.
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

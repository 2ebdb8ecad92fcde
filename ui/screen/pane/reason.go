package pane

import (
	"fmt"
	"strings"

	"ccagent/internal/format"
	"ccagent/profile/reasons"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// reasonLine is a line about an element without source.
type reasonLine struct {
	head, text string
	part       *reasons.Part
	functions  bool // the part's functions are worth naming
}

// reasonLines returns what explains an element, for width columns.
func reasonLines(p *widget.Painter, c *screen.Context, r *reasons.Reason, width int) []reasonLine {
	var out []reasonLine
	head := func(text string) {
		if len(out) > 0 {
			out = append(out, reasonLine{})
		}
		for _, l := range screen.Wrap(p, text, width) {
			out = append(out, reasonLine{head: l})
		}
	}
	if len(r.Parts) > 0 {
		head("What it consists of")
		for i := range r.Parts {
			out = append(out, reasonLine{part: &r.Parts[i], functions: true})
		}
	}
	if len(r.Causes) > 0 {
		text := "Who causes it, by the nearest function with source"
		if r.By != "" {
			text = "Who allocates, and so makes it collect"
		}
		head(text)
		for i := range r.Causes {
			out = append(out, reasonLine{part: &r.Causes[i]})
		}
	}
	if len(r.Advice) > 0 {
		head("What usually helps")
		for _, a := range r.Advice {
			for i, l := range screen.Wrap(p, a, width-2) {
				sign := "  "
				if i == 0 {
					sign = "- "
				}
				out = append(out, reasonLine{text: sign + l})
			}
		}
	}
	head(c.Key(screen.Stacks) + " shows the stacks; f here keeps only them.")
	return out
}

// drawReason draws why an element has its samples.
func (s *sourcePane) drawReason(p *widget.Painter, in widget.Rect, r *reasons.Reason, lines []reasonLine) {
	t, c := p.Theme, s.c
	unit := c.Unit()
	for i, l := range lines[s.above:] {
		y := in.Min.Y + i
		if y >= in.Max.Y {
			break
		}
		x := in.Min.X + 1
		switch {
		case l.head != "":
			p.Text(x, y, in.Max.X, l.head, t.Strong)
		case l.part == nil:
			p.Text(x, y, in.Max.X, l.text, t.Text)
		default:
			share, of := l.part.Share, unit
			if !l.functions && r.By != "" {
				of = "bytes"
			} else {
				share *= c.Base
			}
			st := t.Text
			if level := theme.HeatLevel(share); level > 0 {
				st = t.Heat[level-1]
			}
			p.Right(x, x+6, y, format.Share(share), st)
			x += 8
			if in.Dx() >= 60 {
				p.Right(x, x+9, y, format.Quantity(l.part.Weight, of), t.Dim)
				x += 11
			}
			x = p.Name(x, y, in.Max.X, l.part.Name, t.Text)
			if names := "  " + strings.Join(l.part.Functions, ", "); l.functions && len(l.part.Functions) > 0 && x+16 < in.Max.X {
				p.Text(x, y, in.Max.X, names, t.Dim)
			}
		}
	}
	if left := len(lines) - s.above - in.Dy(); left > 0 {
		p.Right(in.Min.X, in.Max.X, in.Max.Y-1, fmt.Sprintf(" %d more below", left), t.Dim)
	}
}

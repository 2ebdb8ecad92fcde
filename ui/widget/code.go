package widget

import (
	"unicode/utf8"

	"ccagent/ui/safe"
	"ccagent/ui/syntax"
	"ccagent/ui/theme"
)

// Mark highlights a stretch of a source line, in GHC's columns: 1-based, a tab
// reaching to the next multiple of 8 plus 1, every other character one column.
type Mark struct {
	From, To int  // To is one past the last; 0 means the line's end
	Bytes    bool // From and To are byte offsets, not columns
	Style    theme.Style
}

// CodeLine draws line from display column left on, coloured, with marks on top;
// later marks win.
func (p *Painter) CodeLine(r Rect, y, left int, line string, tokens []syntax.Token, marks []Mark) {
	x0, limit := r.Min.X-left, min(r.Max.X, p.bounds().Max.X)
	col, ghc, last := 0, columns{line: line, col: 1}, 0
	safe.Expand(line, func(at int, text string, w int) {
		x := x0 + col
		col += w
		last = x + w
		if x >= limit || x+w > limit || x+w <= r.Min.X {
			return
		}
		st := p.syntaxStyle(syntax.At(tokens, at))
		g := ghc.at(at)
		for _, m := range marks {
			pos := g
			if m.Bytes {
				pos = at
			}
			if pos >= m.From && (m.To == 0 || pos < m.To) {
				st = over(st, m.Style)
			}
		}
		if x < r.Min.X { // a tab or a wide character cut at the left
			for i := r.Min.X; i < x+w; i++ {
				p.Cell(i, y, " ", st)
			}
			return
		}
		p.put(x, y, text, w, st)
	})
	if left > 0 && r.Dx() > 0 && line != "" {
		p.Text(r.Min.X, y, limit, p.Glyphs.More, p.Theme.Dim)
	}
	if last > limit {
		p.Text(limit-len([]rune(p.Glyphs.More)), y, limit, p.Glyphs.More, p.Theme.Dim)
	}
}

// Underlay draws letters under a stretch of a line, "^SSSS", and gives the
// columns they take: from == end if nothing of the stretch is in sight.
func (p *Painter) Underlay(r Rect, y, left int, line string, m Mark, letter string) (from, end int) {
	from, end = r.Min.X, r.Min.X
	limit := min(r.Max.X, p.bounds().Max.X)
	col, ghc, first := 0, columns{line: line, col: 1}, true
	safe.Expand(line, func(at int, _ string, w int) {
		g := ghc.at(at)
		x := r.Min.X - left + col
		col += w
		if g < m.From || m.To != 0 && g >= m.To {
			return
		}
		for i := range w {
			if x+i >= r.Min.X && x+i < limit {
				glyph := letter
				if first {
					glyph = "^"
				}
				if from == end {
					from = x + i
				}
				end = x + i + 1
				p.Cell(x+i, y, glyph, m.Style)
			}
			first = false
		}
	})
	return from, end
}

// columns counts GHC's columns along a line.
type columns struct {
	line string
	pos  int
	col  int
}

// at gives the column of the byte at offset i; offsets must not go back.
func (c *columns) at(i int) int {
	for c.pos < i && c.pos < len(c.line) {
		r, n := utf8.DecodeRuneInString(c.line[c.pos:])
		c.pos += n
		if r == '\t' {
			c.col = (c.col-1)/safe.TabWidth*safe.TabWidth + safe.TabWidth + 1
		} else {
			c.col++
		}
	}
	return c.col
}

// over lays b on a: b's colours where it has some, the attributes of both.
func over(a, b theme.Style) theme.Style {
	if b.Fg != nil {
		a.Fg = b.Fg
	}
	if b.Bg != nil {
		a.Bg = b.Bg
	}
	if b.Underline != 0 {
		a.Underline = b.Underline
	}
	a.Attrs |= b.Attrs
	return a
}

func (p *Painter) syntaxStyle(k syntax.Kind) theme.Style {
	t := p.Theme
	switch k {
	case syntax.Keyword:
		return t.SyntaxKeyword
	case syntax.Type:
		return t.SyntaxType
	case syntax.String:
		return t.SyntaxString
	case syntax.Number:
		return t.SyntaxNumber
	case syntax.Comment:
		return t.SyntaxComment
	case syntax.Operator:
		return t.SyntaxOperator
	case syntax.Directive:
		return t.SyntaxDirective
	default:
		return t.Text
	}
}

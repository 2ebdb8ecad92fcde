package widget

import (
	"image"
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	uv "github.com/charmbracelet/ultraviolet"

	"ccagent/ui/safe"
	"ccagent/ui/theme"
)

// Rect is a rectangle of cells.
type Rect = image.Rectangle

// Painter draws cells; nothing it draws leaves the canvas or its rectangle.
type Painter struct {
	canvas *lipgloss.Canvas
	Theme  *theme.Theme
	Glyphs *Glyphs
}

// NewPainter gives a painter on an empty canvas of w×h cells.
func NewPainter(w, h int, th *theme.Theme, g *Glyphs) *Painter {
	return &Painter{canvas: lipgloss.NewCanvas(w, h), Theme: th, Glyphs: g}
}

// bounds is the whole canvas.
func (p *Painter) bounds() Rect { return p.canvas.Bounds() }

// Resize empties the canvas and gives it a new size.
func (p *Painter) Resize(w, h int) {
	if b := p.bounds(); b.Dx() != w || b.Dy() != h {
		p.canvas = lipgloss.NewCanvas(w, h)
		return
	}
	p.canvas.Clear()
}

// Render gives the canvas as lines with escape sequences.
func (p *Painter) Render() string { return p.canvas.Render() }

// Text draws s at (x, y) up to the column limit and gives the column after it.
// Text that does not fit ends in a mark of omission.
func (p *Painter) Text(x, y, limit int, s string, st theme.Style) int {
	limit = min(limit, p.bounds().Max.X)
	if x >= limit || s == "" {
		return x
	}
	cut := x + safe.Width(s) - limit
	end := limit
	if cut > 0 {
		end -= p.Glyphs.moreWidth
	}
	full := false
	safe.Expand(s, func(_ int, text string, w int) {
		if full || x+w > end {
			full = true
			return
		}
		x = p.put(x, y, text, w, st)
	})
	if cut > 0 && end >= x {
		for _, r := range p.Glyphs.More {
			x = p.put(x, y, string(r), 1, st)
		}
	}
	return x
}

// Name draws a name as Text draws text, but leaves out of its middle what does not
// fit: both ends distinguish names. Of local code's, words go before letters of the name
// that it stands before.
func (p *Painter) Name(x, y, limit int, s string, st theme.Style) int {
	limit = min(limit, p.bounds().Max.X)
	if x >= limit {
		return x
	}
	if safe.Width(s) > limit-x {
		s = strings.Replace(s, "(local code before ", "(before ", 1)
	}
	return p.Text(x, y, limit, safe.Fit(s, limit-x, p.Glyphs.More), st)
}

// Right draws s so that it ends before the column end, not left of start, and
// gives the column where it begins.
func (p *Painter) Right(start, end, y int, s string, st theme.Style) int {
	x := max(start, end-safe.Width(s))
	p.Text(x, y, end, s, st)
	return x
}

// plainSigns stand in ASCII for signs of the viewer's own texts.
var plainSigns = map[string]string{"→": ">", "−": "-", "±": "~", "×": "x", "µ": "u", "·": ".", "…": "."}

// put sets one cluster whose width is known.
func (p *Painter) put(x, y int, text string, w int, st theme.Style) int {
	if text[0] == ' ' && w == len(text) {
		for range w {
			p.canvas.SetCell(x, y, &uv.Cell{Content: " ", Width: 1, Style: st})
			x++
		}
		return x
	}
	if p.Glyphs.ASCII && text[0] >= 0x80 {
		sign, ok := plainSigns[text]
		if !ok {
			sign = "?"
		}
		for range w {
			p.canvas.SetCell(x, y, &uv.Cell{Content: sign, Width: 1, Style: st})
			x++
		}
		return x
	}
	p.canvas.SetCell(x, y, &uv.Cell{Content: text, Width: w, Style: st})
	return x + w
}

// Cell sets one cell to a glyph of width 1.
func (p *Painter) Cell(x, y int, glyph string, st theme.Style) {
	p.canvas.SetCell(x, y, &uv.Cell{Content: glyph, Width: 1, Style: st})
}

// Mark puts a glyph of width 1 into a cell and keeps the cell's style.
func (p *Painter) Mark(x, y int, glyph string) {
	if c := p.canvas.CellAt(x, y); c != nil {
		first := []rune(glyph)[:1]
		p.Cell(x, y, string(first), c.Style)
	}
}

// Fill sets every cell of r to a space in that style.
func (p *Painter) Fill(r Rect, st theme.Style) {
	r = r.Intersect(p.bounds())
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			p.canvas.SetCell(x, y, &uv.Cell{Content: " ", Width: 1, Style: st})
		}
	}
}

// Tint gives the cells of r the background (and bold) of st, keeping what they say. Cells with a
// background of their own, as matches have, keep it; text that could not be read on st's gets
// st's colour. Where st has no background it only adds its attributes.
func (p *Painter) Tint(r Rect, st theme.Style) {
	r = r.Intersect(p.bounds())
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			c := p.canvas.CellAt(x, y)
			if c == nil || c.Width == 0 {
				continue
			}
			c.Style.Attrs |= st.Attrs
			if st.Bg == nil || c.Style.Bg != nil {
				continue
			}
			c.Style.Bg = st.Bg
			if r, _ := utf8.DecodeRuneInString(c.Content); r >= '▀' && r <= '▟' {
				continue // of a bar or a strip, whose colour says which part it is
			}
			if c.Style.Fg == nil || st.Fg != nil && theme.Contrast(c.Style.Fg, st.Bg) < theme.Readable {
				c.Style.Fg = st.Fg
			}
		}
	}
}

// caption draws a title into a border line at y, between x and limit.
func (p *Painter) caption(x, y, limit int, s string, st theme.Style) int {
	if s == "" || limit-x < 4 {
		return x
	}
	return p.Text(x, y, limit, " "+s+" ", st)
}

// Width is the number of columns Text takes for s.
func (p *Painter) Width(s string) int { return safe.Width(s) }

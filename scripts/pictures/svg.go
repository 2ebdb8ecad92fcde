package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The picture's measures: of a cell, in pixels.
const cellWidth, cellHeight = 8, 17

// style is how a cell is drawn. Colours are as CSS writes them; empty is the terminal's own.
type style struct {
	fg, bg                       string
	bold, dim, italic, underline bool
	reverse                      bool
}

// span is cells of one style in a row.
type span struct {
	style
	x    int
	text string
}

// render makes an SVG picture of a screen with its escape codes, as tmux captures it.
func render(screen string, w, h int, theme string) []byte {
	back, front := "#16181d", "#d6d6d6"
	if theme == "light" {
		back, front = "#ffffff", "#1f2328"
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="monospace" font-size="13">`+"\n", w*cellWidth, h*cellHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="%s"/><g fill="%s">`+"\n", back, front)
	var st style
	y := 0
	for line := range strings.Lines(screen) {
		for _, s := range spans(strings.TrimSuffix(line, "\n"), &st) {
			fg, bg := s.fg, s.bg
			if s.reverse {
				fg, bg = orElse(s.bg, back), orElse(s.fg, front)
			}
			cells := utf8.RuneCountInString(s.text)
			if bg != "" {
				fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`, s.x*cellWidth, y*cellHeight, cells*cellWidth, cellHeight, bg)
			}
			text := strings.TrimRight(s.text, " ")
			if text == "" {
				continue
			}
			fmt.Fprintf(&b, `<text x="%d" y="%d" textLength="%d"`, s.x*cellWidth, y*cellHeight+13, utf8.RuneCountInString(text)*cellWidth)
			if fg != "" {
				fmt.Fprintf(&b, ` fill="%s"`, fg)
			}
			for _, a := range []struct {
				is   bool
				text string
			}{{s.bold, ` font-weight="bold"`}, {s.dim, ` opacity=".6"`}, {s.italic, ` font-style="italic"`}, {s.underline, ` text-decoration="underline"`}} {
				if a.is {
					b.WriteString(a.text)
				}
			}
			// Browsers join spaces in texts of SVG pictures, whatever xml:space says.
			fmt.Fprintf(&b, ">%s</text>", html.EscapeString(strings.ReplaceAll(text, " ", "\u00a0")))
		}
		b.WriteByte('\n')
		y++
	}
	b.WriteString("</g></svg>\n")
	return []byte(b.String())
}

func orElse(colour, other string) string {
	if colour == "" {
		return other
	}
	return colour
}

// spans divides a line by style, which goes on from line to line. Spaces at the end of a span that
// have no background are left out by render.
func spans(line string, st *style) (out []span) {
	x := 0
	for line != "" {
		if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
			if codes, after, ok := strings.Cut(rest, "m"); ok {
				st.set(codes)
				line = after
				continue
			}
		}
		_, n := utf8.DecodeRuneInString(line)
		if k := len(out); k > 0 && out[k-1].style == *st && out[k-1].x+utf8.RuneCountInString(out[k-1].text) == x {
			out[k-1].text += line[:n]
		} else {
			out = append(out, span{*st, x, line[:n]})
		}
		line = line[n:]
		x++
	}
	return out
}

// set changes the style by the parameters of a "select graphic rendition" (ECMA-48, 8.3.117).
func (s *style) set(codes string) {
	ps := strings.FieldsFunc(codes, func(r rune) bool { return r == ';' || r == ':' })
	if len(ps) == 0 {
		*s = style{}
	}
	for i := 0; i < len(ps); i++ {
		n, err := strconv.Atoi(ps[i])
		if err != nil {
			return
		}
		switch {
		case n == 0:
			*s = style{}
		case n == 1:
			s.bold = true
		case n == 2:
			s.dim = true
		case n == 3:
			s.italic = true
		case n == 4:
			s.underline = true
		case n == 7:
			s.reverse = true
		case n == 22:
			s.bold, s.dim = false, false
		case n == 23:
			s.italic = false
		case n == 24:
			s.underline = false
		case n == 27:
			s.reverse = false
		case n >= 30 && n <= 37:
			s.fg = palette(n - 30)
		case n >= 40 && n <= 47:
			s.bg = palette(n - 40)
		case n >= 90 && n <= 97:
			s.fg = palette(n - 82)
		case n >= 100 && n <= 107:
			s.bg = palette(n - 92)
		case n == 39:
			s.fg = ""
		case n == 49:
			s.bg = ""
		case n == 38 || n == 48:
			colour, used := extended(ps[i+1:])
			if i += used; n == 38 {
				s.fg = colour
			} else {
				s.bg = colour
			}
		}
	}
}

// extended reads a colour as 5;N or 2;R;G;B, and says how many parameters that were.
func extended(ps []string) (colour string, used int) {
	at := func(i int) int {
		if i >= len(ps) {
			return 0
		}
		n, _ := strconv.Atoi(ps[i]) // 0 if it is no number
		return n
	}
	switch at(0) {
	case 5:
		return palette(at(1)), 2
	case 2:
		return fmt.Sprintf("#%02x%02x%02x", at(1)&255, at(2)&255, at(3)&255), 4
	}
	return "", len(ps)
}

// palette is xterm's colour of a number 0..255.
func palette(n int) string {
	sixteen := []int{0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
		0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff}
	switch {
	case n < 0 || n > 255:
		return ""
	case n < 16:
		return fmt.Sprintf("#%06x", sixteen[n])
	case n < 232:
		level := func(v int) int {
			if v == 0 {
				return 0
			}
			return 55 + 40*v
		}
		n -= 16
		return fmt.Sprintf("#%02x%02x%02x", level(n/36), level(n/6%6), level(n%6))
	}
	g := 8 + 10*(n-232)
	return fmt.Sprintf("#%02x%02x%02x", g, g, g)
}

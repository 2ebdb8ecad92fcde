package safe

import "strings"

// Fit is String(s) in at most width columns. What does not fit is left out of the
// middle, where names differ least, and more stands for it.
func Fit(s string, width int, more string) string {
	s = String(s)
	if Width(s) <= width {
		return s
	}
	left := width - len([]rune(more))
	if left < 0 {
		return Front(more, width)
	}
	front := left / 2
	return Front(s, front) + more + back(s, left-front)
}

// Front is the beginning of s, in at most width columns.
func Front(s string, width int) string {
	var b strings.Builder
	used := 0
	Expand(s, func(_ int, text string, w int) {
		if used += w; used <= width {
			b.WriteString(text)
		}
	})
	return b.String()
}

// back is the end of s, in at most width columns.
func back(s string, width int) string {
	type piece struct {
		text string
		w    int
	}
	var pieces []piece
	Expand(s, func(_ int, text string, w int) { pieces = append(pieces, piece{text, w}) })
	i, used := len(pieces), 0
	for i > 0 && used+pieces[i-1].w <= width {
		i--
		used += pieces[i].w
	}
	var b strings.Builder
	for _, p := range pieces[i:] {
		b.WriteString(p.text)
	}
	return b.String()
}

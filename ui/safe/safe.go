// Package safe makes text that a profiled program chose fit for a terminal.
//
// Names, paths and source text come from a log and so from whoever made the
// program. Nothing in them may move the cursor, change modes or reorder what
// is shown: control characters, escape sequences, bidirectional overrides and
// invisible characters are replaced, one mark each, and tabs are expanded.
package safe

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ccagent/internal/printable"

	"github.com/charmbracelet/x/ansi"
)

// TabWidth is the distance of tab stops, GHC's own.
const TabWidth = 8

// MaxText bounds what String returns, in bytes of input; names of a megabyte
// are cut and marked.
const MaxText = 16 << 10

const mark = '\uFFFD'

// String gives s as one line of visible text.
func String(s string) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	Expand(s, func(_ int, text string, _ int) { b.WriteString(text) })
	return b.String()
}

// Expand walks the line s, cluster by cluster: at is the byte offset in s, text
// what to show for it, width its columns. The width is the same for terminals
// that measure by grapheme and those that measure by code point.
func Expand(s string, emit func(at int, text string, width int)) {
	col, cut := 0, false
	full := s
	if len(s) > MaxText {
		n := MaxText
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s, cut = s[:n], true
	}
	for at := 0; at < len(s); {
		c := s[at]
		// A printable character may begin a cluster; a control character never.
		if c < ' ' || c == 0x7f || c < utf8.RuneSelf && (at+1 == len(s) || s[at+1] < utf8.RuneSelf) {
			switch {
			case c == '\t':
				w := TabWidth - col%TabWidth
				emit(at, spaces[:w], w)
				col += w
			case c < ' ' || c == 0x7f:
				emit(at, string(mark), 1)
				col++
			default:
				emit(at, full[at:at+1], 1)
				col++
			}
			at++
			continue
		}
		n, text, w := cluster(s[at:])
		if text == "" {
			n, text, w = first(s[at:], n)
		}
		emit(at, text, w)
		col += w
		at += n
	}
	if cut {
		emit(len(s), "…", 1)
	}
}

// Width is the number of columns String(s) takes.
func Width(s string) int {
	n := 0
	Expand(s, func(_ int, _ string, w int) { n += w })
	return n
}

const spaces = "        "

// cluster measures the grapheme cluster at the start of s. Its text is empty if
// it hides something or terminals disagree on its width.
func cluster(s string) (n int, text string, width int) {
	r, rn := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && rn <= 1 {
		return 1, string(mark), 1
	}
	g, _ := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	w := ansi.StringWidth(g)
	// A mark at the start would join what stands before it.
	if w > 0 && !unicode.Is(unicode.M, r) && w == ansi.StringWidthWc(g) && allVisible(g) && !joins(g, w) {
		return len(g), g, w
	}
	return len(g), "", 0
}

// first stands for a cluster of n bytes that cannot be shown: by its first
// character, and a mark unless what follows only chooses a glyph.
func first(s string, n int) (int, string, int) {
	r, rn := utf8.DecodeRuneInString(s)
	one := s[:rn]
	w := ansi.StringWidth(one)
	if r == utf8.RuneError || !visible(r) || unicode.Is(unicode.M, r) || w <= 0 || w != ansi.StringWidthWc(one) {
		return n, string(mark), 1
	}
	switch {
	case joins(one, w):
		return n, string(mark), 1
	case strings.Trim(s[rn:n], "\uFE0E\uFE0F") == "":
		return n, one, w
	}
	return n, one + string(mark), w + 1
}

// joins reports whether a text of a width joins a mark that follows it, as Malayalam's dot reph
// does.
func joins(text string, width int) bool {
	both := text + string(mark)
	return ansi.StringWidth(both) != width+1 || ansi.StringWidthWc(both) != width+1
}

func allVisible(s string) bool {
	for _, r := range s {
		if r == utf8.RuneError || !visible(r) {
			return false
		}
	}
	return true
}

// visible reports whether r may be sent to a terminal.
func visible(r rune) bool { return printable.Rune(r) }

func clean(s string) bool {
	if len(s) > MaxText {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

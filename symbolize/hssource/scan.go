package hssource

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// line is a line of code with comments blanked out.
type line struct {
	text string
	col  int // of the first character of code, from 1; 0 where there is none
}

// scanner blanks out what is no code, over lines.
type scanner struct {
	literate bool
	nested   int  // depth of {- -}
	inCode   bool // in \begin{code}
	gap      bool // in a string gap
}

func (s *scanner) lines(text string) []line {
	var out []line
	for len(text) > 0 && len(out) < maxLines {
		raw, rest, _ := strings.Cut(text, "\n")
		text = rest
		raw = strings.TrimSuffix(raw, "\r")
		out = append(out, s.line(raw))
	}
	return out
}

func (s *scanner) line(raw string) line {
	if s.literate {
		switch {
		case strings.HasPrefix(raw, ">"):
			raw = " " + raw[1:]
		case strings.HasPrefix(raw, `\begin{code}`):
			s.inCode = true
			return line{}
		case strings.HasPrefix(raw, `\end{code}`):
			s.inCode = false
			return line{}
		case !s.inCode:
			return line{}
		}
	}
	if strings.HasPrefix(raw, "#") && s.nested == 0 { // preprocessor, hsc2hs, #!
		return line{}
	}
	code := s.blank(raw)
	col := 0
	at := 0
	for _, r := range code {
		at++
		if r == '\t' {
			at = (at+7)/8*8 + 0
			continue
		}
		if !unicode.IsSpace(r) {
			col = at
			break
		}
	}
	return line{text: code, col: col}
}

// blank replaces comments by spaces and the insides of strings by underscores.
func (s *scanner) blank(raw string) string {
	b := []byte(raw)
	fill := func(from, to int, with byte) {
		for i := from; i < to; i++ {
			b[i] = with
		}
	}
	for i := 0; i < len(b); {
		switch {
		case s.nested > 0:
			n := 1
			switch {
			case strings.HasPrefix(raw[i:], "{-"):
				s.nested, n = s.nested+1, 2
			case strings.HasPrefix(raw[i:], "-}"):
				s.nested, n = s.nested-1, 2
			}
			fill(i, i+n, ' ')
			i += n
		case s.gap:
			if b[i] == '\\' {
				s.gap = false
				i = s.string(raw, b, i+1)
				continue
			}
			i++
		case strings.HasPrefix(raw[i:], "{-"):
			s.nested = 1
			fill(i, i+2, ' ')
			i += 2
		case strings.HasPrefix(raw[i:], "--"):
			n := i
			for n < len(raw) && raw[n] == '-' {
				n++
			}
			r, _ := utf8.DecodeRuneInString(raw[n:])
			before, _ := utf8.DecodeLastRuneInString(raw[:i])
			if (n == len(raw) || !isSymbol(r)) && (i == 0 || !isSymbol(before)) {
				fill(i, len(b), ' ')
				return string(b)
			}
			i = n
		case b[i] == '"':
			i = s.string(raw, b, i+1)
		case b[i] == '\'':
			i = char(raw, b, i)
		default:
			i++
		}
	}
	return string(b)
}

// string blanks the inside of a string literal from i on.
func (s *scanner) string(raw string, b []byte, i int) int {
	for i < len(b) {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			if strings.TrimSpace(raw[i+1:]) == "" { // a gap to the next line
				s.gap = true
				b[i] = '_'
				return len(b)
			}
			b[i] = '_'
			if i+1 < len(b) {
				b[i+1] = '_'
			}
			i += 2
		default:
			b[i] = '_'
			i++
		}
	}
	return len(b)
}

// char steps over a character literal, or over the prime of a name.
func char(raw string, b []byte, i int) int {
	if before, _ := utf8.DecodeLastRuneInString(raw[:i]); i > 0 && (unicode.IsLetter(before) || unicode.IsDigit(before) || before == '_' || before == '\'') {
		return i + 1
	}
	rest := raw[i+1:]
	if strings.HasPrefix(rest, `\`) {
		if end := strings.IndexByte(rest[min(2, len(rest)):], '\''); end >= 0 && end < 12 {
			return i + 1 + min(2, len(rest)) + end + 1
		}
		return i + 1
	}
	_, n := utf8.DecodeRuneInString(rest)
	if strings.HasPrefix(rest[n:], "'") && n > 0 {
		for k := i + 1; k < i+1+n; k++ {
			b[k] = '_'
		}
		return i + 1 + n + 1
	}
	return i + 1
}

// tokens splits code into at most max words, operators and brackets.
func tokens(lines []line, max int) []string {
	var out []string
	for _, l := range lines {
		s := l.text
		for len(s) > 0 && len(out) < max {
			r, n := utf8.DecodeRuneInString(s)
			switch {
			case unicode.IsSpace(r):
				s = s[n:]
				continue
			case unicode.IsLetter(r) || r == '_' || unicode.IsDigit(r):
				n = len(s) - len(strings.TrimLeftFunc(s, func(r rune) bool {
					return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '\'' || r == '.' || r == '#'
				}))
			case r == '`':
				if end := strings.IndexByte(s[1:], '`'); end > 0 {
					n = end + 2
				}
			case r == '"':
				if end := strings.IndexByte(s[1:], '"'); end >= 0 {
					n = end + 2
				}
			case isSymbol(r) && !strings.ContainsRune("()[]{},;", r):
				n = len(s) - len(strings.TrimLeftFunc(s, isSymbol))
			}
			out = append(out, s[:n])
			s = s[n:]
		}
	}
	return out
}

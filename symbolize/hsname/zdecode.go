package hsname

import (
	"strings"
	"unicode/utf8"
)

var zUpper = [256]byte{'L': '(', 'R': ')', 'M': '[', 'N': ']', 'C': ':', 'Z': 'Z'}

var zLower = [256]byte{
	'a': '&', 'b': '|', 'c': '^', 'd': '$', 'e': '=', 'g': '>', 'h': '#', 'i': '.', 'l': '<', 'm': '-',
	'n': '!', 'p': '+', 'q': '\'', 'r': '\\', 's': '/', 't': '*', 'u': '_', 'v': '%', 'z': 'z',
}

// maxTuple bounds the arity written out for an encoded tuple. GHC stops at 64.
const maxTuple = 64

// Decode undoes GHC's Z-encoding. It reports false, and returns s as it is,
// when s is no encoding of anything.
func Decode(s string) (string, bool) {
	if !strings.ContainsAny(s, "zZ") {
		return s, true
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		c := s[i]
		if c != 'z' && c != 'Z' {
			b.WriteByte(c)
			i++
			continue
		}
		if i+1 >= len(s) {
			return s, false
		}
		d := s[i+1]
		switch {
		case c == 'Z' && zUpper[d] != 0:
			b.WriteByte(zUpper[d])
			i += 2
		case c == 'z' && zLower[d] != 0:
			b.WriteByte(zLower[d])
			i += 2
		case d >= '0' && d <= '9':
			var n int
			var ok bool
			if c == 'Z' {
				n, ok = tuple(&b, s[i+1:])
			} else {
				n, ok = codePoint(&b, s[i+1:])
			}
			if !ok {
				return s, false
			}
			i += 1 + n
		default:
			return s, false
		}
	}
	return b.String(), true
}

// tuple decodes what follows the Z of "Z3T" (,,) and "Z2H" (#,#).
func tuple(b *strings.Builder, s string) (int, bool) {
	n, i := 0, 0
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if n = n*10 + int(s[i]-'0'); n > maxTuple {
			return 0, false
		}
	}
	if i == len(s) {
		return 0, false
	}
	commas := strings.Repeat(",", max(0, n-1))
	switch {
	case s[i] == 'T' && n == 0:
		b.WriteString("()")
	case s[i] == 'T' && n > 1:
		b.WriteString("(" + commas + ")")
	case s[i] == 'H' && n == 1:
		b.WriteString("(# #)")
	case s[i] == 'H' && n > 1:
		b.WriteString("(#" + commas + "#)")
	default:
		return 0, false
	}
	return i + 1, true
}

// codePoint decodes what follows the z of "z3b1U": hexadecimal digits that
// begin with a decimal one, up to U.
func codePoint(b *strings.Builder, s string) (int, bool) {
	r := rune(0)
	for i := 0; i < len(s) && i < 8; i++ {
		var v rune
		switch c := s[i]; {
		case c == 'U':
			if !utf8.ValidRune(r) {
				return 0, false
			}
			b.WriteRune(r)
			return i + 1, true
		case c >= '0' && c <= '9':
			v = rune(c - '0')
		case c >= 'a' && c <= 'f':
			v = rune(c-'a') + 10
		default:
			return 0, false
		}
		if r = r<<4 | v; r > utf8.MaxRune {
			return 0, false
		}
	}
	return 0, false
}

// Encode is GHC's Z-encoding, the inverse of Decode for names that are not
// tuples.
func Encode(s string) string {
	if n, ok := encodeTuple(s); ok {
		return n
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == 'z':
			b.WriteString("zz")
		case r == 'Z':
			b.WriteString("ZZ")
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			b.WriteRune(r)
		case r >= '0' && r <= '9':
			if i == 0 { // a leading digit would read as a tuple's or code point's
				writeCodePoint(&b, r)
			} else {
				b.WriteRune(r)
			}
		default:
			writeSymbol(&b, r)
		}
	}
	return b.String()
}

func writeSymbol(b *strings.Builder, r rune) {
	for c, d := range zUpper {
		if d != 0 && rune(d) == r {
			b.WriteByte('Z')
			b.WriteByte(byte(c))
			return
		}
	}
	for c, d := range zLower {
		if d != 0 && rune(d) == r {
			b.WriteByte('z')
			b.WriteByte(byte(c))
			return
		}
	}
	writeCodePoint(b, r)
}

func writeCodePoint(b *strings.Builder, r rune) {
	const digits = "0123456789abcdef"
	var hex []byte
	for v := uint32(r); v > 0 || hex == nil; v >>= 4 {
		hex = append([]byte{digits[v&15]}, hex...)
	}
	b.WriteByte('z')
	if hex[0] > '9' {
		b.WriteByte('0')
	}
	b.Write(hex)
	b.WriteByte('U')
}

func encodeTuple(s string) (string, bool) {
	switch s {
	case "()":
		return "Z0T", true
	case "(# #)":
		return "Z1H", true
	}
	for _, t := range []struct{ open, close, kind string }{{"(#", "#)", "H"}, {"(", ")", "T"}} {
		in, ok := strings.CutPrefix(s, t.open)
		if !ok {
			continue
		}
		in, ok = strings.CutSuffix(in, t.close)
		if ok && in != "" && strings.Trim(in, ",") == "" && len(in) < maxTuple {
			n := len(in) + 1
			return "Z" + itoa(n) + t.kind, true
		}
	}
	return "", false
}

func itoa(n int) string {
	if n >= 10 {
		return itoa(n/10) + string(rune('0'+n%10))
	}
	return string(rune('0' + n))
}

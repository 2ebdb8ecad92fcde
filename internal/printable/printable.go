// Package printable makes text safe for terminals and file names. Names, paths and messages
// come from profiled programs; they must not move a terminal's cursor, change its modes,
// reorder text, or look like a line of our own.
//
// The commands print through a [Writer], so that all printing is safe by construction.
package printable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Mark replaces what is not printable.
const Mark = '\uFFFD'

// Rune reports whether r may be sent to a terminal: no controls, no formatting characters
// (bidirectional overrides, joiners, tags), no private use, no surrogates or unassigned.
func Rune(r rune) bool { return unicode.IsPrint(r) || unicode.Is(unicode.Zs, r) }

// Line returns s as one line: everything unprintable, including line ends, becomes a mark.
func Line(s string) string { return strings.Map(marked, s) }

func marked(r rune) rune {
	if r == '\t' || Rune(r) {
		return r
	}
	return Mark
}

// maxName limits a name, in bytes; with a suffix it stays below the 255 bytes that file
// systems allow.
const maxName = 200

// Name returns s as a part of a file name: printable, without slash, leading dash or dot,
// and not empty.
func Name(s string) string {
	var b strings.Builder
	for _, r := range s {
		if b.Len()+utf8.RuneLen(r) > maxName {
			break
		}
		if r == '/' || r == utf8.RuneError || !Rune(r) || b.Len() == 0 && (r == '-' || r == '.') {
			r = '_'
		}
		b.WriteRune(r)
	}
	if b.Len() == 0 {
		return "_"
	}
	return b.String()
}

// JSON writes one document, indented, with everything unprintable escaped: a terminal
// interprets nothing in it, and names are preserved.
func JSON(w io.Writer, v any, indent string) error {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("encode JSON: %w", err)
	}
	_, err := w.Write(escape(buf.Bytes()))
	return err
}

// escape escapes characters that JSON allows in strings and terminals interpret: DEL, the
// C1 controls, bidirectional overrides and the like. Outside strings a document has none
// of them but newlines.
func escape(doc []byte) []byte {
	if ascii(doc) {
		return doc
	}
	out := make([]byte, 0, len(doc)+len(doc)/16)
	for i := 0; i < len(doc); {
		r, n := utf8.DecodeRune(doc[i:])
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out = append(out, doc[i:i+n]...)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		i += n
	}
	return out
}

// ascii reports whether b is printable ASCII, tabs and line ends.
func ascii(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

package printable

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

const hostile = "a\x1b]0;owned\x07b\x1b[2J\r\u009b31m\x9b\u202ec\x7f\u200bd\xff"

// The Writer replaces what is not printable by marks.
func TestWriterMarksWhatIsNotPrintable(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain\n\ttext λ 日本\n", "plain\n\ttext λ 日本\n"},
		{hostile, "a\uFFFD]0;owned\uFFFDb\uFFFD[2J\uFFFD\uFFFD31m\uFFFD\uFFFDc\uFFFD\uFFFDd\uFFFD"},
		{"\x1b[31mred\x1b[0m", "\uFFFD[31mred\uFFFD[0m"},
	} {
		var out bytes.Buffer
		if n, err := NewWriter(&out).Write([]byte(c.in)); n != len(c.in) || err != nil || out.String() != c.want {
			t.Errorf("%q: %d, %v, %q, want %q", c.in, n, err, out.String(), c.want)
		}
	}
}

// The only escape sequences that pass are those that style text, if the Writer allows them.
func TestWriterPassesStyles(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[1;38:5:4mx\x1b[m":                 "\x1b[1;38:5:4mx\x1b[m",
		"\x1b[2Jx":                              "\uFFFD[2Jx",
		"\x1b]0;t\x07x":                         "\uFFFD]0;t\uFFFDx",
		"\x1b\x1b[1mx":                          "\uFFFD\x1b[1mx",
		"\x1b[" + strings.Repeat("1", 99) + "m": "\uFFFD[" + strings.Repeat("1", 99) + "m",
	} {
		var out bytes.Buffer
		w := NewWriter(&out)
		w.AllowStyles()
		for i := range len(in) { // in pieces, as a buffer may cut them
			w.Write([]byte{in[i]})
		}
		if out.String() != want {
			t.Errorf("%q: %q, want %q", in, out.String(), want)
		}
	}
}

// Name returns a safe, non-empty part of a file name of limited length.
func TestName(t *testing.T) {
	for in, want := range map[string]string{
		"prog": "prog", "": "_", "-rf": "_rf", ".hidden": "_hidden", "a b": "a b", "a/b": "a_b", "λ": "λ",
		"a\x1b[2J\n\u202eb\xff": "a_[2J__b_",
	} {
		if got := Name(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := Name(strings.Repeat("日", 200)); len(got) > maxName || !utf8.ValidString(got) {
		t.Errorf("%d bytes", len(got))
	}
}

// A JSON document preserves names and has nothing that a terminal interprets.
func TestJSON(t *testing.T) {
	var out bytes.Buffer
	in := strings.ToValidUTF8(hostile, "?") + "\U000e0041"
	if err := JSON(&out, in, "  "); err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != in {
		t.Errorf("%q, %v, want %q", back, err, in)
	}
	if s := strings.TrimSuffix(out.String(), "\n"); Line(s) != s {
		t.Errorf("%q", s)
	}
}

// What the Writer prints is printable UTF-8 and does not depend on how the input is split.
func FuzzWriter(f *testing.F) {
	f.Add(hostile, 3, false)
	f.Add("\x1b[1mx\x1b[0m\x1b[K", 2, true)
	f.Fuzz(func(t *testing.T, in string, cut int, styles bool) {
		var whole, pieces bytes.Buffer
		a, b := NewWriter(&whole), NewWriter(&pieces)
		if styles {
			a.AllowStyles()
			b.AllowStyles()
		}
		a.Write([]byte(in))
		cut = min(max(cut, 0), len(in))
		b.Write([]byte(in[:cut]))
		b.Write([]byte(in[cut:]))
		if whole.String() != pieces.String() {
			t.Fatalf("%q as a whole, %q in two pieces", whole.String(), pieces.String())
		}
		if !utf8.Valid(whole.Bytes()) {
			t.Fatalf("%q is no UTF-8", whole.String())
		}
		for i, r := range whole.String() {
			switch {
			case r == '\n' || marked(r) == r:
			case styles && r == '\x1b' && style(whole.Bytes()[i:]) > 0:
			default:
				t.Fatalf("%U in %q", r, whole.String())
			}
		}
	})
}

package safe

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

func TestString(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "go (x:xs) = x", "go (x:xs) = x"},
		{"escape sequence", "a\x1b[2Jb", "a\uFFFD[2Jb"},
		{"title", "\x1b]0;owned\x07", "\uFFFD]0;owned\uFFFD"},
		{"c1 csi", "a\u009b31mb", "a\uFFFD31mb"},
		{"raw c1", "a\x9b31mb", "a\uFFFD31mb"},
		{"delete", "a\x7fb", "a\uFFFDb"},
		{"line ends", "a\r\nb", "a\uFFFD\uFFFDb"},
		{"bidi", "a\u202eb", "a\uFFFDb"},
		{"zero width", "a\u200bb", "a\uFFFDb"},
		{"invalid", "\xff\xfeb", "\uFFFD\uFFFDb"},
		{"cut rune", "a\xe2\x82", "a\uFFFD"},
		{"joined", "👩\u200d👧b", "👩\uFFFDb"},
		{"tab", "a\tb", "a       b"},
		{"tab after wide", "日\tb", "日      b"},
		{"tab before wide", "\t日", "        日"},
		{"primes and greek", "λx′", "λx′"},
		{"combining", "e\u0301", "e\u0301"},
		{"line separator", "a\u2028b", "a\uFFFDb"},
	} {
		if got := String(c.in); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestStringBoundsLength(t *testing.T) {
	got := String(strings.Repeat("λ", MaxText))
	if len(got) > MaxText+len("…") || !strings.HasSuffix(got, "…") {
		t.Errorf("%d bytes, ends %q", len(got), got[len(got)-6:])
	}
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[31m", "日本\t語", "e\u0301\u0301", "👩‍👩‍👧", "🇩🇪🇩", "\xff\xc0", "a\u202e\u2066", "\u0301x", "☺\ufe0f", "क्षि"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var out strings.Builder
		width, last := 0, -1
		Expand(s, func(at int, text string, w int) {
			if at <= last || w <= 0 || text == "" {
				t.Fatalf("cluster %q of width %d at %d after %d", text, w, at, last)
			}
			last = at
			if ansi.StringWidth(text) != w || ansi.StringWidthWc(text) != w {
				t.Fatalf("%q: width %d, terminals say %d and %d", text, w, ansi.StringWidth(text), ansi.StringWidthWc(text))
			}
			width += w
			out.WriteString(text)
		})
		got := out.String()
		if !utf8.ValidString(got) {
			t.Fatalf("invalid UTF-8: %q", got)
		}
		for _, r := range got {
			if r < ' ' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("control character %U in %q", r, got)
			}
		}
		if ansi.Strip(got) != got {
			t.Fatalf("escape sequence in %q", got)
		}
		if ansi.StringWidth(got) != width || ansi.StringWidthWc(got) != width {
			t.Fatalf("%q: %d columns in pieces, %d or %d as a whole", got, width, ansi.StringWidth(got), ansi.StringWidthWc(got))
		}
		if Width(s) != width {
			t.Fatalf("Width = %d, sum of clusters %d", Width(s), width)
		}
	})
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		s     string
		width int
		want  string
	}{
		{"Main.loop", 9, "Main.loop"},
		{"Text.Pandoc.Readers.Markdown", 12, "Text.…rkdown"},
		{"Main.loop", 2, "…p"},
		{"Main.loop", 1, "…"},
		{"Main.loop", 0, ""},
		{"ab\x1bcdefgh", 5, "ab…gh"},
		{"日本語のモジュール", 7, "日…ル"}, // a wide character is left out rather than halved
	} {
		if got := Fit(c.s, c.width, "…"); got != c.want || Width(got) > c.width {
			t.Errorf("Fit(%q, %d) = %q, want %q", c.s, c.width, got, c.want)
		}
	}
	if got := Fit("Main.loop", 1, ".."); got != "." {
		t.Errorf("a mark of two columns in one is %q", got)
	}
}

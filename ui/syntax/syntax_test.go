package syntax

import (
	"strings"
	"testing"
)

// picture writes each byte of the lines as the letter of its kind.
func picture(name, text string) string {
	lines, tokens := Lines(name, text)
	var b strings.Builder
	for i, l := range lines {
		for j := range len(l) {
			if l[j] == ' ' {
				b.WriteByte(' ')
				continue
			}
			b.WriteByte(".ktsnco#"[At(tokens[i], j)])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestLines(t *testing.T) {
	for _, c := range []struct{ file, text, want string }{
		{"A.hs", "module A where\n-- note\nf x = let y = \"s\" in 12\n", "" +
			"kkkkkk t kkkkk\n" +
			"cc cccc\n" +
			". . o kkk . o sss kk nn\n"},
		{"A.hs", "{- a\nb -}\r\nx", "cc c\nc cc\n.\n"},
		{"A.lhs", "Prose.\n\n> x = 1\n\\begin{code}\ny = 2\n\\end{code}\n", "" +
			"cccccc\n\n. . o n\ncccccccccccc\n. o n\ncccccccccc\n"},
		{"A.hs", "{-# LANGUAGE CPP #-}\n#if 1\n{- a {- b -} c -} d' 'e' '\\n' '\\'' x# Map.K -->\n", "" +
			"### ######## ### ###\n" +
			"### #\n" +
			"cc c cc c cc c cc .. sss ssss ssss .. tttot ooo\n"},
		{"a.c", "#define A \\\n 1\nint f(void) { /* a\nb */ return 'x' + 0x1f; } // c\n", "" +
			"####### # #\n #\n" +
			"ttt ..tttt. . cc c\n" +
			"c cc kkkkkk sss o nnnn. . cc c\n"},
		{"a.cpp", "class A { }; /* /* */ B\n", "kkkkk . . .. cc cc cc .\n"},
		{"a.rs", "fn f<'a>(x: &'a str) {} /* /* */ */ b\n", "kk .o..o..o o.. ttt. .. cc cc cc cc .\n"},
		{"A.txt", "let x", "... .\n"},
		{"A.hs", "", ""},
	} {
		got := picture(c.file, c.text)
		if got != c.want {
			t.Errorf("%s %q:\n%swant\n%s", c.file, c.text, got, c.want)
		}
	}
}

// Whatever the lexer does with odd input, lines stay as they are.
func FuzzLines(f *testing.F) {
	f.Add("A.hs", "f = \"unterminated\n'\\\n{- {- -}")
	f.Add("A.lhs", "> x\n\\begin{code}\n")
	f.Add("A.hs", "\xff\x00\n\t#")
	f.Fuzz(func(t *testing.T, name, text string) {
		lines, tokens := Lines(name, text)
		if len(lines) != len(tokens) {
			t.Fatalf("%d lines, %d token lists", len(lines), len(tokens))
		}
		for i, ts := range tokens {
			last := -1
			for _, tok := range ts {
				if tok.Start <= last || tok.Start >= len(lines[i]) {
					t.Fatalf("line %d %q: token at %d after %d", i+1, lines[i], tok.Start, last)
				}
				last = tok.Start
			}
		}
	})
}

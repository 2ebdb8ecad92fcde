package coredump

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// show prints a dump's bindings, and under each the beginning and the end of
// what its notes scope over.
func show(bs []Binding) string {
	var out strings.Builder
	for _, b := range bs {
		fmt.Fprintf(&out, "%d %s", b.Line, b.Name)
		if u := b.Unique(); u != "" {
			fmt.Fprintf(&out, " (%s)", u)
		}
		if b.Rec {
			out.WriteString(" rec")
		}
		out.WriteString("\n")
		for _, n := range Notes(b.Text, 1<<20) {
			scope := strings.Join(strings.Fields(cut(b.Text, n)), " ")
			if r := []rune(scope); len(r) > 60 {
				scope = string(r[:30]) + " … " + string(r[len(r)-27:])
			}
			fmt.Fprintf(&out, "\t%s\t%d:%d-%d:%d\t%s\n", n.Location, n.Line, n.Col, n.EndLine, n.EndCol, scope)
		}
	}
	return out.String()
}

// cut is the text that a note scopes over.
func cut(text string, n Note) string {
	lines := strings.Split(text, "\n")
	if n.EndLine < n.Line || int(n.EndLine) > len(lines) {
		return fmt.Sprintf("(beyond the text: %+v)", n)
	}
	var out []string
	for i := n.Line; i <= n.EndLine; i++ {
		l := []rune(lines[i-1])
		from, to := 0, len(l)
		if i == n.Line {
			from = int(n.Col) - 1
		}
		if i == n.EndLine {
			to = int(n.EndCol) - 1
		}
		if from > to || to > len(l) {
			return fmt.Sprintf("(beyond line %d: %+v)", i, n)
		}
		out = append(out, string(l[from:to]))
	}
	return strings.Join(out, "\n")
}

// Shapes.hs's dumps by three GHCs, and once with types and all; the golden
// files were read through.
func TestGolden(t *testing.T) {
	dumps, err := filepath.Glob("testdata/*.dump-simpl")
	if err != nil || len(dumps) < 4 {
		t.Fatalf("dumps: %v, %v", dumps, err)
	}
	for _, name := range dumps {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		bs, err := Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		check(t, string(text), bs)
		golden, got := strings.TrimSuffix(name, ".dump-simpl")+".txt", show(bs)
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s reads differently from %s:\n%s", name, golden, got)
		}
	}
}

// check holds what is true of every dump: texts are the dump's at their lines,
// and of the notes in a text two either nest or follow each other.
func check(t *testing.T, dump string, bs []Binding) {
	t.Helper()
	starts := []int{0}
	for i := range len(dump) {
		if dump[i] == '\n' {
			starts = append(starts, i+1)
		}
	}
	last := 0
	for _, b := range bs {
		if b.Line <= last || b.Name == "" || !strings.HasPrefix(dump[starts[b.Line-1]:], b.Text) || !strings.HasPrefix(b.Text, b.Name) {
			t.Fatalf("binding %q at line %d after %d: %.100q", b.Name, b.Line, last, b.Text)
		}
		last = b.Line
		widths := []uint32{}
		for l := range strings.SplitSeq(b.Text, "\n") {
			n := uint32(0)
			for _, c := range []byte(l) {
				if c&0xc0 != 0x80 {
					n++
				}
			}
			widths = append(widths, n)
		}
		within := func(line, col uint32) bool {
			return line >= 1 && int(line) <= len(widths) && col >= 1 && col <= widths[line-1]+1
		}
		var open []Note
		for _, n := range Notes(b.Text, 1<<20) {
			if before(n.EndLine, n.EndCol, n.Line, n.Col) || !within(n.Line, n.Col) || !within(n.EndLine, n.EndCol) {
				t.Fatalf("%s: note %+v", b.Name, n)
			}
			for len(open) > 0 && !before(n.Line, n.Col, open[len(open)-1].EndLine, open[len(open)-1].EndCol) {
				open = open[:len(open)-1]
			}
			if len(open) > 0 && before(open[len(open)-1].EndLine, open[len(open)-1].EndCol, n.EndLine, n.EndCol) {
				t.Fatalf("%s: %+v reaches out of %+v", b.Name, n, open[len(open)-1])
			}
			open = append(open, n)
		}
	}
}

func before(l1, c1, l2, c2 uint32) bool { return l1 < l2 || l1 == l2 && c1 < c2 }

// Every note of a dump is found, and the text of none is broken off in the
// midst of brackets.
func TestNotesAreWhole(t *testing.T) {
	dumps, _ := filepath.Glob("testdata/*.dump-simpl")
	for _, name := range dumps {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		bs, err := Parse(string(text))
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, b := range bs {
			notes := Notes(b.Text, 1<<20)
			found += len(notes)
			for _, n := range notes {
				s := cut(b.Text, n)
				for _, pair := range []string{"()", "{}", "[]"} {
					// Shapes.hs has one '(' each in literals that are read through here.
					s := strings.NewReplacer(`'('`, "", `\"("#`, "").Replace(s)
					if strings.Count(s, pair[:1]) != strings.Count(s, pair[1:]) {
						t.Errorf("%s: %s: %s scopes over %q", name, b.Name, n.Location, s)
					}
				}
			}
		}
		// One more stands in a string of the program's; and without -dsuppress-all
		// three in the properties of bindings.
		want := strings.Count(string(text), "src<") - 1
		if strings.Contains(name, "full") {
			want -= 3
		}
		if found != want || want < 20 {
			t.Errorf("%s: %d notes of %d", name, found, want)
		}
	}
}

// Text that is no dump of Core is refused.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"", "module Main where\nmain = print 1\n", "\x7fELF"} {
		if _, err := Parse(text); !errors.Is(err, ErrNoCore) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

// Any text gives bindings or an error.
func FuzzDump(f *testing.F) {
	dumps, _ := filepath.Glob("testdata/*.dump-simpl")
	for _, name := range dumps {
		if text, err := os.ReadFile(name); err == nil {
			f.Add(string(text[:min(len(text), 6000)]))
		}
	}
	f.Add("= Tidy Core =\n====================" + title + "\nf = src<a:1:1> src<b:2:2> case src<c:3:3> x of { 'a' -> \"\\\"\"; _ -> in }\n g")
	f.Add("====================" + title + "\nf = (src<a:1:1> " + strings.Repeat("[src<(", 100) + "\n" + strings.Repeat(" src<x>\n", 50))
	f.Fuzz(func(t *testing.T, text string) {
		bs, err := Parse(text)
		if (err == nil) != strings.Contains(text, title) || err != nil && bs != nil {
			t.Fatalf("%d bindings, %v", len(bs), err)
		}
		check(t, text, bs)
	})
}

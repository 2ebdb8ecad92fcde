package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// The documentation's pictures are what the viewer shows. One that is to change is drawn anew by
// go run ./scripts/pictures.
func TestPictures(t *testing.T) {
	testprog.NeedTool(t, "tmux", "tmux")
	tapes, err := filepath.Glob("../../docs/viewer/tapes/*.tape")
	if err != nil || len(tapes) == 0 {
		t.Fatalf("%d tapes: %v", len(tapes), err)
	}
	if err := run(true, "", "", tapes); err != nil {
		t.Error(err)
	}
}

// A picture that differs is found.
func TestBlock(t *testing.T) {
	text := "a\n<!-- picture: one -->\n```\n screen\n```\nb\n"
	from, to, err := block(text, "one")
	if err != nil || text[from:to] != " screen\n" {
		t.Errorf("%q, %v", text[from:to], err)
	}
	if _, _, err := block(text, "two"); err == nil {
		t.Error("a picture that is not there was found")
	}
}

// A line of a tape that is not understood is refused with its place.
func TestReadTape(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.tape")
	for text, want := range map[string]string{
		"# a\nlog x\n\nsize 80 24\nkeys / a Enter\n": "",
		"log\n":              ":1: not understood",
		"log x\nsize 80\n":   ":2: not understood",
		"log x\npress q\n":   ":2: not understood",
		"picture doc.md\n":   ":1: not understood",
		"gallery a b\nlog x": ":1: not understood",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readTape(path)
		switch {
		case want == "" && (err != nil || len(got) != 3 || got[2].rest != "/ a Enter"):
			t.Errorf("%q: %v, %v", text, got, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Escape codes become spans of one style, which lasts beyond the line.
func TestSpans(t *testing.T) {
	var st style
	got := spans("a\x1b[1;38;2;1;2;255mbc\x1b[48;5;196m d\x1b[0me", &st)
	want := []span{
		{style{}, 0, "a"}, {style{bold: true, fg: "#0102ff"}, 1, "bc"},
		{style{bold: true, fg: "#0102ff", bg: "#ff0000"}, 3, " d"}, {style{}, 5, "e"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	spans("\x1b[31;7mx", &st)
	if got := spans("y", &st); got[0].style != (style{fg: "#cd0000", reverse: true}) {
		t.Errorf("on the next line: %+v", got)
	}
	svg := string(render("\x1b[31m<a>&\x1b[0m\n", 10, 1, "dark"))
	if !strings.Contains(svg, `fill="#cd0000">&lt;a&gt;&amp;</text>`) {
		t.Error(svg)
	}
}

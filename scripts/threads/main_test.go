package main

import (
	"strings"
	"testing"
)

// What is between the marks of a name is replaced, and nothing else.
func TestBetween(t *testing.T) {
	doc := "a\n<!-- x -->\n\nold\n\n<!-- end of x -->\nb\n"
	got, err := between(doc, "x", "new\n")
	if want := "a\n<!-- x -->\n\nnew\n\n<!-- end of x -->\nb\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"a\n", "<!-- x -->\n", "<!-- end of x -->\n<!-- x -->\n"} {
		if got, err := between(bad, "x", "new"); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}

// Lines are broken at spaces, and only those that are too long.
func TestFolded(t *testing.T) {
	word := strings.Repeat("ä", 50)
	got := folded("a  \n" + word + " " + word + " " + word + "\n\n")
	if want := "a\n" + word + " " + word + "\n" + word + "\n"; got != want {
		t.Errorf("%q", got)
	}
	if long := strings.Repeat("x", 2*width); folded(long) != long+"\n" {
		t.Error("a word was broken")
	}
}

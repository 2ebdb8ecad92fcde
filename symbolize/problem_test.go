package symbolize

import (
	"slices"
	"testing"
)

func TestProblemsByReason(t *testing.T) {
	got := Lines([]Problem{
		{"/lib/a.so", "stripped"}, {"", "no kernel symbols"}, {"/lib/b.so", "stripped"}, {"/bin/p", "malformed"}, {"/lib/c.so", "stripped"},
		{"/lib/d.so", "old"}, {"/lib/e.so", "old"}, {"/lib/f.so", "stripped"},
	})
	want := []string{
		"/lib/a.so, b.so and 2 other files: stripped",
		"no kernel symbols",
		"/bin/p: malformed",
		"/lib/d.so and /lib/e.so: old",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

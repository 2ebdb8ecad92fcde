package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Both marks are read, and one alone is an error.
func TestReadMarks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	for text, whole := range map[string]bool{
		"begin 100 1 2 30 40\nend 200 5 6 70 80\n": true,
		"begin 100 1 2 30 40\n":                    false,
		"begin 100\n":                              false,
		"":                                         false,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		first, last, err := readMarks(path)
		if (err == nil) != whole {
			t.Errorf("%q: %v", text, err)
		}
		if whole && (first != moment{100, 1, 2, 30, 40} || last != moment{200, 5, 6, 70, 80}) {
			t.Errorf("%q was read as %+v and %+v", text, first, last)
		}
	}
}

// Package elftest opens ELF files for tests.
package elftest

import (
	"os"
	"testing"

	"ccagent/symbolize/elffile"
)

// Open opens a file until the end of the test.
func Open(tb testing.TB, path string) *elffile.File {
	tb.Helper()
	file, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { file.Close() })
	info, err := file.Stat()
	if err != nil {
		tb.Fatal(err)
	}
	f, err := elffile.Open(file, info.Size())
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

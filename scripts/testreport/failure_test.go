package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A failure's summary has the errors and not what was only logged, and keeps both ends of a
// long output.
func TestFailure(t *testing.T) {
	dir := t.TempDir()
	source := "package x\nt.Logf(\"a\")\nt.Errorf(\"b\")\n\tcheck(t)\n"
	if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	printed := "=== RUN   TestA\n    x_test.go:2: logged\n        and more\n    x_test.go:3: wrong\n        by far\n" +
		"    x_test.go:4: of a helper\n    none_test.go:9: unknown\n    x_test.go:2: again\nfrom the program\n--- FAIL: TestA (0.00s)\n"
	want := []string{"    x_test.go:3: wrong", "        by far", "    x_test.go:4: of a helper", "    none_test.go:9: unknown", "from the program"}
	if got := failure(dir, printed); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	var long strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&long, "%d %s\n", i, strings.Repeat("x", 10_000))
	}
	got := failure(dir, long.String())
	if n := len(got); n != summaryLines+1 || !strings.HasPrefix(got[0], "0 x") || !strings.HasPrefix(got[n-1], "999 x") || len(got[0]) != summaryWidth {
		t.Errorf("%d lines, from %.20q to %.20q", n, got[0], got[n-1])
	}
}

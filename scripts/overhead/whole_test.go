package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A program says on a line of its own what CPU time it has used; what else is on standard error does not matter.
func TestWholeRun(t *testing.T) {
	got, err := wholeRun([]string{"sh", "-c", "echo a note of 7 ms >&2; echo 1500000 >&2; echo . "})
	if err != nil || got.CPU != 1500*time.Microsecond || got.Pieces != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := wholeRun([]string{"sh", "-c", "echo none >&2"}); err == nil {
		t.Error("no error of a program that does not say it")
	}
	if _, err := wholeRun([]string{"sh", "-c", "echo 1500000 >&2; exit 3"}); err == nil {
		t.Error("no error of a program that fails")
	}
}

// Runs without a capture in turns show what the method resolves; the first turn is not counted.
func TestWholeRunsBlank(t *testing.T) {
	out := filepath.Join(t.TempDir(), "turns")
	o := options{rounds: 6, out: out, flags: []string{""}, blank: true, ccagent: "/nowhere", argv: []string{"sh", "-c", "echo 2000000 >&2"}}
	if err := wholeRuns(&o); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := printReported(&table, out); err != nil {
		t.Fatal(err)
	}
	if want := "| `nothing captured` | 6 | +0.00 % [+0.00, +0.00] | 0.00 % | | |"; !strings.Contains(table.String(), want) {
		t.Errorf("no %q in\n%s", want, table.String())
	}
}

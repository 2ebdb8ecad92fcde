package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What pieces cost more is a part of all that the program takes while the capture lasts.
func TestReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "turns")
	// 10 pieces of 100 ms alone; 20 that took 18 ms more, in a stretch of which 1.8 s were captured.
	line := `{"Program":"p 1","Flags":"-e x","Alone":{"CPU":1000000000,"Wall":1000000000,"Pieces":10},` +
		`"With":{"CPU":2018000000,"Wall":2018000000,"Pieces":20},"Reported":0.008,"Captured":1800000000}` + "\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 7)), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printReported(&out, path); err != nil {
		t.Fatal(err)
	}
	if want := "| p 1 | `-e x` | 7 | +1.00 % [+1.00, +1.00] | 0.80 % | -0.20 | -20 % |\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("no %q in\n%s", want, out.String())
	}
}

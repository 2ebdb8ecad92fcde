package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rounds")
	var lines string
	for _, program := range []string{"p 1", "x n-body 9"} {
		for range 6 {
			lines += `{"Program":"` + program + `","Flags":["-e x"],"Alone":{"CPU":1000000000},"Bare":{"CPU":1020000000},"With":[{"CPU":1010000000}],"Agent":[500000000]}` + "\n"
		}
	}
	if err := os.WriteFile(path, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := printTable(&out, path); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| Program | Alone | Bare event | `-e x` | Agent | Published: cycles, alloc |\n|---|--:|--:|--:|--:|--:|\n",
		"| p 1 | 1.0 s | +2.00 % [+2.00, +2.00] | +1.00 % [+1.00, +1.00] | 0.50 s | |\n",
		"| x n-body 9 | 1.0 s | +2.00 % [+2.00, +2.00] | +1.00 % [+1.00, +1.00] | 0.50 s | +10.7 %, +0.0 % |\n",
		"| geometric mean | | +2.00 % | +1.00 % | | |\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

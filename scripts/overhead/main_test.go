package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// signRank gives the ranks in tables of the sign test.
func TestSignRank(t *testing.T) {
	for n, want := range map[int]int{6: 0, 8: 0, 9: 1, 10: 1, 12: 2, 15: 3, 20: 5, 30: 9} {
		if got := signRank(n); got != want {
			t.Errorf("signRank(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestInterval(t *testing.T) {
	ratios := []float64{1.03, 1.01, 0.99, 1.02, 1.00, 1.04, 1.05, 1.06, 1.07, 1.08}
	if got, want := interval(ratios), "+3.50 % [+0.00, +7.00]"; got != want {
		t.Errorf("interval = %s, want %s", got, want)
	}
}

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

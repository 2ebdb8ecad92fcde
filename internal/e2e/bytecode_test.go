package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// Bytecode that GHC interprets says so: its frames, by which it waits for compiled code, are (bytecode), in lists and in stacks.
func TestBytecode(t *testing.T) {
	ghc, _ := testprog.GHC(t, "")
	log, r := record(t, []string{"-e", "cpu-clock", "-F", "997", "--max-overhead", "0"}, ghc, "-e", "main",
		filepath.Join(testprog.Source(t, "interpreted"), "Main.hs"))
	if strings.TrimSpace(r.stdout) != "100900" {
		t.Fatalf("it said %q", r.stdout)
	}
	row := hotOf(t, log).element(t, "(bytecode)")
	if row.Inclusive < 0.05 {
		t.Errorf("bytecode: %+v", row)
	}
	below := 0
	for line := range strings.Lines(run(t, command(t, ccview, "stacks", "--folded", log)).stdout) {
		if _, above, ok := strings.Cut(line, ";(bytecode);"); ok && strings.Contains(above, "Data.Map") {
			below++
		}
	}
	if below == 0 {
		t.Error("no stack has code of Data.Map that bytecode has called")
	}
}

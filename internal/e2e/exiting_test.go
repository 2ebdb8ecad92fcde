package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// A process that ends gives its memory up first, and then has no stack that could be read: samples of that time count as such without a Haskell
// stack, with the reason, and not as walks that have failed.
func TestSamplesOfAnExitingProcess(t *testing.T) {
	testprog.NeedRoot(t)
	program := testprog.Build(t, "footprint", testprog.Options{})
	log := filepath.Join(t.TempDir(), "run.eventlog")
	for _, mb := range []string{"1", "300"} { // the first has the call frame information compiled, as compileCalls does
		cmd := command(t, ccagent, "record", "-o", log, "-e", "cpu-clock", "-F", "9999", "--max-overhead", "0", "--", program, "malloc", mb, "rest")
		cmd.Stdin = strings.NewReader("\n")
		if r := run(t, cmd); r.status != 0 {
			t.Fatalf("status %d\n%s", r.status, r.stderr)
		}
	}
	var info struct {
		Stacks struct {
			Failed  int
			Reasons map[string]int
		}
	}
	view(t, &info, "info", log)
	t.Logf("%+v", info.Stacks)
	// 77,000 pages are given up, in some tens of milliseconds.
	if s := info.Stacks; s.Reasons["no-user-context"] < 20 || s.Failed > s.Reasons["no-user-context"]/4 {
		t.Errorf("%+v", s)
	}
}

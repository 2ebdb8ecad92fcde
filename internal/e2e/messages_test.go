package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// A script that executes Haskell is no program that is sampled in C code alone; one that
// executes none is.
func TestScriptsOfHaskell(t *testing.T) {
	const says = "only C code was sampled"
	haskell := testprog.Build(t, "quick", testprog.Options{})
	_, r := record(t, []string{"-e", "cpu-clock"}, "sh", "-c", haskell+"; true")
	if strings.Contains(r.stderr, says) || strings.Contains(r.stderr, "not a Haskell program") {
		t.Errorf("of a script that executes Haskell:\n%s", r.stderr)
	}
	log := filepath.Join(t.TempDir(), "run.eventlog")
	r = run(t, command(t, ccagent, "record", "-e", "cpu-clock", "-o", log, "--", "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"))
	wantLine(t, r.stderr, "is not a Haskell program", says)
}

// When --duration has passed, the result is printed at once, and that the program is waited for.
func TestDurationIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	log := filepath.Join(t.TempDir(), "run.eventlog")
	cmd := command(t, ccagent, "record", "-e", "cpu-clock", "--duration", "2s", "-o", log, "--", "sh", "-c", "i=0; while [ $i -lt 600000 ]; do i=$((i+1)); done; read go; exit 3")
	program, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stderr = said
	text := func() string {
		b, err := os.ReadFile(said.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The program waits for input until that is printed.
	eventually(t, "ccagent says that it waits", func() bool { return strings.HasSuffix(text(), "ccagent waits for its end\n") })
	before := text()
	wantLine(t, before, log)
	program.Close()
	cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 3 {
		t.Errorf("exit status %d, want the program's own 3\n%s", got, text())
	}
	if after := text(); after != before {
		t.Errorf("printed again after the program's end:\n%s", after)
	}
}

// Where the disk is full, what the agent measured is reported nevertheless.
func TestFullDiskCost(t *testing.T) {
	testprog.NeedRoot(t)
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Fatal(err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	haskell := testprog.Build(t, "alloc31", testprog.Options{})
	r := run(t, command(t, ccagent, "record", "-o", filepath.Join(dir, "run.eventlog"), "--", haskell))
	wantLine(t, r.stderr, "no space left on device")
	wantLine(t, r.stderr, "agent:", "ms CPU")
	if strings.Contains(r.stderr, "agent: 0 ms") {
		t.Errorf("the agent took no time:\n%s", r.stderr)
	}
}

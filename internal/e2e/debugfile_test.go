package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// A stripped program is profiled; the binary it was made from, or its debug file, gives the
// names later, even after the program itself was removed.
func TestStrippedProgramIsNamedLater(t *testing.T) {
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	dir := t.TempDir()
	whole := testprog.Build(t, "spin31", testprog.Options{})
	stripped, debug := filepath.Join(dir, "spin31"), filepath.Join(dir, "elsewhere.debug")
	for _, args := range [][]string{{"--strip-all", whole, stripped}, {"--only-keep-debug", whole, debug}} {
		if out, err := exec.Command(objcopy, args...).CombinedOutput(); err != nil {
			t.Fatalf("objcopy %q: %v\n%s", args, err, out)
		}
	}
	log, r := record(t, []string{"-F", "997"}, stripped, "4000")
	wantLine(t, r.stderr, "stripped", "-g3")
	share := func() float64 {
		for _, row := range hotOf(t, log).Rows {
			if row.Element == "Main.three" {
				return row.Share
			}
		}
		return 0
	}
	if s := share(); s != 0 {
		t.Errorf("a stripped program's samples are %.2f Main.three's", s)
	}
	symbolize := func(args ...string) string {
		t.Helper()
		r := run(t, command(t, ccagent, append([]string{"symbolize"}, append(args, log)...)...))
		if r.status != 0 {
			t.Fatalf("ccagent symbolize %q: status %d\n%s", args, r.status, r.stderr)
		}
		return r.stderr
	}
	for _, file := range []string{whole, debug} {
		symbolize("--debug-file", file)
		if s := share(); s < 0.5 {
			t.Errorf("with %s Main.three has %.2f", file, s)
		}
	}
	// Another program's debug file is refused with a message.
	other := testprog.Build(t, "rev", testprog.Options{})
	if out := symbolize("--debug-file", other); !strings.Contains(out, "of no module") || share() != 0 {
		t.Errorf("another program's debug file: Main.three has %.2f\n%s", share(), out)
	}
	if err := os.Remove(stripped); err != nil {
		t.Fatal(err)
	}
	symbolize("--debug-file", debug)
	if s := share(); s < 0.5 {
		t.Errorf("without the program Main.three has %.2f", s)
	}
}

// A stripped program that has the symbols of its functions in .gnu_debugdata, as Fedora's programs do,
// is named by them.
func TestStrippedProgramWithMiniDebug(t *testing.T) {
	objcopy, xz := testprog.NeedTool(t, "objcopy", "binutils"), testprog.NeedTool(t, "xz", "xz-utils")
	whole := testprog.Build(t, "spin31", testprog.Options{})
	dir := t.TempDir()
	mini, stripped := filepath.Join(dir, "mini"), filepath.Join(dir, "spin31")
	for _, argv := range [][]string{
		{objcopy, "--strip-debug", whole, mini}, {xz, "-1", mini}, {objcopy, "--strip-all", "--add-section", ".gnu_debugdata=" + mini + ".xz", whole, stripped},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", argv, err, out)
		}
	}
	log, r := record(t, []string{"-F", "997", "-e", "cpu-clock"}, stripped, "2000")
	for _, row := range hotOf(t, log).Rows {
		if row.Element == "Main.three" && row.Share > 0.5 {
			return
		}
	}
	t.Errorf("Main.three has no large share\n%s", r.stderr)
}

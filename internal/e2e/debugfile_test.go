package e2e

import (
	"math"
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
// is named by them, and probed at them: bytes are those that the run-time system counts.
func TestStrippedProgramWithMiniDebug(t *testing.T) {
	stripped := withMiniDebug(t, testprog.Build(t, "alloc31", testprog.Options{}))
	if doctor := run(t, command(t, ccagent, "doctor", stripped)); !strings.Contains(doctor.stdout, ".gnu_debugdata") {
		t.Errorf("doctor says nothing of them:\n%s", doctor.stdout)
	}
	log, r := record(t, []string{"--max-overhead", "0"}, stripped, "20000", "+RTS", "-s")
	// .gnu_debugdata has the symbols of functions, and none of variables: record says what it needs those for.
	wantLine(t, r.stderr, "event gc leaves out the GC's own figures", "symbol table does not have their place")
	if strings.Contains(r.stderr, "is stripped") || strings.Contains(r.stderr, "no symbol table") {
		t.Errorf("it is said to have no symbols:\n%s", r.stderr)
	}
	var sampled float64
	for _, s := range readLog(t, log).allocations {
		sampled += float64(s.Weight)
	}
	if want := counted(t, "alloc31", r.stderr); math.Abs(sampled/want-1) > 0.01 {
		t.Errorf("%.0f bytes were sampled, the RTS counted %.0f", sampled, want)
	}
	ofMain := 0.0
	for element, share := range allocShares(t, log) {
		if strings.HasPrefix(element, "Main") {
			ofMain += share
		}
	}
	if ofMain < 0.95 {
		t.Errorf("Main has %.3f of the bytes: %v", ofMain, allocShares(t, log))
	}
	log, _ = record(t, []string{"-F", "997", "-e", "cpu-clock"}, withMiniDebug(t, testprog.Build(t, "spin31", testprog.Options{})), "2000")
	for _, row := range hotOf(t, log).Rows {
		if row.Element == "Main.three" && row.Share > 0.5 {
			return
		}
	}
	t.Errorf("Main.three has no large share: %+v", hotOf(t, log).Rows)
}

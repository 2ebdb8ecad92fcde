package doctor

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/internal/ghc"
	"ccagent/internal/testprog"
	"ccagent/symbolize/binary"
)

// examine returns a program's checks by name, and the packages that a remedy was
// asked for, without their versions.
func examine(t *testing.T, path string) (checks map[string]Check, lacking []string) {
	t.Helper()
	all, err := Program(path, func(packages []string) string {
		for _, p := range packages {
			name, version, ok := strings.Cut(p, "-0.")
			if !ok || strings.Contains(version, "-") {
				name = p
			}
			lacking = append(lacking, name)
		}
		return "remedy"
	})
	if err != nil {
		t.Fatal(err)
	}
	checks = map[string]Check{}
	for _, c := range all {
		checks[c.Name] = c
	}
	return checks, lacking
}

// Libraries without notes are named, whether they are linked in or shared; the
// program's own modules are not among them.
func TestLibrariesWithoutNotes(t *testing.T) {
	objcopy := testprog.NeedTool(t, "objcopy", "binutils")
	for _, c := range []struct {
		name  string
		opts  testprog.Options
		notes Status
	}{
		{"static", testprog.Options{}, OK},
		{"dynamic", testprog.Options{Dynamic: true}, OK},
		{"without notes", testprog.Options{NoDebug: true}, Warning},
	} {
		t.Run(c.name, func(t *testing.T) {
			exe := testprog.Build(t, "maps", c.opts)
			checks, lacking := examine(t, exe)
			if got := checks["source notes"]; got.Status != c.notes || (c.notes != OK) != strings.Contains(got.Fix, "ghc-options: -g3") {
				t.Errorf("source notes: %+v", got)
			}
			l := checks["libraries"]
			if l.Status != Warning || l.Fix != "remedy" || !strings.Contains(l.Detail, "containers-0.") {
				t.Errorf("libraries: %+v", l)
			}
			if !slices.Contains(lacking, "containers") || slices.Contains(lacking, "main") {
				t.Errorf("a remedy is asked for %v", lacking)
			}
			if c.opts.Dynamic || c.opts.NoDebug {
				return
			}
			// Linked in, but stripped: no name shows a library.
			stripped := filepath.Join(t.TempDir(), "maps")
			if out, err := exec.Command(objcopy, "--strip-all", exe, stripped).CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if checks, lacking := examine(t, stripped); checks["libraries"].Name != "" || lacking != nil || checks["symbols"].Fix == "" {
				t.Errorf("stripped: %+v, %v", checks, lacking)
			}
		})
	}
}

// Of a release that was never run doctor says what its sources have that those of run releases have not.
func TestWhatIsNewInSources(t *testing.T) {
	for v, want := range map[string]string{
		"9.8.4":  "GHC 9.8.4: read from GHC's sources; never run on amd64",
		"9.12.2": "GHC 9.12.2: read from GHC's sources; never run on amd64. New in the sources: the scheduler waits in awaitCompletedTimeoutsOrIO, no longer in awaitEvent",
		"9.14.1": "GHC 9.14.1: read from GHC's sources; never run on amd64. New in the sources: " +
			"frames that annotate the stack (ANN_FRAME, the 66th type); the scheduler waits in awaitCompletedTimeoutsOrIO, no longer in awaitEvent",
	} {
		if c := version(&binary.Info{GHC: true, GHCVersion: v, Arch: "amd64", Way: "rts_thr"}, ghc.Linked); c.Status != OK || c.Detail != want {
			t.Errorf("%v %q, want %q", c.Status, c.Detail, want)
		}
	}
}

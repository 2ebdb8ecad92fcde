package doctor

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/internal/testprog"
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

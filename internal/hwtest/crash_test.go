package hwtest_test

import (
	"strings"
	"testing"

	"ccagent/internal/hwtest"
)

// A job that crashes the kernel each time fails by name, however often a machine is booted again, and the jobs
// before it have been done once.
func TestCrash(t *testing.T) {
	image := kernel(t, "amd64-5.10")
	files := hwtest.Initramfs{hwtest.Guest: goBuild(t, "amd64", "build", "ccagent/internal/hwtest/guest")}
	results, console, err := hwtest.Machine{Arch: "amd64", Kernel: image}.Run(t.Context(), files, []hwtest.Job{
		{Name: "before", Argv: []string{hwtest.Guest, "read", "/proc/version"}, Seconds: jobSeconds},
		{Name: "crash", Argv: []string{hwtest.Guest, "crash"}, Seconds: jobSeconds},
		{Name: "after", Argv: []string{hwtest.Guest, "read", "/proc/version"}, Seconds: jobSeconds},
	})
	skipWithoutQEMU(t, "amd64", err)
	if err == nil || !strings.Contains(err.Error(), "went down 3 times during job crash") {
		t.Errorf("the error is %v\n%s", err, console)
	}
	if len(results) != 1 || results[0].Name != "before" || !strings.Contains(results[0].Stdout, "Linux version 5.10") {
		t.Errorf("the results are %+v", results)
	}
	if n := strings.Count(console, "Kernel panic - not syncing"); n < 3 {
		t.Errorf("the kernel went down %d times\n%s", n, console)
	}
}

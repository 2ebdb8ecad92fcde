package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"ccagent/internal/testprog"
)

// If the kernel refuses probes, each event that needs them is reported as not available,
// with the remedy, and the other events are recorded; if no event is left, that is an error.
func TestProbesRefused(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "maps", testprog.Options{})
	log := filepath.Join(t.TempDir(), "run.eventlog")
	refused := func(how, events string) *exec.Cmd {
		return restricted(t, how, ccagent, "record", "-e", events, "-o", log, "--", exe, "20000", "4")
	}
	r := run(t, refused("links", "cpu-clock,alloc,gc,threads"))
	if r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	wantLine(t, r.stderr, "gc, threads", "not available", "seccomp", "events that are available go on")
	if s := readStory(t, log); s.probes["gc"].Problem == "" || s.probes["threads"].Problem == "" {
		t.Errorf("the log says nothing of it: %+v", s.probes)
	}
	// Probes without cookies can be attached in the older way.
	if l := readLog(t, log); len(l.samples) == 0 || len(l.allocations) == 0 {
		t.Errorf("%d samples, %d of allocation", len(l.samples), len(l.allocations))
	}
	for _, alone := range []string{"alloc", "gc", "threads"} {
		if r := run(t, refused("links and attaching by ioctl", alone)); r.status != 125 {
			t.Errorf("%s alone: status %d\n%s", alone, r.status, r.stderr)
		} else {
			wantLine(t, r.stderr, "no event is left", alone, "not available", "seccomp")
		}
	}
}

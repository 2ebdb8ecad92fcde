package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"ccagent/internal/testprog"
)

// In a container that forbids measuring, the reason is named with what helps, and the program is not run.
func TestInAContainer(t *testing.T) {
	testprog.NeedRoot(t)
	for how, says := range map[string][]string{
		"bpf and events": {"a filter of system calls forbids it", "seccomp=unconfined"},
		"capabilities":   {"root lacks CAP_BPF here", "--cap-add"},
	} {
		t.Run(how, func(t *testing.T) {
			inside := func(args ...string) *exec.Cmd {
				return restricted(t, how, append([]string{ccagent}, args...)...)
			}
			log := filepath.Join(t.TempDir(), "run.eventlog")
			r := run(t, inside("record", "-e", "cpu-clock", "-o", log, "--", "/bin/echo", "ran"))
			if r.status != 125 || r.stdout != "" {
				t.Errorf("status %d, output %q", r.status, r.stdout)
			}
			wantLine(t, r.stderr, says...)
			r = run(t, inside("doctor"))
			if r.status != 1 {
				t.Errorf("doctor: status %d", r.status)
			}
			wantLine(t, r.stdout, "failed", "BPF", says[0])
			wantLine(t, r.stdout, says[1])
		})
	}
}

// A user who is not root reads in doctor's report which capability is missing, and the level of perf_event_paranoid if that
// forbids events.
func TestWithoutRights(t *testing.T) {
	testprog.NeedRoot(t)
	cmd := command(t, ccagent, "doctor")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
	r := run(t, cmd)
	wantLine(t, r.stdout, "failed", "privileges", "CAP_BPF is missing")
	wantLine(t, r.stdout, "failed", "BPF", "permission denied")
	level, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		t.Fatal(err)
	}
	if level[0] >= '3' { // Debian's own level, at which nothing is sampled
		wantLine(t, r.stdout, "failed", "CPU clock", "kernel.perf_event_paranoid is "+string(level[:1]))
	}
}

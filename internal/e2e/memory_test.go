package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// inMemoryGroup prepares a command in a control group that allows so many bytes of memory.
func inMemoryGroup(t *testing.T, bytes int, name string, args ...string) *exec.Cmd {
	t.Helper()
	testprog.NeedRoot(t)
	dir, file := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("ccagent-test-%d", os.Getpid())), "memory.limit_in_bytes"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		dir, file = filepath.Join("/sys/fs/cgroup", filepath.Base(dir)), "memory.max"
	}
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		t.Cleanup(func() {
			eventually(t, "the control group is empty", func() bool { return os.Remove(dir) == nil })
		})
		err = os.WriteFile(filepath.Join(dir, file), []byte(fmt.Sprint(bytes)), 0)
	}
	if err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: fmt.Sprintf("control groups that limit memory (%v)", err)})
	}
	return command(t, "sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, dir, name}, args...)...)
}

// An agent in a control group of little memory makes do with it and says what it leaves
// out; where there is too little it says that. The kernel does not kill it.
func TestLittleMemory(t *testing.T) {
	exe := testprog.Build(t, "spin31", testprog.Options{})
	target := command(t, exe, endless)
	begin(t, target)
	for _, c := range []struct {
		bytes, status int
		says          []string
	}{
		{60_000_000, 0, []string{"symbols: only", "control group", "memory limit"}},
		{30_000_000, 125, []string{"control group", "raise its memory limit"}},
	} {
		t.Run(fmt.Sprint(c.bytes), func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "run.eventlog")
			r := run(t, inMemoryGroup(t, c.bytes, ccagent, "attach", "--duration", "1s", "-o", log, pidOf(target)))
			if r.status != c.status {
				t.Fatalf("status %d, want %d\n%s", r.status, c.status, r.stderr)
			}
			wantLine(t, r.stderr, c.says...)
			if c.status == 0 {
				hot := run(t, command(t, ccview, "hot", log))
				if hot.status != 0 || !strings.Contains(hot.stdout, "Main") {
					t.Errorf("the log has no names: status %d\n%s%s", hot.status, hot.stdout, hot.stderr)
				}
			}
		})
	}
}

// The agent reads the program's files and maps none, so whoever truncates one does not
// end the agent by SIGBUS: while it captures, no mapping of its is of the program's files.
func TestAgentMapsNoFileOfTheProgram(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "spin31", testprog.Options{})
	target := command(t, exe, endless)
	begin(t, target)
	log := filepath.Join(t.TempDir(), "run.eventlog")
	agent := command(t, ccagent, "attach", "-o", log, pidOf(target))
	wait := background(t, agent)
	files := map[string]bool{}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", target.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if f := strings.Fields(line); len(f) == 6 && strings.HasPrefix(f[5], "/") {
			files[f[5]] = true
		}
	}
	if !files[exe] {
		t.Fatalf("the program maps %v", files)
	}
	held := false
	eventually(t, "the agent holds the program's file", func() bool {
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", agent.Process.Pid))
		for _, fd := range fds {
			to, _ := os.Readlink(fd)
			held = held || to == exe
		}
		own, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", agent.Process.Pid))
		for line := range strings.Lines(string(own)) {
			if f := strings.Fields(line); len(f) == 6 && files[f[5]] {
				t.Errorf("the agent maps %s", f[5])
			}
		}
		return held
	})
	eventually(t, "a sample is in the log", func() bool { return has(log, isSample) })
	if err := agent.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.status != 0 {
		t.Errorf("status %d\n%s", r.status, r.stderr)
	}
}

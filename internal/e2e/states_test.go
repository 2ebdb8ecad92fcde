package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// stateOf is a process's state and its tracer.
func stateOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "State:") || strings.HasPrefix(line, "TracerPid:") {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return strings.Join(found, " ")
}

// frozen has a control group hold a process, of the unified hierarchy (version 2) or another (1); thaw lets it go.
func frozen(unified bool) func(t *testing.T, pid int) (thaw func()) {
	return func(t *testing.T, pid int) (thaw func()) {
		t.Helper()
		freeze, thaw := testprog.Freezer(t, pid, unified)
		freeze()
		return thaw
	}
}

// A process that somebody has stopped, traces or has frozen stays as it is when the agent
// attaches and lets go, is none the worse afterwards, and keeps the agent for no longer.
func TestAttachLeavesHeldProcessesAsTheyAre(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "spin31", testprog.Options{NoDebug: true})
	for _, c := range []struct {
		name string
		hold func(t *testing.T, pid int) (letGo func())
	}{
		{"stopped", func(t *testing.T, pid int) func() {
			if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is stopped", func() bool { return strings.Contains(stateOf(t, pid), "(stopped)") })
			return func() { _ = unix.Kill(pid, unix.SIGCONT) }
		}},
		{"traced", func(t *testing.T, pid int) func() {
			tracer := exec.Command(testprog.NeedTool(t, "strace", ""), "-f", "-o", os.DevNull, "-p", fmt.Sprint(pid))
			if err := tracer.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is traced", func() bool { return !strings.Contains(stateOf(t, pid), "TracerPid:\t0") })
			return func() {
				_ = tracer.Process.Signal(unix.SIGTERM)
				_ = tracer.Wait()
			}
		}},
		{"frozen", frozen(false)},
		{"frozen, version 2", frozen(true)},
	} {
		t.Run(c.name, func(t *testing.T) {
			target := command(t, exe, endless)
			if err := target.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				target.Process.Kill()
				target.Wait()
			}()
			pid := target.Process.Pid
			testprog.WaitExecuted(t, pid)
			letGo := c.hold(t, pid)
			defer letGo() // or it could not even be killed
			// A traced process runs on, so that its state is that of a moment.
			tracer := func() string { _, by, _ := strings.Cut(stateOf(t, pid), "TracerPid"); return by }
			before := tracer()
			r := run(t, command(t, ccagent, "attach", "--duration", "200ms", "-o", filepath.Join(t.TempDir(), "run.eventlog"), fmt.Sprint(pid)))
			if r.status != 0 && (r.status != 125 || !strings.Contains(r.stderr, "no sample was taken")) {
				t.Errorf("status %d\n%s", r.status, r.stderr)
			}
			if after := tracer(); after != before {
				t.Errorf("its tracer was%s, and is%s", before, after)
			}
			if c.name == "stopped" && !strings.Contains(stateOf(t, pid), "(stopped)") {
				t.Errorf("it is %s", stateOf(t, pid))
			}
			letGo()
			eventually(t, "it runs", func() bool { return strings.Contains(stateOf(t, pid), "R (running)") })
		})
	}
}

// A program in pid and mount namespaces of its own is profiled from outside of them.
func TestNamespacedTarget(t *testing.T) {
	testprog.NeedRoot(t)
	unshare := testprog.NeedTool(t, "unshare", "util-linux")
	exe := testprog.Build(t, "spin31", testprog.Options{NoDebug: true})
	outer := command(t, unshare, "-p", "-m", "--fork", "--kill-child", exe, endless)
	background(t, outer)
	pid := 0
	eventually(t, "the program runs", func() bool { pid = childOf(outer.Process.Pid, "spin31"); return pid != 0 })
	log := filepath.Join(t.TempDir(), "run.eventlog")
	if r := run(t, command(t, ccagent, "attach", "--duration", "1s", "-o", log, fmt.Sprint(pid))); r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	l := readLog(t, log)
	l.wantWhole(t)
	if len(l.samples) == 0 {
		t.Error("no samples")
	}
	if s := stateOf(t, pid); !strings.Contains(s, "R (running)") && !strings.Contains(s, "S (sleeping)") {
		t.Errorf("the program is %s", s)
	}
}

// An agent in a process id namespace of its own finds its target by its own ids, also where that
// is in a namespace below.
func TestAgentInNamespace(t *testing.T) {
	testprog.NeedRoot(t)
	unshare := testprog.NeedTool(t, "unshare", "util-linux")
	exe := testprog.Build(t, "spin31", testprog.Options{NoDebug: true})
	for name, below := range map[string][]string{"same": nil, "below": {unshare, "-p", "--fork", "--kill-child"}} {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "run.eventlog")
			argv := []string{"-p", "-m", "--fork", "--kill-child", "--mount-proc", ccagent, "record", "-e", "cpu-clock", "-o", log, "--"}
			argv = append(append(argv, below...), exe, "10000")
			if r := run(t, command(t, unshare, argv...)); r.status != 0 {
				t.Fatalf("status %d\n%s", r.status, r.stderr)
			}
			l := readLog(t, log)
			l.wantWhole(t)
			three := 0
			for _, s := range l.samples {
				if inHaskell(s) {
					three++
				}
			}
			if three == 0 || 10*three < 9*len(l.samples)-100 {
				t.Errorf("%d of %d samples are in Haskell code", three, len(l.samples))
			}
		})
	}
}

// stormSource is a program that does so many times what its first argument says.
const stormSource = `
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>
static void *nothing(void *p) { return p; }
int main(int argc, char **argv)
{
	int times = atoi(argv[2]);
	char left[16];
	if (!strcmp(argv[1], "execs") && times > 0) {
		snprintf(left, sizeof left, "%d", times - 1);
		execl("/proc/self/exe", argv[0], argv[1], left, (char *)0);
		return 1;
	}
	int self = open("/proc/self/exe", O_RDONLY);
	for (int i = 0; i < times; i++) {
		pthread_t thread;
		int status = 0;
		if (!strcmp(argv[1], "threads") && (pthread_create(&thread, 0, nothing, 0) || pthread_join(thread, 0)))
			return 1;
		if (!strcmp(argv[1], "maps")) {
			void *at = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, 0);
			if (at == MAP_FAILED || (i % 2 && munmap(at, 4096)))
				return 1;
		}
		if (!strcmp(argv[1], "forks")) {
			pid_t child = fork();
			if (!child)
				_exit(0);
			if (waitpid(child, &status, 0) != child || status)
				return 1;
		}
	}
	puts("done");
	return 7;
}
`

// A program that maps files, forks, executes programs or starts threads as fast as it can
// ends as it would alone, and so does the capture.
func TestStorms(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.CompileC(t, stormSource, "-O1", "-pthread")
	for what, times := range map[string]string{"maps": "5000", "forks": "1000", "execs": "300", "threads": "3000"} {
		t.Run(what, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "run.eventlog")
			r := run(t, command(t, ccagent, "record", "-e", "cpu-clock", "-o", log, "--", exe, what, times))
			if r.status != 7 || r.stdout != "done\n" {
				t.Errorf("status %d, the program said %q\n%s", r.status, r.stdout, r.stderr)
			}
			readLog(t, log).wantWhole(t)
		})
	}
}

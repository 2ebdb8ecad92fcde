package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// ccagent and ccview are the binaries under test, in a folder that everyone may enter.
var ccagent, ccview string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	// The tests may be run by sudo; the commands under test are not, unless a test says so.
	for _, name := range []string{"SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND"} {
		os.Unsetenv(name)
	}
	dir, err := os.MkdirTemp("", "ccagent-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir+"/", "ccagent/cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the commands: %v\n%s", err, out)
		return 1
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ccagent, ccview = filepath.Join(dir, "ccagent"), filepath.Join(dir, "ccview")
	return m.Run()
}

// touchSources reads every source file of the module, so that Go's cache of test results
// knows that a test depends on the commands' sources. The cache only sees what a test reads,
// not what TestMain reads.
var touchSources = sync.OnceValue(func() error {
	const root = "../.."
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if d.Name() == "bin" || strings.HasPrefix(d.Name(), ".") && path != root {
				return fs.SkipDir
			}
			return nil
		}
		_, err = os.Stat(path)
		return err
	})
})

// limit stops commands that hang; no test waits for it. It is far beyond what any takes beside dozens of busy programs.
const limit = 10 * time.Minute

// result is the result of a command.
type result struct {
	stdout, stderr string
	status         int // as a shell shows it
}

// command prepares a command that is killed at the end of the test.
func command(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	if err := touchSources(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.TempDir()
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs a command to its end.
func run(t *testing.T, cmd *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	return ended(t, cmd, err, &stdout, &stderr)
}

func ended(t *testing.T, cmd *exec.Cmd, err error, stdout, stderr *bytes.Buffer) result {
	t.Helper()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run %v: %v\n%s", cmd.Args, err, stderr)
	}
	status := cmd.ProcessState.ExitCode()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		status = 128 + int(ws.Signal())
	}
	return result{stdout.String(), stderr.String(), status}
}

// background starts a command whose standard error is collected; wait gives its result. If
// nobody waits, it is killed at the end of the test.
func background(t *testing.T, cmd *exec.Cmd) (wait func() result) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := false
	t.Cleanup(func() {
		if !done {
			cmd.Process.Kill()
			cmd.Wait()
		}
	})
	return func() result {
		t.Helper()
		done = true
		return ended(t, cmd, cmd.Wait(), &stdout, &stderr)
	}
}

// begin starts a program that is to be looked at, and returns once it is executed: exec.Cmd's Start returns before the kernel has
// mapped it.
func begin(t *testing.T, cmd *exec.Cmd) (wait func() result) {
	t.Helper()
	wait = background(t, cmd)
	testprog.WaitExecuted(t, cmd.Process.Pid)
	return wait
}

// record profiles a program to its end and returns the log's path. The program and the
// capture must succeed.
func record(t *testing.T, flags []string, program string, args ...string) (log string, r result) {
	t.Helper()
	testprog.NeedRoot(t)
	log = filepath.Join(t.TempDir(), "run.eventlog")
	argv := append([]string{"record", "-o", log}, flags...)
	argv = append(append(argv, "--", program), args...)
	r = run(t, command(t, ccagent, argv...))
	if r.status != 0 {
		t.Fatalf("ccagent %s: status %d\n%s", strings.Join(argv, " "), r.status, r.stderr)
	}
	return log, r
}

// recordSeconds profiles a program, whose work would take much longer, until it has used so
// many seconds of CPU time, and gives the log's path. The number of samples then depends on
// the sampling rate alone, which is a fixed one.
func recordSeconds(t *testing.T, seconds int, program string, args ...string) (log string) {
	t.Helper()
	testprog.NeedRoot(t)
	log = filepath.Join(t.TempDir(), "run.eventlog")
	// The kernel ends it with SIGXCPU.
	limited := fmt.Sprintf(`ulimit -c 0; ulimit -S -t %d; exec "$@"`, seconds)
	argv := append([]string{"record", "-o", log, "--max-overhead", "0", "-F", "997", "--", "sh", "-c", limited, "sh", program}, args...)
	r := run(t, command(t, ccagent, argv...))
	if want := 128 + int(syscall.SIGXCPU); r.status != want {
		t.Fatalf("ccagent %s: status %d, want %d\n%s%s", strings.Join(argv, " "), r.status, want, r.stdout, r.stderr)
	}
	return log
}

// compileCalls has the call frame information of a program and its libraries compiled, into the
// cache, by a capture of a run that is soon over. Where a slow machine has not compiled it when a
// capture begins, the first walks through C code fail, and by design.
func compileCalls(t *testing.T, program string, args ...string) {
	t.Helper()
	record(t, []string{"--quiet", "-e", "cpu-clock"}, program, args...)
}

// view runs ccview with --format json and decodes what it prints.
func view(t *testing.T, into any, args ...string) {
	t.Helper()
	r := run(t, command(t, ccview, append(args, "--format", "json")...))
	if r.status != 0 {
		t.Fatalf("ccview %s: status %d\n%s", strings.Join(args, " "), r.status, r.stderr)
	}
	if err := json.Unmarshal([]byte(r.stdout), into); err != nil {
		t.Fatalf("ccview %s: %v in\n%.2000s", strings.Join(args, " "), err, r.stdout)
	}
}

// wantLine fails unless one line of text holds all the words.
func wantLine(t *testing.T, text string, words ...string) {
	t.Helper()
	for line := range strings.Lines(text) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(strings.ToLower(line), strings.ToLower(w))
		}
		if all {
			return
		}
	}
	t.Errorf("no line with %q in\n%s", words, text)
}

// sharedDir is a fresh folder that every user may enter.
func sharedDir(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ccagent-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, mode); err != nil {
		t.Fatal(err)
	}
	return dir
}

// has reports whether a log, which may still be written, has an event that is so.
func has(log string, is func(eventlog.Event) bool) bool {
	f, err := os.Open(log)
	if err != nil {
		return false
	}
	defer f.Close()
	for r := eventlog.NewReader(f); r.Next(); {
		if is(r.Record().Event) {
			return true
		}
	}
	return false
}

// isSample reports whether an event is a sample of the first kind of event that was asked for.
func isSample(e eventlog.Event) bool {
	s, ok := e.(*eventlog.Sample)
	return ok && s.Event == 0
}

// eventually polls for a condition that another process causes.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("never came about: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

// A FIFO in place of a file is refused without waiting for a writer.
func TestFIFOIsNotWaitedOn(t *testing.T) {
	testprog.NeedRoot(t)
	log, _ := record(t, nil, testprog.Build(t, "spin31", testprog.Options{}), "2000")
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{
		{"symbolize", fifo},
		{"symbolize", "--debug-file", fifo, log},
		{"doctor", fifo},
	} {
		cmd := command(t, ccagent, argv...)
		wait := background(t, cmd)
		hung := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		r := wait()
		if !hung.Stop() {
			t.Errorf("ccagent %s waits for a writer", strings.Join(argv, " "))
			continue
		}
		if r.status == 0 {
			t.Errorf("ccagent %s: status 0", strings.Join(argv, " "))
		}
		wantLine(t, r.stderr, fifo, "regular file")
	}
}

// patience is much longer than the tested action takes on any machine.
const patience = time.Minute

// stopCompat stops the child that derives events for other tools, and reports whether it was
// found running.
func stopCompat(t *testing.T, agent int) (child int, found bool) {
	t.Helper()
	for syscall.Kill(agent, 0) == nil {
		tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", agent))
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			raw, err := os.ReadFile(task)
			if err != nil {
				continue
			}
			for _, pid := range strings.Fields(string(raw)) {
				line, err := os.ReadFile("/proc/" + pid + "/cmdline")
				if err != nil || !bytes.HasPrefix(line, []byte("ccagent-compat\x00")) {
					continue
				}
				n, err := strconv.Atoi(pid)
				if err != nil {
					t.Fatal(err)
				}
				if unix.Kill(n, unix.SIGSTOP) == nil {
					return n, true
				}
			}
		}
		var info unix.Siginfo // a signal reaches a zombie too
		if err := unix.Waitid(unix.P_PID, agent, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil || info.Signo != 0 {
			return 0, false
		}
	}
	return 0, false
}

// A stopped child blocks a capture neither for ever nor against SIGTERM, and leaves no
// files.
func TestStoppedCompatChild(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "example", testprog.Options{})
	for _, c := range []struct {
		name   string
		flags  []string
		signal os.Signal
		says   string
	}{
		{"SIGTERM", nil, unix.SIGTERM, "interrupted"},
		{"time", []string{"--symbolize-time", "10s"}, nil, "not done within 10s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 10 { // the child may be done before it is found
				dir := t.TempDir()
				argv := append([]string{"record", "-o", filepath.Join(dir, "run.eventlog"), "--compat", "hs-speedscope"}, c.flags...)
				cmd := command(t, ccagent, append(argv, "--", exe, "50000")...)
				wait := background(t, cmd)
				_, found := stopCompat(t, cmd.Process.Pid)
				if !found {
					wait()
					continue
				}
				if c.signal != nil {
					if err := cmd.Process.Signal(c.signal); err != nil {
						t.Fatal(err)
					}
				}
				hung := time.AfterFunc(patience, func() { cmd.Process.Kill() })
				r := wait()
				if !hung.Stop() {
					t.Fatal("the stopped child holds the capture")
				}
				if r.status != 125 {
					t.Errorf("status %d, want 125", r.status)
				}
				wantLine(t, r.stderr, c.says, "the log is as it was")
				entries, err := os.ReadDir(dir)
				if err != nil || len(entries) != 1 {
					t.Errorf("left: %v, %v", entries, err)
				}
				readLog(t, filepath.Join(dir, "run.eventlog")).wantWhole(t)
				return
			}
			t.Error("the child was never found running")
		})
	}
}

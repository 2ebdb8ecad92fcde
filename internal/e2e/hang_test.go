package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
const patience = 2 * time.Minute

// stopCompat stops the child that derives events for other tools, and reports whether it was
// found running.
func stopCompat(agent int) bool {
	for !hasEnded(agent) {
		for _, child := range childrenOf(agent) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", child))
			if bytes.HasPrefix(line, []byte("ccagent-compat\x00")) && unix.Kill(child, unix.SIGSTOP) == nil {
				return true
			}
		}
	}
	return false
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
				if !stopCompat(cmd.Process.Pid) {
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

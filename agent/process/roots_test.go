package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// A process that sees other mounts, or has another root directory, has a root of its own
// to look for files in, the same for all that share it; one that lives as we do has none.
func TestRoots(t *testing.T) {
	start := func(flags uintptr) uint32 {
		t.Helper()
		cmd := exec.Command("cat")
		cmd.SysProcAttr = &unix.SysProcAttr{Cloneflags: flags}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			if flags != 0 && errors.Is(err, unix.EPERM) {
				testprog.Skip(t, &testprog.UnsupportedError{Need: fmt.Sprintf("a mount namespace of its own (%v)", err)})
			}
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
		return uint32(cmd.Process.Pid)
	}
	var rs roots
	defer rs.Close()
	if f := rs.of(start(0)); f != nil {
		t.Errorf("a process like ours has the root %s", f.Name())
	}
	if f := rs.of(uint32(os.Getpid())); f != nil {
		t.Errorf("this process has the root %s", f.Name())
	}
	pid := start(unix.CLONE_NEWNS)
	f := rs.of(pid)
	if f == nil {
		t.Fatal("a process with mounts of its own has no root")
	}
	if again := rs.of(pid); again != f {
		t.Error("its root is opened twice")
	}
	other := rs.of(start(unix.CLONE_NEWNS))
	if other == nil || other == f {
		t.Error("two processes that see different mounts share a root")
	}
}

package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// Whether a heap can be counted is said of the program's file, and of what keeps a process from it.
func TestHeapCensus(t *testing.T) {
	for _, c := range []struct {
		options testprog.Options
		status  Status
		words   string
	}{
		{testprog.Options{}, OK, "major collections"},
		{testprog.Options{Strip: true}, Warning, "at rest alone"},
		{testprog.Options{Dynamic: true}, Warning, "which was not looked at"},
	} {
		checks, _ := examine(t, testprog.Build(t, "maps", c.options))
		if got := checks["heap census"]; got.Status != c.status || !strings.Contains(got.Detail, c.words) || (got.Fix == "") != (c.status == OK) {
			t.Errorf("%+v: %+v", c.options, got)
		}
	}
	exe := testprog.Build(t, "maps", testprog.Options{})
	run := func(traced bool, args ...string) Check {
		t.Helper()
		cmd := exec.Command(exe, append([]string{"20000", "1000000"}, args...)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Kill()
		testprog.WaitExecuted(t, cmd.Process.Pid)
		look := func() Check { return Process(cmd.Process.Pid, []Check{{Name: "heap census", Status: OK}})[0] }
		if !traced {
			return look()
		}
		result := make(chan Check)
		go func() {
			runtime.LockOSThread() // what it traces is let go when it ends with this goroutine
			if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(cmd.Process.Pid), 0, 0, 0, 0); errno != 0 {
				t.Error(errno)
			}
			result <- look()
		}()
		return <-result
	}
	if c := run(false); c.Status != OK {
		t.Errorf("of a process: %+v", c)
	}
	if c := run(false, "+RTS", "--nonmoving-gc", "-RTS"); c.Status != Warning || !strings.Contains(c.Detail, "--nonmoving-gc") || c.Fix == "" {
		t.Errorf("of one with the non-moving collector: %+v", c)
	}
	if c := run(true); c.Status != Warning || !strings.Contains(c.Detail, fmt.Sprintf("process %d traces it", os.Getpid())) { // not the thread that does
		t.Errorf("of one that is traced: %+v", c)
	}
}

package overhead

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// relaxVariable has this program relax, and print what TestRelax looks at.
const relaxVariable = "CCAGENT_TEST_RELAX"

func TestMain(m *testing.M) {
	if pid := os.Getenv(relaxVariable); pid != "" {
		printRelaxed(pid)
		return
	}
	if os.Getenv(givingWayVariable) != "" {
		printGivingWay()
		return
	}
	os.Exit(m.Run())
}

// printRelaxed prints the slack of the first thread, of further ones, and of one that is to be woken in time. before is
// the process that this one was, empty at first.
func printRelaxed(before string) {
	if before == "first" {
		os.Setenv(relaxVariable, fmt.Sprint(os.Getpid()))
	}
	if err := Relax(); err != nil {
		fmt.Println(err)
		return
	}
	slack := func() (all time.Duration) {
		n, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		if err != nil {
			fmt.Println(err)
		}
		return time.Duration(n)
	}
	fmt.Println("the same process:", before == fmt.Sprint(os.Getpid()))
	const threads = 4
	all := make(chan time.Duration)
	for range threads {
		go func() {
			runtime.LockOSThread() // it ends with the goroutine
			all <- slack()
		}()
	}
	for range threads {
		fmt.Println("a thread:", <-all)
	}
	runtime.LockOSThread()
	undo := Hasten()
	attr, err := unix.SchedGetAttr(0, 0)
	fmt.Println("in time:", err == nil && attr.Policy == unix.SCHED_RR || slack() == usualSlack)
	undo()
	fmt.Println("a thread:", slack())
}

// All threads of a process that has relaxed are woken late, but for those that are to be woken in time.
func TestRelax(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), relaxVariable+"=first")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	want := "the same process: true\n" + strings.Repeat("a thread: 4ms\n", 4) + "in time: true\na thread: 4ms\n"
	if string(out) != want {
		t.Errorf("%s expected, is\n%s", want, out)
	}
}

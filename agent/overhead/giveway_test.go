package overhead

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// givingWayVariable has this program give way, and print what TestGiveWay looks at.
const givingWayVariable = "CCAGENT_TEST_GIVE_WAY"

func printGivingWay() {
	const niceness = 3
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, niceness); err != nil {
		fmt.Println(err)
	}
	if err := GiveWay(); err != nil {
		fmt.Println(err)
		return
	}
	policy := func() string {
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(attr.Policy)
	}
	const threads = 4
	all := make(chan string)
	for range threads {
		go func() {
			runtime.LockOSThread() // it ends with the goroutine
			all <- policy()
		}()
	}
	for range threads {
		fmt.Println("a thread:", <-all)
	}
	runtime.LockOSThread()
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	Hasten()()
	after, err := unix.SchedGetAttr(0, 0)
	fmt.Println("as before:", err == nil && after.Policy == before.Policy && after.Nice == before.Nice)
}

// All threads of a process give way, those that are made later too, and one that was woken in time does so again, at the
// priority that it had.
func TestGiveWay(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), givingWayVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat(fmt.Sprintf("a thread: %d\n", unix.SCHED_BATCH), 4) + "as before: true\n"
	if string(out) != want {
		t.Errorf("%s expected, is\n%s", want, out)
	}
}

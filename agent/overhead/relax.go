package overhead

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Slack is how much later the kernel may wake the threads of a relaxed process than they ask for.
const Slack = 4 * time.Millisecond

// relaxed is set in a relaxed process.
var relaxed bool

// Relax has the kernel wake this process's threads up to Slack late. Go's monitor (sysmon) sleeps for 20 µs at a time
// as long as something runs, and for longer only by and by: in a process that does a little now and then it took a seventh
// of the CPU time. Threads inherit this from the one that makes them, and the monitor is there before main is, so the program is executed
// anew. It returns in the process that was executed, and where that was not possible, which is no harm but for the time.
// Hasten has a thread woken in time all the same.
func Relax() error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	have, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("read the slack of timers: %w", err)
	}
	if time.Duration(have) >= Slack {
		relaxed = true
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := setSlack(Slack); err != nil {
		return err
	}
	err = unix.Exec(program, os.Args, os.Environ())
	return fmt.Errorf("execute %s anew: %w", program, errors.Join(err, setSlack(time.Duration(have))))
}

// setSlack sets the slack of the calling thread's timers; 0 is what it began with.
func setSlack(slack time.Duration) error {
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(slack), 0, 0, 0); err != nil {
		return fmt.Errorf("set the slack of timers: %w", err)
	}
	return nil
}

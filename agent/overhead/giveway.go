package overhead

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// GiveWay has the kernel never let a thread of this process take a CPU from a program that runs there when the thread wakes
// (SCHED_BATCH): it waits until the program waits, or for the next tick. Each time that the agent takes the program's CPU costs the
// program two switches, and a program of threads that hand over to each other some more. The agent's share of a busy CPU
// stays what it was. Threads and processes that this one makes later do likewise; so a program that is to be profiled is started
// before. Threads with another policy than the usual are left alone.
func GiveWay() error {
	const tasks = "/proc/self/task"
	for again := true; again; { // until none was made meanwhile by one that does not give way yet
		again = false
		entries, err := os.ReadDir(tasks)
		if err != nil {
			return fmt.Errorf("list own threads: %w", err)
		}
		for _, e := range entries {
			tid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			changed, err := giveWay(tid)
			if err != nil {
				return err
			}
			again = again || changed
		}
	}
	return nil
}

func giveWay(tid int) (changed bool, err error) {
	attr, err := unix.SchedGetAttr(tid, 0)
	if err == nil && attr.Policy == unix.SCHED_NORMAL {
		attr.Policy, changed = unix.SCHED_BATCH, true
		err = unix.SchedSetAttr(tid, attr, 0)
	}
	if errors.Is(err, unix.ESRCH) { // it has ended
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("give way to other programs: %w", err)
	}
	return changed, nil
}

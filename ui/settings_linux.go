package ui

import (
	"errors"
	"runtime"

	"golang.org/x/sys/unix"
)

// asUser runs f on a thread whose file-system ids are a user's: what it creates
// is theirs, and where they may not write it may not either.
func asUser(uid, gid int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		// Without the groups of who called, which unix.Setgroups would change for all threads.
		_, _, no := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		err := errors.Join(unix.Setfsgid(gid), unix.Setfsuid(uid))
		if no != 0 {
			err = no
		}
		// Both calls return no error, so check the ids that are in force.
		if got, _ := unix.SetfsuidRetUid(-1); err == nil && got != uid {
			err = unix.EPERM
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

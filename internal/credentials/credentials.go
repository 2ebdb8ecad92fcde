// Package credentials runs code with another user's rights to files, and without any
// capability, so that a process of root's can do for a user what that user may do alone.
package credentials

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"ccagent/internal/capset"
)

// Credentials are a user's ids, as the kernel checks access to files by them.
type Credentials struct {
	UID, GID uint32
	Groups   []uint32
}

// Nobody are credentials that no file belongs to: with them only what everyone may read
// can be read. The ids are not those of the user "nobody", who owns files on some hosts.
func Nobody() Credentials { return Credentials{UID: 1<<32 - 3, GID: 1<<32 - 3} }

// Run calls f with these credentials for files and without capabilities. Without the
// latter, CAP_SYS_PTRACE would still open /proc/PID/root of any process.
//
// Root runs f as itself if the credentials are root's. A process that is not root runs f
// as itself too, but for its capabilities, and cannot run it as another user.
func (c *Credentials) Run(f func() error) error {
	own := uint32(os.Geteuid())
	switch {
	case c.UID == 0 && own == 0:
		return f()
	case own != 0 && c.UID != own:
		return fmt.Errorf("take on file rights of uid %d: only root can", c.UID)
	}
	done := make(chan error, 1)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and its rights with it.
		runtime.LockOSThread()
		if err := c.take(own == 0); err != nil {
			done <- fmt.Errorf("take on file rights of uid %d: %w", c.UID, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// take changes this thread's ids for files, if asked to, and drops its capabilities, for
// good.
func (c *Credentials) take(ids bool) error {
	if ids {
		if err := c.takeIDs(); err != nil {
			return err
		}
	}
	return capset.Clear()
}

func (c *Credentials) takeIDs() error {
	var groups unsafe.Pointer
	if len(c.Groups) > 0 {
		groups = unsafe.Pointer(&c.Groups[0])
	}
	// unix.Setgroups would change every thread of the process.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(c.Groups)), uintptr(groups), 0); errno != 0 {
		return errno
	}
	for _, set := range []struct {
		call uintptr
		id   uint32
	}{{unix.SYS_SETFSGID, c.GID}, {unix.SYS_SETFSUID, c.UID}} {
		// Each gives the id that was in force, and refuses silently; ^0 is no id.
		unix.RawSyscall(set.call, uintptr(set.id), 0, 0)
		if got, _, _ := unix.RawSyscall(set.call, uintptr(^uint32(0)), 0, 0); uint32(got) != set.id {
			return unix.EPERM
		}
	}
	return nil
}

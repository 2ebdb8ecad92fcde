// Package credentials runs code with another user's file access rights and without any
// capability, so that a root process can do for a user exactly what the user may do.
package credentials

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"ccagent/internal/capset"
)

// Credentials are a user's ids for the kernel's checks of file access.
type Credentials struct {
	UID, GID uint32
	Groups   []uint32
}

// Nobody returns credentials that own no file: with them only files readable by everyone can
// be read. The ids are not those of the user "nobody", who owns files on some hosts.
func Nobody() Credentials { return Credentials{UID: 1<<32 - 3, GID: 1<<32 - 3} }

// Run calls f with these credentials for files and without capabilities. With
// CAP_SYS_PTRACE, for example, it could open /proc/PID/root of any process.
//
// If the credentials are root's, root runs f as itself. A process that is not root runs f
// with its own ids, without capabilities; it cannot run f as another user.
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
		// The thread is never unlocked, so it ends with the goroutine, and its rights with
		// it.
		runtime.LockOSThread()
		if err := c.take(own == 0); err != nil {
			done <- fmt.Errorf("take on file rights of uid %d: %w", c.UID, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// take drops this thread's capabilities, and changes its ids for files if requested, both
// permanently.
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
	// unix.Setgroups would change all threads of the process.
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(c.Groups)), uintptr(groups), 0); errno != 0 {
		return errno
	}
	for _, set := range []struct {
		call uintptr
		id   uint32
	}{{unix.SYS_SETFSGID, c.GID}, {unix.SYS_SETFSUID, c.UID}} {
		// Both calls return the previous id and fail silently; ^0 is not an id, so it only
		// reads the current one.
		unix.RawSyscall(set.call, uintptr(set.id), 0, 0)
		if got, _, _ := unix.RawSyscall(set.call, uintptr(^uint32(0)), 0, 0); uint32(got) != set.id {
			return unix.EPERM
		}
	}
	return nil
}

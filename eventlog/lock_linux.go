package eventlog

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock marks a log as being written by the holder of f, until f is closed: the
// lock is the open file's own, so it goes with its process, however that ends.
// The error is ErrBeingWritten if another has it.
func Lock(f *os.File) error {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &l)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return ErrBeingWritten
	}
	if err != nil {
		return fmt.Errorf("lock log: %w", err)
	}
	return nil
}

// BeingWritten reports whether another open file holds the Lock on this log.
// Run-time systems take none on theirs.
func BeingWritten(f *os.File) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l)
	return err == nil && l.Type != unix.F_UNLCK
}

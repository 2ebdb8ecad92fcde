package eventlog

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Lock marks a log as being written by the holder of f, until f is closed. The lock belongs
// to the open file, so it is released when the process ends, however that happens. The error
// is ErrBeingWritten if another open file has the lock.
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

// BeingWritten reports whether another open file holds the Lock on this log. GHC's run-time
// systems do not lock theirs.
func BeingWritten(f *os.File) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l)
	return err == nil && l.Type != unix.F_UNLCK
}

package invoker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"ccagent/eventlog"
)

// CreateLog creates the log file: mode 0600, owned by the invoker, with their
// rights alone. It never follows a link in the file's place, and never writes
// into a file that somebody else planted there: an older log is unlinked, not
// overwritten.
func CreateLog(path string, who *User) (f *os.File, err error) {
	err = who.WithFileRights(func() error {
		if err := clearWay(path, who); err != nil {
			return err
		}
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return fmt.Errorf("create log: %w; name another place with -o", err)
		}
		// The file is new: only a file system without locks can refuse, and what
		// the lock is for, telling readers that there is more to come, can be missed.
		_ = eventlog.Lock(f)
		return nil
	})
	return f, err
}

// clearWay removes an older log of the invoker's.
func clearWay(path string, who *User) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create log: %w; name another place with -o", err)
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("create log: %s is a symbolic link, which is never followed; remove it or name another file with -o", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("create log: %s exists and is no regular file; name another file with -o", path)
	}
	st, ok := info.Sys().(*unix.Stat_t)
	if !ok {
		var s unix.Stat_t
		if err := unix.Lstat(path, &s); err != nil {
			return fmt.Errorf("create log: %w", err)
		}
		st = &s
	}
	if st.Uid != who.UID && st.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("create log: %s belongs to another user (uid %d); remove it or name another file with -o", path, st.Uid)
	}
	if beingWritten(path) {
		return fmt.Errorf("create log: %s: %w; name another file with -o, or wait for its end", path, eventlog.ErrBeingWritten)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("replace older log: %w", err)
	}
	return nil
}

// beingWritten reports whether a capture still writes the log at path: to unlink it
// would lose what that one records.
func beingWritten(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return eventlog.BeingWritten(f)
}

// LogName is PROG.PID.eventlog in the working directory.
func LogName(program string, pid int) string {
	return fmt.Sprintf("%s.%d.eventlog", filepath.Base(program), pid)
}

// CreateFor creates a file, or empties one, with the rights of the invoking user,
// or of the user named.
func CreateFor(user, path string) (f *os.File, err error) {
	who, err := Find(user)
	if err != nil {
		return nil, err
	}
	err = who.WithFileRights(func() error {
		f, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		return err
	})
	return f, err
}

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
// overwritten. Of captures that begin at once with one path, one gets it, and the
// others eventlog.ErrBeingWritten.
func CreateLog(path string, who *User) (f *os.File, err error) {
	err = who.WithFileRights(func() error {
		if err := clearWay(path, who); err != nil {
			return err
		}
		f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return taken(path) // since the way was cleared
		}
		if err != nil {
			return fmt.Errorf("create log: %w; name another place with -o", err)
		}
		if !own(f, path) {
			f.Close()
			return taken(path)
		}
		return nil
	})
	return f, err
}

func taken(path string) error {
	return fmt.Errorf("create log: %s: %w; name another file with -o, or wait for its end", path, eventlog.ErrBeingWritten)
}

// own takes the lock of the log at path, which f is. Who holds it alone may unlink the
// log: so of two that do this at once, neither unlinks what the other has come to write.
// It is false where another has the lock, or has put another file there.
func own(f *os.File, path string) bool {
	if err := eventlog.Lock(f); errors.Is(err, eventlog.ErrBeingWritten) {
		return false
	}
	// Any other error is that of a file system without locks. What they are for there,
	// telling readers that there is more to come, can be missed.
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, there)
}

// clearWay removes an older log of the invoker's.
func clearWay(path string, who *User) error {
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create log: %s: %w; name another place with -o", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return fmt.Errorf("create log: %s is a symbolic link, which is never followed; remove it or name another file with -o", path)
	case unix.S_IFREG:
	default:
		return fmt.Errorf("create log: %s exists and is no regular file; name another file with -o", path)
	}
	if st.Uid != who.UID && st.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("create log: %s belongs to another user (uid %d); remove it or name another file with -o", path, st.Uid)
	}
	old, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return taken(path) // another has just removed it, to put its own there
	}
	if err != nil {
		return fmt.Errorf("replace older log: %w; remove it or name another file with -o", err)
	}
	defer old.Close()
	if !own(old, path) {
		return taken(path)
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("replace older log: %w", err)
	}
	return nil
}

// maxLogs is how many captures of one process may write logs of default names at once.
const maxLogs = 16

// CreateDefaultLog creates PROG.PID.eventlog in the working directory, or where another
// capture of the process writes that one, PROG.PID-2.eventlog and so on.
func CreateDefaultLog(program string, pid int, who *User) (f *os.File, path string, err error) {
	base := fmt.Sprintf("%s.%d", filepath.Base(program), pid)
	for n := 1; n <= maxLogs; n++ {
		path = base + ".eventlog"
		if n > 1 {
			path = fmt.Sprintf("%s-%d.eventlog", base, n)
		}
		if f, err = CreateLog(path, who); !errors.Is(err, eventlog.ErrBeingWritten) {
			break
		}
	}
	return f, path, err
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

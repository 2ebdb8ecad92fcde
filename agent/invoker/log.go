package invoker

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"ccagent/eventlog"
	"ccagent/internal/printable"
)

// Log is a log's file, and its name in a directory that is held open. All that happens to
// the name later (replacing, removing, creating the next piece) happens in that very
// directory, whatever its path has come to mean, and with the rights of the user whose
// log it is.
type Log struct {
	*os.File
	Path string // as the user named it, for messages
	dir  *os.File
	name string
	who  *User
}

// openDir opens the directory of a path. The kernel resolves what precedes the last slash,
// since "a/l/../x" is not "a/x" where l is a link.
func openDir(path string, who *User) (*Log, error) {
	dir, name := ".", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		dir, name = path[:i+1], path[i+1:]
	}
	if name == "" || name == "." || name == ".." {
		return nil, &fs.PathError{Op: "open", Path: path, Err: unix.EISDIR}
	}
	f, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	return &Log{Path: path, dir: f, name: name, who: who}, nil
}

// open opens a name in the log's directory. It never blocks (on a FIFO), follows no link, and
// refuses anything but regular files.
func (l *Log) open(name string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(int(l.dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0o600)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ELOOP):
			err = errors.New("a symbolic link, which is never followed")
			fallthrough
		case err != nil:
			return nil, &fs.PathError{Op: "open", Path: l.Path, Err: err}
		}
		f := os.NewFile(uintptr(fd), l.Path)
		if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
			f.Close()
			if err == nil {
				err = errors.New("no regular file")
			}
			return nil, &fs.PathError{Op: "open", Path: l.Path, Err: err}
		}
		return f, nil
	}
}

// is reports whether the log's name is that of f.
func (l *Log) is(f *os.File) bool {
	var mine, there unix.Stat_t
	return unix.Fstat(int(f.Fd()), &mine) == nil &&
		unix.Fstatat(int(l.dir.Fd()), l.name, &there, unix.AT_SYMLINK_NOFOLLOW) == nil &&
		mine.Dev == there.Dev && mine.Ino == there.Ino
}

// Close closes the file and its directory.
func (l *Log) Close() error { return errors.Join(l.File.Close(), l.dir.Close()) }

// OpenLog opens a finished log for reading, with the user's rights alone.
func OpenLog(path string, who *User) (l *Log, err error) {
	err = who.WithFileRights(func() error {
		if l, err = openDir(path, who); err != nil {
			return err
		}
		if l.File, err = l.open(l.name, unix.O_RDONLY); err != nil {
			l.dir.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// CreateLog creates the log file: mode 0600, owned by the invoker, with their
// rights alone. It never follows a link in the file's place, and never writes
// into a file that somebody else planted there: an older log is unlinked, not
// overwritten. Of captures that begin at once with one path, one gets it, and the
// others eventlog.ErrBeingWritten.
func CreateLog(path string, who *User) (l *Log, err error) {
	err = who.WithFileRights(func() error {
		if l, err = openDir(path, who); err != nil {
			return fmt.Errorf("create log: %w; name another place with -o", err)
		}
		if err = l.create(); err != nil {
			l.dir.Close()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// CreateBeside creates a log with another name in the same directory.
func (l *Log) CreateBeside(path string) (*Log, error) {
	dir, err := unix.FcntlInt(l.dir.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("create log: %w", err)
	}
	n := &Log{Path: path, dir: os.NewFile(uintptr(dir), l.dir.Name()), name: filepath.Base(path), who: l.who}
	if err := l.who.WithFileRights(n.create); err != nil {
		n.dir.Close()
		return nil, err
	}
	return n, nil
}

func (l *Log) create() error {
	if err := l.clearWay(); err != nil {
		return err
	}
	// Appended to, a log that somebody truncates stays shorter than what was written.
	f, err := l.open(l.name, os.O_RDWR|os.O_CREATE|os.O_EXCL|os.O_APPEND)
	if errors.Is(err, fs.ErrExist) {
		return l.taken() // since the way was cleared
	}
	if err != nil {
		return fmt.Errorf("create log: %w; name another place with -o", err)
	}
	if !l.own(f) {
		f.Close()
		return l.taken()
	}
	l.File = f
	return nil
}

func (l *Log) taken() error {
	return fmt.Errorf("create log: %s: %w; name another file with -o, or wait for its end", l.Path, eventlog.ErrBeingWritten)
}

// own takes the lock of the log f; false if another process has it, or has replaced the file.
// Only the lock's holder may unlink the log, so that of two processes that do so at once
// neither unlinks the log that the other has begun to write.
func (l *Log) own(f *os.File) bool {
	if err := eventlog.Lock(f); errors.Is(err, eventlog.ErrBeingWritten) {
		return false
	}
	// Any other error means a file system without locks. There, readers of a growing log do
	// not see that more will follow.
	return l.is(f)
}

// clearWay removes an older log of the invoker's.
func (l *Log) clearWay() error {
	var st unix.Stat_t
	err := unix.Fstatat(int(l.dir.Fd()), l.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create log: %s: %w; name another place with -o", l.Path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return fmt.Errorf("create log: %s is a symbolic link, which is never followed; remove it or name another file with -o", l.Path)
	case unix.S_IFREG:
	default:
		return fmt.Errorf("create log: %s exists and is no regular file; name another file with -o", l.Path)
	}
	if st.Uid != l.who.UID && st.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("create log: %s belongs to another user (uid %d); remove it or name another file with -o", l.Path, st.Uid)
	}
	old, err := l.open(l.name, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return l.taken() // another has just removed it, to put its own there
	}
	if err != nil {
		return fmt.Errorf("replace older log: %w; remove it or name another file with -o", err)
	}
	defer old.Close()
	if !l.own(old) {
		return l.taken()
	}
	if err := unix.Unlinkat(int(l.dir.Fd()), l.name, 0); err != nil {
		return fmt.Errorf("replace older log: %s: %w", l.Path, err)
	}
	return nil
}

// Remove unlinks the log if it still has its name.
func (l *Log) Remove() error {
	return l.who.WithFileRights(func() error {
		if !l.is(l.File) {
			return nil
		}
		if err := unix.Unlinkat(int(l.dir.Fd()), l.name, 0); err != nil {
			return &fs.PathError{Op: "remove", Path: l.Path, Err: err}
		}
		return nil
	})
}

// ErrReplaced reports that a log's name belongs to another file by now, or to none.
var ErrReplaced = errors.New("the log was moved, removed or replaced meanwhile")

// Replace puts a new file, which write fills, in the log's place. Where it fails the log
// is as it was, and nothing else is left. Only write runs with the agent's own rights.
func (l *Log) Replace(write func(fresh *os.File) error) error {
	var fresh *os.File
	var temporary string
	err := l.who.WithFileRights(func() (err error) {
		for range 100 {
			temporary = fmt.Sprintf(".%.200s.%08x", l.name, rand.Uint32())
			if fresh, err = l.open(temporary, os.O_RDWR|os.O_CREATE|os.O_EXCL); !errors.Is(err, fs.ErrExist) {
				break
			}
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create new log: %w", err)
	}
	if err = l.giveToOwner(fresh); err == nil {
		err = write(fresh)
	}
	if err == nil {
		err = fresh.Sync()
	}
	err = l.who.WithFileRights(func() error {
		dir := int(l.dir.Fd())
		if err == nil && !l.is(l.File) {
			err = ErrReplaced
		}
		if err == nil {
			err = unix.Renameat(dir, temporary, dir, l.name)
		}
		if err != nil {
			return errors.Join(err, unix.Unlinkat(dir, temporary, 0))
		}
		return nil
	})
	if err != nil {
		return errors.Join(err, fresh.Close())
	}
	old := l.File
	l.File = fresh
	return old.Close()
}

// giveToOwner transfers a new log to the old one's owner where root replaces another's. It
// names the file by its descriptor, so no one can put another in its place.
func (l *Log) giveToOwner(fresh *os.File) error {
	uid, gid, err := l.Owner()
	if err != nil || os.Geteuid() != 0 || l.who.UID != 0 {
		return err
	}
	return fresh.Chown(int(uid), int(gid))
}

// Owner returns the ids of the log's owner.
func (l *Log) Owner() (uid, gid uint32, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(l.Fd()), &st); err != nil {
		return 0, 0, fmt.Errorf("examine log: %w", err)
	}
	return st.Uid, st.Gid, nil
}

// Size is the file's size in bytes, 0 if it cannot be had.
func (l *Log) Size() int64 {
	info, err := l.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// maxLogs is how many captures of one process may write logs of default names at once.
const maxLogs = 16

// CreateDefaultLog creates PROG.PID.eventlog in the working directory, of a program's name
// what is printable, or where another
// capture of the process writes that one, PROG.PID-2.eventlog and so on.
func CreateDefaultLog(program string, pid int, who *User) (l *Log, err error) {
	base := fmt.Sprintf("%s.%d", printable.Name(filepath.Base(program)), pid)
	for n := 1; n <= maxLogs; n++ {
		path := base + ".eventlog"
		if n > 1 {
			path = fmt.Sprintf("%s-%d.eventlog", base, n)
		}
		if l, err = CreateLog(path, who); !errors.Is(err, eventlog.ErrBeingWritten) {
			break
		}
	}
	return l, err
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

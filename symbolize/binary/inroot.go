package binary

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// OpenInRoot opens a file for reading as a process whose root directory is root, which
// may be open with O_PATH alone. Whatever links lie on the way, also absolute ones and
// those that lead upwards, nothing outside is reached: root may belong to a container
// whose owner is hostile. No FIFO is waited on. A nil root is this process's own.
func OpenInRoot(root *os.File, path string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY
	if root == nil {
		return os.OpenFile(path, flags, 0)
	}
	return openat2(int(root.Fd()), path, unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
}

// ErrLink is wrapped by the error of a file that a link leads to.
var ErrLink = errors.New("a symbolic link leads there, and links to sources are not followed")

// OpenWithoutLinks opens a file as OpenInRoot does, if no link is on the way to it.
func OpenWithoutLinks(root *os.File, path string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY, Resolve: unix.RESOLVE_NO_SYMLINKS}
	dir := unix.AT_FDCWD
	if root != nil {
		dir = int(root.Fd())
		how.Resolve |= unix.RESOLVE_IN_ROOT
	}
	f, err := openat2(dir, path, how)
	if errors.Is(err, unix.ELOOP) {
		err = &fs.PathError{Op: "read", Path: path, Err: ErrLink}
	}
	return f, err
}

// ExistsWithoutLinks reports whether OpenWithoutLinks would find a file, without opening it.
func ExistsWithoutLinks(root *os.File, path string) bool {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	dir := unix.AT_FDCWD
	if root != nil {
		dir = int(root.Fd())
		how.Resolve |= unix.RESOLVE_IN_ROOT
	}
	f, err := openat2(dir, path, how)
	if err == nil {
		f.Close()
	}
	return !errors.Is(err, fs.ErrNotExist)
}

func openat2(dir int, path string, how unix.OpenHow) (*os.File, error) {
	if path == "" || strings.IndexByte(path, 0) >= 0 {
		return nil, &fs.PathError{Op: "openat2", Path: path, Err: unix.EINVAL}
	}
	// The kernel gives up where something on the way is renamed meanwhile: that may go on
	// for ever.
	const tries = 16
	var err error
	for range tries {
		var fd int
		if fd, err = unix.Openat2(dir, path, &how); err == nil {
			return os.NewFile(uintptr(fd), path), nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			break
		}
	}
	return nil, &fs.PathError{Op: "openat2", Path: path, Err: err}
}

// OpenRoot opens a directory to be a root for OpenInRoot.
func OpenRoot(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open root directory: %w", err)
	}
	return f, nil
}

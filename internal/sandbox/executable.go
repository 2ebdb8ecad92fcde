package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"ccagent/internal/capset"

	"golang.org/x/sys/unix"
)

// executable gives the path by which a child executes this program. A process of the same
// uid can trace a child from its exec until it makes itself not dumpable. Where the parent
// is not root but has capabilities, that process would get what it has not. The kernel
// makes a process not dumpable from the exec if it may not read what it executes, so the
// child of such a parent executes a copy that it may not.
func executable() string {
	const own = "/proc/self/exe"
	if sets, err := capset.Get(); os.Geteuid() == 0 || err == nil && sets == (capset.Sets{}) {
		return own
	}
	f, err := unreadableCopy()
	if err != nil {
		why := "not protected from its own user until it has confined itself (" + err.Error() + ")"
		incomplete.CompareAndSwap(nil, &why)
		return own
	}
	return fmt.Sprintf("/proc/self/fd/%d", f.Fd())
}

// unreadableCopy is this program in memory, with the mode 0111. It is kept open.
var unreadableCopy = sync.OnceValues(func() (*os.File, error) {
	exe, err := os.Open("/proc/self/exe")
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	fd, err := unix.MemfdCreate("ccagent", unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate("ccagent", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, fmt.Errorf("create a file in memory: %w", err)
	}
	w := os.NewFile(uintptr(fd), "copy")
	defer w.Close()
	if _, err := io.Copy(w, exe); err != nil {
		return nil, err
	}
	if err := w.Chmod(0o111); err != nil {
		return nil, err
	}
	// A file that is open for writing cannot be executed. O_PATH needs no right to read. The
	// number is one that starting a child does not use.
	path, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(path)
	const beyond = 48
	high, err := unix.FcntlInt(uintptr(path), unix.F_DUPFD_CLOEXEC, beyond)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(high), "copy"), nil
})

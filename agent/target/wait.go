package target

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// quiet is how long news may wait for further ones, so that a process that has very many
// is not attended to for each.
const quiet = 2 * time.Millisecond

// Watch has EndedWithin end early when one of the files becomes readable. They may be
// closed before the process is.
func (t *Process) Watch(fds []int) error {
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return fmt.Errorf("watch process %d: %w", t.PID, err)
	}
	err = unix.SetNonblock(ep, true) // for Go to wait for it
	for _, fd := range append([]int{t.handle}, fds...) {
		if err == nil {
			err = unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)})
		}
	}
	if err != nil {
		unix.Close(ep)
		return fmt.Errorf("watch process %d: %w", t.PID, err)
	}
	t.news = os.NewFile(uintptr(ep), "news of a process")
	return nil
}

// EndedWithin waits for the process's end, or for news of it, for at most d, and reports
// whether it has ended.
func (t *Process) EndedWithin(d time.Duration) (ended bool, err error) {
	if t.news == nil {
		return t.wait(t.file, d)
	}
	if t.woken {
		if ended, err := t.wait(t.file, quiet); ended || err != nil {
			return ended, err
		}
		d -= quiet
	}
	return t.wait(t.news, d)
}

// wait waits until one of the process's own files is readable.
func (t *Process) wait(file *os.File, d time.Duration) (ended bool, err error) {
	// A thread that slept in poll(2) itself would have Go's runtime wake up several
	// times to see whether it still does.
	conn, err := file.SyscallConn()
	if err == nil {
		err = file.SetReadDeadline(time.Now().Add(d))
	}
	t.woken = false
	if err == nil {
		err = conn.Read(func(fd uintptr) bool {
			if file == t.news {
				t.woken = t.hasNews(int(fd))
			}
			poll := []unix.PollFd{{Fd: int32(t.handle), Events: unix.POLLIN}}
			n, err := unix.Poll(poll, 0)
			ended = n > 0 && err == nil
			return ended || t.woken
		})
	}
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return ended, fmt.Errorf("wait for process %d: %w", t.PID, err)
	}
	return ended, nil
}

// hasNews takes what an epoll has, and lets go of files that will have nothing more.
func (t *Process) hasNews(ep int) bool {
	var events [64]unix.EpollEvent
	n, err := unix.EpollWait(ep, events[:], 0)
	if err != nil {
		return false
	}
	for _, e := range events[:n] {
		if e.Events&unix.EPOLLHUP != 0 && int(e.Fd) != t.handle {
			_ = unix.EpollCtl(ep, unix.EPOLL_CTL_DEL, int(e.Fd), nil)
		}
	}
	return n > 0
}

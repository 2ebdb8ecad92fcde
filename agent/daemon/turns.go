package daemon

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// The loop takes what has arrived in turns. Each wakes a CPU and, for as long as it takes, Go's own monitor, which
// then wakes every 20 µs: where nothing happens turns are rare, and a change of what processes run brings the
// next one forward. Whatever number of changes there are, turns keep a distance.
const (
	// turnInterval is while a process is new, or much arrives.
	turnInterval = 100 * time.Millisecond
	// quietInterval is otherwise, and changeInterval the least time from one to the next for a change.
	quietInterval  = time.Second
	changeInterval = 250 * time.Millisecond
	// settleInterval is how long a change is waited for to be whole: a program that starts is a fork, an exec and
	// its libraries.
	settleInterval = 20 * time.Millisecond
	// fastestQuiet is the highest rate of samples, Hz, of which the ring buffer holds those of some seconds.
	fastestQuiet = 251
)

// turns says when the loop has its next turn. It is used by one goroutine.
type turns struct {
	timer   *time.Timer
	last    time.Time // when the last one was
	due     time.Time
	changed <-chan struct{} // has an element when something has changed
	rearm   chan<- struct{} // asks for the next
	told    bool            // it has had its element since
}

// newTurns watches descriptors that poll as readable at each change, until ctx ends.
func newTurns(ctx context.Context, fds []int) (*turns, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch for changes: %w", err)
	}
	// Go's own poller waits for it, in place of a thread.
	if err := unix.SetNonblock(epoll, true); err != nil {
		unix.Close(epoll)
		return nil, fmt.Errorf("watch for changes: %w", err)
	}
	file := os.NewFile(uintptr(epoll), "changes")
	// Each is looked at once, until the next turn: on a host that starts programs all the time every change would wake a CPU.
	watch := func(how int) error {
		for _, fd := range fds {
			if err := unix.EpollCtl(epoll, how, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET | unix.EPOLLONESHOT, Fd: int32(fd)}); err != nil {
				return fmt.Errorf("watch for changes: %w", err)
			}
		}
		return nil
	}
	if err := watch(unix.EPOLL_CTL_ADD); err != nil {
		file.Close()
		return nil, err
	}
	conn, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("watch for changes: %w", err)
	}
	changed, rearm := make(chan struct{}, 1), make(chan struct{}, 1)
	context.AfterFunc(ctx, func() {
		file.Close()
		close(rearm)
	})
	go func() {
		events := make([]unix.EpollEvent, len(fds)+1)
		for range rearm {
			var err error
			again := func(uintptr) { err = watch(unix.EPOLL_CTL_MOD) } // keeps it open meanwhile
			if conn.Control(again) != nil || err != nil {
				return // it is closed
			}
			if conn.Read(func(fd uintptr) bool {
				n, err := unix.EpollWait(int(fd), events, 0)
				return n > 0 || err != nil && err != unix.EINTR
			}) != nil {
				return // it is closed
			}
			changed <- struct{}{}
		}
	}()
	rearm <- struct{}{}
	now := time.Now()
	return &turns{timer: time.NewTimer(turnInterval), last: now, due: now.Add(turnInterval), changed: changed, rearm: rearm}, nil
}

// hasten brings the next turn forward, since something has changed.
func (t *turns) hasten(now time.Time) {
	t.told = true
	due := now.Add(settleInterval)
	if next := t.last.Add(changeInterval); next.After(due) {
		due = next
	}
	if due.Before(t.due) {
		t.due = due
		t.timer.Reset(due.Sub(now))
	}
}

// next arranges the turn after the one that begins now, which takes what has changed.
func (t *turns) next(ctx context.Context, now time.Time, wait time.Duration) {
	t.last, t.due = now, now.Add(wait)
	t.timer.Reset(wait)
	if t.told && ctx.Err() == nil {
		t.told = false
		t.rearm <- struct{}{}
	}
}

// pause is how long the loop waits for the next turn where nothing changes.
func (d *Daemon) pause(now time.Time) time.Duration {
	if now.Sub(d.taken) < newInterval || len(d.boosts) > 0 || d.config.Frequency > fastestQuiet || d.engine.Busy() {
		return turnInterval
	}
	return quietInterval
}

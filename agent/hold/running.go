package hold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
)

// ErrEnded reports that a process has ended before one of its threads reached the point.
var ErrEnded = errors.New("the process has ended")

// Running stops the first thread of a running process that reaches an offset of a file, calls
// held, and releases the thread. The process's other threads run on. The error is a
// *TracedError if the process is traced already. A process that is frozen is waited for until it is thawed; one that is frozen meanwhile
// stays traced when the context ends, until it is thawed: none of its threads stops before.
func Running(ctx context.Context, pid int, path string, offset uint64, held func(tid int) error) error {
	return UnlessStuck(ctx, pid, func(begin func() error) error {
		return running(ctx, pid, path, offset, nil, func(tid int, _ uint64) error {
			if err := begin(); err != nil {
				return err
			}
			return held(tid)
		})
	})
}

// Gated is like Running, but holds a thread only where the gate allows it. held gets the time from
// which the thread is held, by CLOCK_MONOTONIC in ns.
func Gated(ctx context.Context, pid int, path string, offset uint64, gate Gate, held func(tid int, since uint64) error) error {
	return UnlessStuck(ctx, pid, func(begin func() error) error {
		return running(ctx, pid, path, offset, &gate, func(tid int, since uint64) error {
			if err := begin(); err != nil {
				return err
			}
			return held(tid, since)
		})
	})
}

// onThread calls f on a thread of its own.
func onThread(f func() error) error { return <-onThreadUntil(f) }

// onThreadUntil is onThread, and gives the channel that gets the error.
func onThreadUntil(f func() error) <-chan error {
	done := make(chan error, 1)
	go OnOwnThread(func() { done <- f() })
	return done
}

// patience is for how long threads are waited for that were asked to stop.
const patience = time.Second

// abandoned has, for processes that UnlessStuck has left, a channel each that is closed when they are let go of.
var abandoned sync.Map

// UnlessStuck calls f on a thread of its own (OnOwnThread), and returns without it if it goes on for too long after the context has ended: then no
// thread of the process stops, though each was asked to, because its control group is frozen. f has to call begin before it does what
// the caller waits for, and to end with its error: from then on f is waited for.
func UnlessStuck(ctx context.Context, pid int, f func(begin func() error) error) error {
	const waits, begun, left = 0, 1, 2
	var state atomic.Int32
	ended := make(chan struct{})
	done := onThreadUntil(func() error {
		defer abandoned.CompareAndDelete(pid, ended)
		defer close(ended)
		return f(func() error {
			if !state.CompareAndSwap(waits, begun) {
				return ctx.Err()
			}
			return nil
		})
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
	}
	if state.CompareAndSwap(waits, left) {
		abandoned.Store(pid, ended)
		return ctx.Err()
	}
	return <-done
}

func untraced(pid int) error {
	if status, err := procfs.ReadStatus(pid); err == nil && status.Tracer != 0 {
		return Explain(pid, unix.EPERM)
	}
	return nil
}

// frozenPeriod is how often it is looked whether a process was thawed.
const frozenPeriod = 20 * time.Millisecond

// awaitThawed waits while a process is frozen. Nothing has been done to it by then that would have to be undone.
func awaitThawed(ctx context.Context, pid int) error {
	for procfs.Frozen(pid) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(frozenPeriod):
		}
	}
	return nil
}

func running(ctx context.Context, pid int, path string, offset uint64, gate *Gate, held func(tid int, since uint64) error) (err error) {
	if err := awaitThawed(ctx, pid); err != nil {
		return err
	}
	if err := awaitOwn(pid); err != nil {
		return err
	}
	// Chosen before threads are traced: from then on, a thread that starts another stands still
	// with all signals blocked, until it is waited for.
	signal, err := SignalFor(pid)
	if err != nil {
		return err
	}
	s := seized{pid: pid, threads: map[int]bool{}, gone: map[int]bool{}}
	defer func() {
		if gate != nil && gate.Hasten != nil {
			defer gate.Hasten()() // each thread stands until this one detaches it
		}
		err = errors.Join(err, s.letGo())
	}()
	if err := s.seize(); err != nil {
		return err
	}
	point, err := newPoint(pid, path, offset, gate, signal)
	if err != nil {
		return err
	}
	defer point.Close()
	s.point = point
	// A wait is ended by a signal that the process ignores.
	defer context.AfterFunc(ctx, func() { _ = unix.Tgkill(pid, pid, point.Signal) })()
	if gate != nil && gate.Hasten != nil {
		defer gate.Hasten()()
	}
	for {
		if err := s.awaitContinued(ctx); err != nil {
			return err
		}
		tid, status, err := s.wait()
		if err != nil {
			return err
		}
		if there, err := point.Holds(tid, status.StopSignal()); err != nil {
			return err
		} else if there {
			err := func() error {
				defer s.resume(tid, 0)
				return held(tid, point.Since())
			}()
			return err
		}
		s.goOn(tid, status)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// seized are the threads of a process that are traced.
type seized struct {
	pid     int
	point   *Point
	threads map[int]bool
	gone    map[int]bool // threads that have ended, or are traced no more
	listens bool         // a signal had stopped the process when it was looked at last
}

// seize traces all threads, and those that they start.
func (s *seized) seize() error {
	for fresh := true; fresh; {
		fresh = false
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", s.pid))
		if err != nil {
			return fmt.Errorf("hold process %d: %w", s.pid, err)
		}
		for _, e := range entries {
			tid, err := strconv.Atoi(e.Name())
			if err != nil || s.threads[tid] {
				continue
			}
			_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, unix.PTRACE_O_TRACECLONE, 0, 0)
			switch {
			case errno == unix.ESRCH:
				continue // it has ended
			case errno != 0 && len(s.threads) > 0 && s.isOurs(tid):
				// Its creator was traced already.
			case errno != 0 && ending(tid):
				continue
			case errno != 0:
				return fmt.Errorf("hold process %d: %w", s.pid, Explain(tid, errno))
			}
			s.threads[tid], fresh = true, true
		}
	}
	if len(s.threads) == 0 {
		return ErrEnded
	}
	return nil
}

// ending reports whether a thread has ended, or is about to: it cannot be traced any more.
func ending(tid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", tid))
	if err != nil {
		return true
	}
	_, rest, _ := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	return len(rest) > 0 && (rest[0] == 'Z' || rest[0] == 'X')
}

func (s *seized) isOurs(tid int) bool {
	traced := (*TracedError)(nil)
	return errors.As(Explain(tid, unix.EPERM), &traced) && traced.Tracer == os.Getpid()
}

// awaitContinued waits for something to happen to a process that a signal has stopped, as SIGSTOP does: no other
// signal reaches it, also not the one that ends a wait.
func (s *seized) awaitContinued(ctx context.Context) error {
	for s.listens {
		if c, err := look(unix.P_ALL, 0, unix.WNOHANG); err != nil || c.signo != 0 {
			s.listens = false // wait tells what it was
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(comePeriod):
		}
	}
	return nil
}

// wait waits for a thread to stop. The error is ErrEnded where all have ended.
func (s *seized) wait() (tid int, status unix.WaitStatus, err error) {
	for {
		tid, status, err = await(unix.P_ALL, 0, 0)
		switch {
		case errors.Is(err, unix.ECHILD):
			return 0, 0, ErrEnded
		case err != nil:
			return 0, 0, fmt.Errorf("wait for process %d: %w", s.pid, err)
		case status.Stopped():
			s.threads[tid] = true
			if int(status)>>16 == unix.PTRACE_EVENT_CLONE {
				s.started(tid)
			}
			return tid, status, nil
		case tid == s.pid: // the last of its threads that is told to have ended
			s.lose(tid)
			return 0, 0, ErrEnded
		default:
			s.lose(tid)
		}
	}
}

// started takes note of the thread that a thread has just started. It is traced from its first
// instruction on, and stands still there; it may have been reported before its creator is.
func (s *seized) started(creator int) {
	if tid, err := unix.PtraceGetEventMsg(creator); err == nil && !s.gone[int(tid)] {
		s.threads[int(tid)] = true
	}
}

func (s *seized) lose(tid int) {
	delete(s.threads, tid)
	s.gone[tid] = true
}

// eventStop is PTRACE_EVENT_STOP, of a thread that is new, interrupted, or stopped with its
// process.
const eventStop = 128

// goOn continues a stopped thread as if it had no tracer.
func (s *seized) goOn(tid int, status unix.WaitStatus) {
	event := int(status) >> 16
	if event == eventStop && status.StopSignal() != unix.SIGTRAP {
		// The whole process is stopped, until a SIGCONT.
		s.listens = true
		_, _, _ = unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_LISTEN, uintptr(tid), 0, 0, 0, 0)
		return
	}
	s.resume(tid, s.own(status))
}

// own is the signal that a stopped thread is to have: none for a stop that is ptrace's or
// the point's.
func (s *seized) own(status unix.WaitStatus) unix.Signal {
	if int(status)>>16 != 0 || s.point != nil && status.StopSignal() == s.point.Signal {
		return 0
	}
	return status.StopSignal()
}

// resume fails only for a thread that has ended.
func (s *seized) resume(tid int, signal unix.Signal) { _ = unix.PtraceCont(tid, int(signal)) }

// letGo ends the tracing of all threads.
func (s *seized) letGo() error {
	for tid := range s.threads {
		s.interrupt(tid)
	}
	for len(s.threads) > 0 {
		tid, status, err := s.wait()
		if errors.Is(err, ErrEnded) {
			return nil
		}
		if err != nil {
			return err
		}
		s.detach(tid, status)
	}
	return nil
}

// interrupt has a thread stop, unless it has ended.
func (s *seized) interrupt(tid int) {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0, 0, 0); errno != 0 {
		s.lose(tid)
	}
}

// detach ends the tracing of a thread that has stopped.
func (s *seized) detach(tid int, status unix.WaitStatus) {
	_, _, _ = unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, uintptr(s.own(status)), 0, 0)
	s.lose(tid)
}

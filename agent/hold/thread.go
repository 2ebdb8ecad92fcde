package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Ambush is a point that one thread is about to reach, where a BPF program sends it a signal.
type Ambush struct {
	Signal unix.Signal
	// Arm has the signal sent from now on. The thread is traced by then.
	Arm func() error
	// Come reports whether the thread was sent the signal, and whether it has passed the point without.
	Come func() (held, passed bool, err error)
}

// Errors of Thread.
var (
	// ErrPassed is returned for a thread that has passed the point before it was traced.
	ErrPassed = errors.New("the thread has passed the point where it was to be held")
	// ErrStopped is returned for a process that was stopped, as by SIGSTOP.
	ErrStopped = errors.New("the process was stopped by a signal, and is left so")
)

// comePeriod is how often it is looked whether the thread has passed the point.
const comePeriod = 5 * time.Millisecond

// Thread traces one thread of a process until it comes to a point, calls held while it stands there,
// and lets it go. The process's other threads are not traced. It is called on an OS
// thread by OnOwnThread, or by UnlessStuck: a process that is frozen meanwhile keeps it until it is thawed, also when the context ends.
// The error is a *TracedError if the thread is traced already.
func Thread(ctx context.Context, pid, tid int, at Ambush, held func() error) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, 0, 0, 0); errno == unix.ESRCH {
		return ErrEnded
	} else if errno != 0 {
		return fmt.Errorf("hold thread %d: %w", tid, Explain(tid, errno))
	}
	s := seized{pid: pid, point: &Point{Signal: at.Signal}, threads: map[int]bool{tid: true}, gone: map[int]bool{}}
	if err := at.Arm(); err != nil {
		return errors.Join(err, s.letGo())
	}
	defer s.wakeUnless(ctx, tid, at.Come)()
	for {
		_, status, err := s.wait()
		if err != nil {
			return err
		}
		if int(status)>>16 == eventStop && status.StopSignal() != unix.SIGTRAP {
			s.detach(tid, status)
			return ErrStopped
		}
		if int(status)>>16 == 0 && status.StopSignal() == at.Signal {
			there, passed, err := at.Come()
			if err == nil && there {
				err = held()
			} else if err == nil && passed {
				err = ErrPassed
			} else if err == nil {
				err = ctx.Err()
			}
			if there || err != nil {
				s.detach(tid, status)
				return err
			}
		}
		s.goOn(tid, status)
	}
}

// wakeUnless sends the thread the signal, for which the tracer looks at it, when the context ends, and
// when it has passed the point. The function that it returns ends that.
func (s *seized) wakeUnless(ctx context.Context, tid int, come func() (held, passed bool, err error)) func() {
	done := make(chan struct{})
	go func() {
		again := time.NewTicker(comePeriod)
		defer again.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				_ = unix.Tgkill(s.pid, tid, s.point.Signal) // fails only for a thread that has ended
				return                                      // it has the signal as soon as it may run
			case <-again.C:
				if held, passed, err := come(); err == nil && (held || !passed) {
					continue
				}
				_ = unix.Tgkill(s.pid, tid, s.point.Signal)
			}
		}
	}()
	return func() { close(done) }
}

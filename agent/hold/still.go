package hold

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Registers are those of a stopped thread that matter for Haskell code.
type Registers struct {
	PC       uint64
	Base, Sp uint64 // of the STG machine, if the thread runs Haskell code
}

// Still holds threads of a process. Its methods may be called in the function that Stilled calls
// alone.
type Still struct {
	pid  int
	held map[int]unix.Signal // with the signal that each is to have when it goes on
	// since is when the first was stopped.
	since time.Time
}

// Stilled calls f, which may stop threads of a process. All of them go on when it returns, also if
// this process is killed. It returns for how long the process was not left to run as it would. The
// error is f's own, or a *TracedError if the process is traced already.
func Stilled(pid int, f func(*Still) error) (pause time.Duration, err error) {
	if err := untraced(pid); err != nil {
		return 0, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		// All of ptrace's requests must come from one thread. It ends with the goroutine, so that
		// the kernel lets go of what was not to be stopped in time.
		runtime.LockOSThread()
		s := &Still{pid: pid, held: map[int]unix.Signal{}}
		defer func() {
			s.ReleaseAll()
			if !s.since.IsZero() {
				pause = time.Since(s.since)
			}
		}()
		err = f(s)
	}()
	<-done
	return pause, err
}

// stopPatience is how long a thread may take to stop; one that the kernel does not interrupt, as in
// a read from a disk, is left to run.
const stopPatience = 20 * time.Millisecond

// Stop stops a thread and returns its registers.
func (s *Still) Stop(tid int) (Registers, error) {
	if _, again := s.held[tid]; !again {
		if err := s.stop(tid); err != nil {
			return Registers{}, err
		}
	}
	r, err := registers(tid)
	if err != nil {
		return Registers{}, fmt.Errorf("read registers of thread %d: %w", tid, err)
	}
	return r, nil
}

func (s *Still) stop(tid int) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("stop thread %d: %w", tid, Explain(tid, errno))
	}
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("stop thread %d: %w", tid, errno)
	}
	if s.since.IsZero() {
		s.since = time.Now()
	}
	for end := time.Now().Add(stopPatience); ; runtime.Gosched() {
		var status unix.WaitStatus
		got, err := unix.Wait4(tid, &status, unix.WALL|unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("stop thread %d: %w", tid, err)
		case got == tid && status.Stopped():
			signal := unix.Signal(0)
			if int(status)>>16 == 0 {
				signal = status.StopSignal() // it was about to get it
			}
			s.held[tid] = signal
			return nil
		case got == tid:
			return fmt.Errorf("stop thread %d: %w", tid, ErrEnded)
		case time.Now().After(end):
			return fmt.Errorf("stop thread %d: the kernel does not interrupt it", tid)
		}
	}
}

// Release lets a thread go on.
func (s *Still) Release(tid int) {
	if signal, held := s.held[tid]; held {
		_, _, _ = unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, uintptr(signal), 0, 0)
		delete(s.held, tid)
	}
}

// ReleaseAll lets all threads go on.
func (s *Still) ReleaseAll() {
	for tid := range s.held {
		s.Release(tid)
	}
}

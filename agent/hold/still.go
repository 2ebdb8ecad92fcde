package hold

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/bpf"
)

// Registers are those of a stopped thread that matter for Haskell code.
type Registers struct {
	PC       uint64
	Base, Sp uint64 // of the STG machine, if the thread runs Haskell code
	Hp       uint64
	CSp      uint64   // C's stack pointer
	Thread   uint64   // pthread_t, where a register has it
	General  []uint64 // all that may hold an address
	// Waits is set if the stop ended a system call in which the thread waited for something, other than for room where it writes.
	Waits bool
}

// Still holds threads of a process. Its methods may be called in the function that Stilled calls
// alone.
type Still struct {
	pid  int
	held map[int]unix.Signal // with the signal that each is to have when it goes on
	late []int               // threads that were asked to stop, and had not in time
	// since is when the first thread was asked to stop, stopped when the first had.
	since, stopped time.Time
	frozen         map[int]bpf.ThreadRegisters // of a process of which no thread runs, those of all; nil for others
}

// Stilled calls f, which may stop threads of a process. All of them go on when it returns, also if
// this process is killed. It returns for how long the process was not left to run as it would. The
// error is f's own, or a *TracedError if the process is traced already.
func Stilled(pid int, f func(*Still) error) (pause time.Duration, err error) {
	if err := awaitOwn(pid); err != nil {
		return 0, err
	}
	done := make(chan struct{})
	go OnOwnThread(func() {
		defer close(done)
		s := &Still{pid: pid, held: map[int]unix.Signal{}}
		defer func() {
			s.ReleaseAll()
			if !s.since.IsZero() {
				pause = time.Since(s.since)
			}
		}()
		err = f(s)
	})
	<-done
	return pause, err
}

// ownPatience is how long a process that this one still traces is waited for: until a thread of Stilled has ended, which took no
// part in the wait for it.
const ownPatience = time.Second

// awaitOwn fails if a process is traced, but waits where it is this one that lets go of it.
func awaitOwn(pid int) error {
	if ended, is := abandoned.Load(pid); is {
		select {
		case <-ended.(chan struct{}):
			abandoned.CompareAndDelete(pid, ended)
		case <-time.After(ownPatience):
		}
	}
	for end := time.Now().Add(ownPatience); ; pollStop() {
		err := untraced(pid)
		traced := (*TracedError)(nil)
		if !errors.As(err, &traced) || traced.Tracer != os.Getpid() && traced.Comm != "" || time.Now().After(end) {
			return err
		}
	}
}

// Frozen reports whether the process is frozen, so that none of its threads runs, and none is stopped.
func (s *Still) Frozen() bool { return s.frozen != nil }

// Since is when the first thread had stopped; the zero time if none has.
func (s *Still) Since() time.Time { return s.stopped }

// stopPatience is how long a thread may take to stop; one that the kernel does not interrupt, as in
// a read from a disk, is left to run.
const stopPatience = 20 * time.Millisecond

// Stop stops a thread and returns its registers.
func (s *Still) Stop(tid int) (Registers, error) {
	if _, again := s.held[tid]; again {
		return s.registers(tid)
	}
	all, err := s.StopAll([]int{tid}, 0)
	if err != nil {
		return Registers{}, err
	}
	r, there := all[tid]
	if !there {
		return Registers{}, fmt.Errorf("stop thread %d: %w", tid, ErrEnded)
	}
	return r, nil
}

// ErrLate is returned where a thread has not stopped in time: it waits for a CPU, or the kernel does not interrupt it.
var ErrLate = errors.New("not all of its threads stopped in time")

// StopAll stops threads that are not stopped yet, and returns the registers of each; those that have ended are left out. All are asked
// to stop before one is waited for: on a busy machine each of them needs its turn on a CPU for it. The error is ErrLate where that takes longer
// than patience since the first was asked, or, if that is 0, where none has stopped for stopPatience.
func (s *Still) StopAll(tids []int, patience time.Duration) (map[int]Registers, error) {
	all := make(map[int]Registers, len(tids))
	if s.frozen != nil {
		for _, tid := range tids {
			if t, there := s.frozen[tid]; there {
				all[tid] = keptRegisters(s.pid, &t)
			}
		}
		return all, nil
	}
	wait := make([]int, 0, len(tids))
	defer func() { s.late = append(s.late, wait...) }()
	for _, tid := range tids {
		if err := s.interrupt(tid); err == nil {
			wait = append(wait, tid)
		} else if !errors.Is(err, ErrEnded) {
			return nil, err
		}
	}
	asked, last := slices.Clone(wait), time.Now()
	for len(wait) > 0 {
		before := len(wait)
		wait = slices.DeleteFunc(wait, func(tid int) bool {
			there, err := s.collect(tid)
			return there || err != nil // it has ended
		})
		now := time.Now()
		if len(wait) < before {
			last = now
		}
		switch late := now.Sub(s.since) > patience; {
		case len(wait) == 0:
		case patience > 0 && late, patience == 0 && now.Sub(last) > stopPatience:
			return nil, ErrLate
		default:
			pollStop()
		}
	}
	for _, tid := range asked {
		if _, held := s.held[tid]; !held {
			continue
		}
		r, err := s.registers(tid)
		if err != nil {
			return nil, err
		}
		all[tid] = r
	}
	return all, nil
}

// StopSome stops those threads that can be stopped at about the same time, and calls f with each and its registers. Those that
// take longer than patience after the first, since they wait for a CPU, are let go on.
func (s *Still) StopSome(tids []int, patience time.Duration, f func(tid int, r Registers)) {
	if s.frozen != nil {
		for _, tid := range tids {
			if r, err := s.Stop(tid); err == nil {
				f(tid, r)
			}
		}
		return
	}
	var wait []int
	for _, tid := range tids {
		if s.interrupt(tid) == nil {
			wait = append(wait, tid)
		}
	}
	for end := time.Now().Add(stopPatience); len(wait) > 0 && time.Now().Before(end); pollStop() {
		wait = slices.DeleteFunc(wait, func(tid int) bool {
			there, err := s.collect(tid)
			if there {
				if r, err := s.registers(tid); err == nil {
					f(tid, r)
				}
			}
			return there || err != nil
		})
		if first := s.stopped.Add(patience); len(s.held) > 0 && first.Before(end) {
			end = first
		}
	}
	s.late = append(s.late, wait...)
}

func (s *Still) registers(tid int) (Registers, error) {
	r, err := registers(tid)
	if err != nil {
		return Registers{}, fmt.Errorf("read registers of thread %d: %w", tid, err)
	}
	return r, nil
}

// interrupt asks a thread to stop; collect takes notice when it has.
func (s *Still) interrupt(tid int) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("stop thread %d: %w", tid, Explain(tid, errno))
	}
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("stop thread %d: %w", tid, errno)
	}
	if s.since.IsZero() {
		s.since = time.Now()
	}
	return nil
}

// collect reports whether a thread has stopped that interrupt has asked to.
func (s *Still) collect(tid int) (there bool, err error) {
	got, status, err := await(unix.P_PID, tid, unix.WNOHANG)
	switch {
	case err == nil && got != tid:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("stop thread %d: %w", tid, err)
	case !status.Stopped():
		return false, fmt.Errorf("stop thread %d: %w", tid, ErrEnded)
	}
	signal := unix.Signal(0)
	if int(status)>>16 == 0 {
		signal = status.StopSignal() // it was about to get it
	}
	s.held[tid] = signal
	if s.stopped.IsZero() {
		s.stopped = time.Now()
	}
	return true, nil
}

// pollStop waits for a moment: the thread may need the CPU that the caller is on, with a higher priority.
func pollStop() {
	_ = unix.Nanosleep(&unix.Timespec{Nsec: int64(10 * time.Microsecond)}, nil)
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
	for _, tid := range s.late { // the kernel lets go of those that stop only now when the caller's OS thread ends
		_, _ = s.collect(tid)
	}
	s.late = nil
	for tid := range s.held {
		s.Release(tid)
	}
}

//go:build linux && amd64

// Package trace runs a program under ptrace and stops its threads at breakpoints, after
// single steps, or wherever they are.
//
// All calls for a process must be made by the OS thread that started it, which the caller
// locks (runtime.LockOSThread).
package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrExited is returned if the process ends before it stops.
var ErrExited = errors.New("traced process has ended")

// Process is a traced process. Between calls at least one of its threads is stopped; others
// may run.
type Process struct {
	PID     int
	cmd     *exec.Cmd
	threads map[int]bool // known threads; true while stopped
	hit     []stop       // stops at breakpoints, not yet handled
	exited  bool
}

// Options of Start.
type Options struct {
	Root   string // chroot directory; none if empty
	Dir    string
	Env    []string
	Stdout io.Writer
	Stderr io.Writer
}

// Start starts a program without address randomisation, stopped before its first
// instruction. It is killed if the caller's thread ends.
func Start(path string, args []string, o Options) (*Process, error) {
	const addrNoRandomize = 0x0040000
	old, _, errno := unix.Syscall(unix.SYS_PERSONALITY, 0xffffffff, 0, 0)
	if errno != 0 {
		return nil, fmt.Errorf("get personality: %w", errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_PERSONALITY, old|addrNoRandomize, 0, 0); errno != 0 {
		return nil, fmt.Errorf("disable address randomisation: %w", errno)
	}
	defer unix.Syscall(unix.SYS_PERSONALITY, old, 0, 0)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = o.Dir, o.Env, o.Stdout, o.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Chroot: o.Root}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start traced %s: %w", path, err)
	}
	p := &Process{PID: cmd.Process.Pid, cmd: cmd, threads: map[int]bool{cmd.Process.Pid: true}}
	var status unix.WaitStatus
	if _, err := unix.Wait4(p.PID, &status, unix.WALL, nil); err != nil || !status.Stopped() {
		p.Close()
		return nil, fmt.Errorf("start traced %s: not stopped at its start: %v", path, err)
	}
	if err := unix.PtraceSetOptions(p.PID, unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_EXITKILL); err != nil {
		p.Close()
		return nil, fmt.Errorf("trace %s: %w", path, err)
	}
	return p, nil
}

// Close kills the process and reaps it.
func (p *Process) Close() {
	if !p.exited {
		_ = unix.Kill(p.PID, unix.SIGKILL)
		for !p.exited {
			if _, err := p.wait(); err != nil {
				p.exited = true
			}
		}
	}
	// This lets os/exec finish copying the output; the child is already reaped.
	_ = p.cmd.Wait()
}

// Registers returns a stopped thread's registers in the kernel's order.
func (p *Process) Registers(tid int) ([]uint64, error) {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return nil, fmt.Errorf("read registers of thread %d: %w", tid, err)
	}
	return []uint64{r.R15, r.R14, r.R13, r.R12, r.Rbp, r.Rbx, r.R11, r.R10, r.R9, r.R8, r.Rax, r.Rcx, r.Rdx,
		r.Rsi, r.Rdi, r.Orig_rax, r.Rip, r.Cs, r.Eflags, r.Rsp, r.Ss}, nil
}

func (p *Process) setPC(tid int, pc uint64) error {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(tid, &r); err != nil {
		return err
	}
	r.Rip = pc
	r.Orig_rax = ^uint64(0) // there is no system call to restart
	return unix.PtraceSetRegs(tid, &r)
}

// Poke writes a word of memory by means of a stopped thread.
func (p *Process) Poke(tid int, address, word uint64) error {
	if _, err := unix.PtracePokeData(tid, uintptr(address), binary.LittleEndian.AppendUint64(nil, word)); err != nil {
		return fmt.Errorf("write word at %#x: %w", address, err)
	}
	return nil
}

// stop is a thread's stop that the caller has to handle.
type stop struct {
	tid    int
	signal unix.Signal
}

// wait waits until a thread stops, and handles new and ended threads meanwhile.
func (p *Process) wait() (stop, error) {
	if n := len(p.hit); n > 0 {
		s := p.hit[n-1]
		p.hit = p.hit[:n-1]
		return s, nil
	}
	for {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return stop{}, fmt.Errorf("wait for process %d: %w", p.PID, err)
		case status.Exited() || status.Signaled():
			delete(p.threads, tid)
			if tid == p.PID {
				p.exited = true
				return stop{}, ErrExited
			}
			continue
		case !status.Stopped():
			continue
		}
		_, known := p.threads[tid]
		p.threads[tid] = true
		if !known && status.StopSignal() == unix.SIGSTOP || status.TrapCause() > 0 {
			// This is a new thread's first stop, or that of its creator.
			if err := p.resume(tid, 0); err != nil {
				return stop{}, err
			}
			continue
		}
		return stop{tid, status.StopSignal()}, nil
	}
}

func (p *Process) resume(tid int, signal unix.Signal) error {
	p.threads[tid] = false
	if err := unix.PtraceCont(tid, int(signal)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("resume thread %d: %w", tid, err)
	}
	return nil
}

func (p *Process) resumeAll() error {
	for tid, stopped := range p.threads {
		waiting := slices.ContainsFunc(p.hit, func(s stop) bool { return s.tid == tid })
		if stopped && !waiting {
			if err := p.resume(tid, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// RunTo lets the process run until one of its threads reaches an address for the nth time, n
// ≥ 1, and returns that thread's id. Other threads keep running.
func (p *Process) RunTo(address uint64, n int) (tid int, err error) {
	var original [1]byte
	if _, err := unix.PtracePeekText(p.stopped(), uintptr(address), original[:]); err != nil {
		return 0, fmt.Errorf("read code at %#x: %w", address, err)
	}
	insert := func(tid int, b byte) error {
		if _, err := unix.PtracePokeText(tid, uintptr(address), []byte{b}); err != nil {
			return fmt.Errorf("write code at %#x: %w", address, err)
		}
		return nil
	}
	// A thread that is already at the address must leave it first.
	for tid, stopped := range p.threads {
		if !stopped {
			continue
		}
		if r, err := p.Registers(tid); err == nil && r[16] == address {
			if err := p.Step(tid); err != nil {
				return 0, err
			}
		}
	}
	if err := insert(p.stopped(), 0xcc); err != nil {
		return 0, err
	}
	if err := p.resumeAll(); err != nil {
		return 0, err
	}
	for {
		s, err := p.wait()
		if err != nil {
			return 0, err
		}
		if s.signal == unix.SIGTRAP {
			r, err := p.Registers(s.tid)
			if err != nil {
				return 0, err
			}
			if r[16] == address+1 {
				if err := errors.Join(insert(s.tid, original[0]), p.setPC(s.tid, address)); err != nil {
					return 0, err
				}
				if n--; n == 0 {
					return s.tid, nil
				}
				if err := errors.Join(p.Step(s.tid), insert(s.tid, 0xcc)); err != nil {
					return 0, err
				}
			}
			s.signal = 0
		}
		if err := p.resume(s.tid, s.signal); err != nil {
			return 0, err
		}
	}
}

// stopped returns a stopped thread, by means of which the process's memory can be written.
func (p *Process) stopped() int {
	for tid, stopped := range p.threads {
		if stopped {
			return tid
		}
	}
	return p.PID
}

// Step lets a stopped thread execute one instruction. If the instruction waits for other
// threads, they run.
func (p *Process) Step(tid int) error {
	signal := 0
	for {
		_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SINGLESTEP, uintptr(tid), 0, uintptr(signal), 0, 0)
		if errno != 0 {
			return fmt.Errorf("step thread %d: %w", tid, errno)
		}
		status, err := p.waitFor(tid)
		if err != nil {
			return err
		}
		switch s := status.StopSignal(); {
		case s == unix.SIGTRAP && status.TrapCause() <= 0:
			return nil
		case s == unix.SIGSTOP, s == unix.SIGTRAP:
			signal = 0
		default:
			signal = int(s)
		}
	}
}

// waitFor waits until one thread stops. New threads, and threads that get a signal,
// continue; breakpoints hit by other threads are kept for wait.
func (p *Process) waitFor(tid int) (unix.WaitStatus, error) {
	for {
		var status unix.WaitStatus
		got, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("wait for thread %d: %w", tid, err)
		case status.Exited() || status.Signaled():
			delete(p.threads, got)
			p.exited = p.exited || got == p.PID
			if got == tid || p.exited {
				return 0, ErrExited
			}
		case !status.Stopped():
		case got == tid:
			return status, nil
		case status.StopSignal() == unix.SIGTRAP && status.TrapCause() <= 0:
			p.threads[got] = true
			p.hit = append(p.hit, stop{got, unix.SIGTRAP})
		default:
			signal := status.StopSignal()
			if signal == unix.SIGSTOP || signal == unix.SIGTRAP {
				signal = 0
			}
			if err := p.resume(got, signal); err != nil {
				return 0, err
			}
		}
	}
}

package target

import (
	"cmp"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/config"
	"ccagent/agent/hold"
	"ccagent/agent/invoker"
	"ccagent/agent/procfs"
	"ccagent/internal/capset"
	"ccagent/internal/credentials"
	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
)

// Process is the process being profiled.
type Process struct {
	PID  int
	Path string // the executable, as the kernel resolved it
	Args []string

	handle int      // pidfd: readable when the process has ended
	file   *os.File // the same, for Go to wait for
	news   *os.File // epoll of it and of what Watch was given, nil if that was nothing
	woken  bool     // the last wait ended with news
	// child is set when the agent started the program.
	child *child
}

// child is a started program. Until release it stands at its first instruction.
type child struct {
	cmd     *exec.Cmd
	release chan struct{} // closed to let the program run
	loaded  chan struct{} // closed when it stands at its entry, its libraries mapped; never if it has none
	resume  chan struct{} // closed to let it run from there
	running chan error    // the outcome of letting it run
	waited  chan struct{} // closed when state and err are set
	state   *os.ProcessState
	err     error

	armed   chan struct{} // closed when entry and problem are set
	entry   *hold.Point   // its first own instruction, nil without a dynamic linker
	problem error         // for which it cannot be held there
}

// StartError is returned when a program cannot be started; Status is the exit
// status that shells use for the case: 126, 127, or 128 and the number of the signal that ended it.
type StartError struct {
	Program string
	Status  int
	Err     error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Program, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

// Start starts the program as the invoker, with the agent's working directory
// and, where none are given, its standard streams, stopped at its first instruction.
func Start(argv []string, who *invoker.User, stdio [3]*os.File) (*Process, error) {
	// With root's rights the answer would reveal files in folders that the invoker may not
	// enter.
	var path string
	err := who.WithFileRights(func() (err error) {
		path, err = lookPath(argv[0], who.Environ)
		return err
	})
	if err != nil {
		return nil, startError(argv[0], err)
	}
	cmd := &exec.Cmd{
		Path: path, Args: argv, Env: who.Environ,
		Stdin: cmp.Or(stdio[0], os.Stdin), Stdout: cmp.Or(stdio[1], os.Stdout), Stderr: cmp.Or(stdio[2], os.Stderr),
		SysProcAttr: &syscall.SysProcAttr{Ptrace: true},
	}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: who.UID, Gid: who.GID, Groups: who.Groups}
	}
	c := &child{cmd: cmd, release: make(chan struct{}), loaded: make(chan struct{}), resume: make(chan struct{}), running: make(chan error, 1), waited: make(chan struct{}), armed: make(chan struct{})}
	started := make(chan error, 1)
	if who.UID == uint32(os.Geteuid()) {
		passOn(true)
		defer passOn(false)
	}
	go c.run(started)
	if err := <-started; err != nil {
		return nil, startError(argv[0], err)
	}
	t := &Process{PID: cmd.Process.Pid, Args: argv, child: c}
	if err := t.open(); err != nil {
		c.kill()
		return nil, err
	}
	return t, nil
}

// run owns the child from its start to its end. All of ptrace's requests must
// come from the thread that started it.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The agent's own capabilities are none of the program's.
	if err := capset.ClearInherited(); err != nil {
		started <- err
		return
	}
	if err := c.cmd.Start(); err != nil {
		started <- explainStart(err)
		return
	}
	pid := c.cmd.Process.Pid
	var status unix.WaitStatus
	if _, err := wait4(pid, &status); err != nil {
		started <- fmt.Errorf("wait for exec: %w", err)
		return
	}
	if !status.Stopped() {
		started <- endedError(status)
		return
	}
	// It stands for as long as the agent lives: a tracer that dies lets it run, since the
	// stop has been waited for. So it shall be where it executes another program.
	if err := unix.PtraceSetOptions(pid, unix.PTRACE_O_TRACEEXEC); err != nil {
		c.cmd.Process.Kill()
		started <- fmt.Errorf("trace the program: %w", err)
		return
	}
	started <- nil
	go func() { // the kernel takes some milliseconds, in which the agent prepares itself
		c.entry, c.problem = entryPoint(pid)
		close(c.armed)
	}()
	<-c.release
	<-c.armed
	var sig syscall.Signal
	if c.entry != nil {
		var there bool
		if there, sig = runToEntry(pid, c.entry); there {
			close(c.loaded)
			<-c.resume
		}
	}
	c.running <- detach(pid, sig)
	awaitEnd(pid)
	c.err = c.cmd.Wait()
	c.state = c.cmd.ProcessState
	close(c.waited)
}

// awaitEnd waits for a child's end, and leaves its other changes alone: a wait for it would take the
// stops of its threads from whoever traces them meanwhile, on another thread of this process.
func awaitEnd(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended, or the kernel is too old
	}
	defer unix.Close(fd)
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

func wait4(pid int, status *unix.WaitStatus) (int, error) {
	for {
		n, err := unix.Wait4(pid, status, 0, nil)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func (c *child) kill() {
	c.cmd.Process.Kill()
	close(c.resume)
	close(c.release)
	<-c.running
	<-c.waited
}

// explainStart says who traces the agent, which keeps it from tracing what it starts.
func explainStart(err error) error {
	if errors.Is(err, unix.EPERM) {
		if traced := (*hold.TracedError)(nil); errors.As(hold.Explain(os.Getpid(), unix.EPERM), &traced) {
			return fmt.Errorf("ccagent cannot trace what it starts: %w", traced)
		}
	}
	return err
}

// endedError is the end of a program whose first instruction has not run: somebody has killed it, or the kernel cannot map it.
type endedError unix.WaitStatus

func (e endedError) Error() string {
	if s := unix.WaitStatus(e); s.Signaled() {
		return fmt.Sprintf("signal %d (%v) ended it before its first instruction", s.Signal(), s.Signal())
	}
	return fmt.Sprintf("it ended before its first instruction, with status %d", unix.WaitStatus(e).ExitStatus())
}

// exitStatus is what a shell says of it.
func (e endedError) exitStatus() int {
	if s := unix.WaitStatus(e); s.Signaled() {
		return 128 + int(s.Signal())
	}
	return unix.WaitStatus(e).ExitStatus()
}

func startError(program string, err error) error {
	var path *os.PathError // names the program once more
	if errors.As(err, &path) {
		err = path.Err
	}
	e := &StartError{Program: program, Status: 126, Err: err}
	if ended := endedError(0); errors.As(err, &ended) {
		e.Status = ended.exitStatus()
	} else if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		e.Status = 127
	}
	return e
}

// lookPath finds the program as the invoker's shell would.
func lookPath(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		candidate := filepath.Join(dir, name)
		if !filepath.IsAbs(candidate) {
			candidate = "./" + candidate
		}
		if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return candidate, nil
		}
	}
	return "", exec.ErrNotFound
}

// Attach takes hold of a running process.
func Attach(pid int) (*Process, error) {
	t := &Process{PID: pid}
	status, err := procfs.ReadStatus(pid)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil, fmt.Errorf("attach: there is no process %d", pid)
	}
	if err != nil {
		return nil, fmt.Errorf("attach to process %d: %w", pid, err)
	}
	if status.TGID != pid {
		return nil, fmt.Errorf("attach: %d is a thread; its process is %d", pid, status.TGID)
	}
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil {
		t.Args = invoker.SplitNUL(raw)
	}
	return t, t.open()
}

func (t *Process) open() error {
	fd, err := unix.PidfdOpen(t.PID, unix.PIDFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("open process %d: %w", t.PID, err)
	}
	t.handle, t.file = fd, os.NewFile(uintptr(fd), "pidfd")
	if path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", t.PID)); err == nil {
		t.Path = path
	}
	return nil
}

// CodeSize is how many bytes of the program's file are mapped as code, 0 if
// that cannot be had.
func (t *Process) CodeSize() (size uint64) {
	t.withFile(func(f *elffile.File) {
		for _, s := range f.Segments {
			if s.Type == elf.PT_LOAD && s.Flags&elf.PF_X != 0 && s.Filesz <= f.Size() {
				size += s.Filesz
			}
		}
		size = min(size, f.Size())
	})
	return size
}

// Stripped reports whether the program's file holds GHC's run-time system, as the dynamic linker's
// symbols show, and has no others.
func (t *Process) Stripped() (stripped bool) {
	t.withFile(func(f *elffile.File) {
		hash, err := f.NameHash()
		if err != nil || hash == nil || f.HasSymtab() {
			return
		}
		_, stripped, err = hash.Find(ghc.UpdateFrameName + ghc.InfoSuffix)
		stripped = stripped && err == nil
	})
	return stripped
}

// withFile calls do with the program's file, if it can be read.
func (t *Process) withFile(do func(f *elffile.File)) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/exe", t.PID))
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return
	}
	if f, err := elffile.Open(file, info.Size()); err == nil {
		do(f)
	}
}

// Started reports whether we started the process, and did not find it running.
func (t *Process) Started() bool { return t.child != nil }

// loadPatience is how long a program's libraries may take to be ready.
const loadPatience = time.Second

// Run lets a started program run; nothing for an attached one. One with a dynamic linker
// waits at its own first instruction until loaded, which may attend to its libraries, has
// returned; unless its libraries' initialisers take longer than anyone wants to wait.
func (t *Process) Run(loaded func() error) error {
	c := t.child
	if c == nil {
		return nil
	}
	close(c.release)
	var failed, err error
	select {
	case <-c.loaded:
		func() {
			defer close(c.resume) // whatever becomes of the agent
			failed = loaded()
		}()
		err = <-c.running
	case err = <-c.running:
	case <-time.After(loadPatience):
		close(c.resume)
	}
	// What ended meanwhile has nothing to be let go of.
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("let the program run: %w", err)
	}
	return failed
}

// LetGo lets a started program run, if it does not yet, without anyone who attends to it.
func (t *Process) LetGo() error {
	if t.child != nil {
		select {
		case <-t.child.release:
			return nil
		default:
		}
	}
	return t.Run(func() error { return nil })
}

// Unheld is why a program that was run could not be held at its own first instruction,
// nil if it was, or has no dynamic linker.
func (t *Process) Unheld() error {
	if t.child == nil {
		return nil
	}
	<-t.child.armed
	return t.child.problem
}

// ExitStatus waits for a started program's end and gives its status as a shell
// would: 128 and the signal's number if a signal ended it. False when ctx ended
// the waiting, and for an attached process, whose status is its parent's alone.
func (t *Process) ExitStatus(ctx context.Context) (int, bool) {
	if t.child == nil {
		return 0, false
	}
	select {
	case <-t.child.waited:
	case <-ctx.Done():
		return 0, false
	}
	if t.child.state == nil { // its end could not be waited for
		return 0, false
	}
	ws, ok := t.child.state.Sys().(syscall.WaitStatus)
	if !ok {
		return 0, false
	}
	if ws.Signaled() {
		return 128 + int(ws.Signal()), true
	}
	return ws.ExitStatus(), true
}

// MayTrace refuses processes that are not the invoker's. The kernel lets root
// trace anything; a user who may run the agent by sudo gets what is theirs.
func MayTrace(pid int, who *invoker.User) error {
	if who.UID == 0 {
		return nil
	}
	status, err := procfs.ReadStatus(pid)
	if err != nil {
		return fmt.Errorf("attach to process %d: %w", pid, err)
	}
	for _, uid := range status.UIDs {
		if uid != who.UID {
			return fmt.Errorf("attach: process %d belongs to another user (uid %d); --user NAME attaches to it for whom root allows that in %s, and root itself to any process", pid, uid, config.Path)
		}
	}
	for _, gid := range status.GIDs {
		if gid != who.GID && !slices.Contains(who.Groups, gid) {
			return fmt.Errorf("attach: process %d has a group's rights (gid %d) that its user has not; run ccagent from root's own shell", pid, gid)
		}
	}
	return nil
}

// Owner returns the ids of the user whose process it is. A process that has several users'
// rights counts as one of nobody's.
func Owner(pid int) (credentials.Credentials, error) {
	s, err := procfs.ReadStatus(pid)
	if err != nil {
		return credentials.Credentials{}, fmt.Errorf("attach to process %d: %w", pid, err)
	}
	u, g := s.UIDs, s.GIDs
	if u[0] != u[1] || u[0] != u[2] || u[0] != u[3] || g[0] != g[1] || g[0] != g[2] || g[0] != g[3] {
		return credentials.Nobody(), nil
	}
	return credentials.Credentials{UID: u[0], GID: g[0], Groups: s.Groups}, nil
}

// Close lets go of the process; a program that was never let run is killed.
func (t *Process) Close() error {
	if t.child != nil {
		select {
		case <-t.child.release:
		default:
			t.child.kill()
		}
		// Not before the program has ended, if that is waited for: an agent that is killed
		// while it takes a probe out of a process has the kernel leave the breakpoint there.
		<-t.child.armed
		if t.child.entry != nil {
			t.child.entry.Close() // fails only for what is gone already
		}
	}
	if t.news != nil {
		t.news.Close()
	}
	return t.file.Close()
}

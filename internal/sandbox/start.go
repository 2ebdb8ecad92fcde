package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"ccagent/internal/capset"

	"golang.org/x/sys/unix"
)

// Config says what a child is to be.
type Config struct {
	Role string // what it does: a key of what Main is given
	Name string // by which lists of processes show it
	// Memory bounds, roughly, what it holds, in bytes; 0 leaves that alone.
	Memory uint64
	// FileSize bounds each file that it writes, in bytes.
	FileSize uint64
}

// Child is a running child. The parent calls Wait, once.
type Child struct {
	*Conn
	// Confined is what the child reached of the confinement.
	Confined Confinement

	cmd    *exec.Cmd
	ended  chan error
	stderr chan []byte
}

// Confinement is what a child says of itself before it is given anything.
type Confinement struct {
	UID    uint32 // as which it runs
	Filter string // why there is no system call filter; empty if there is
}

// setup is what the parent tells a child first.
type setup struct {
	UID      uint32 // to change to, also its gid; 0 is to stay
	Memory   uint64
	FileSize uint64
	Files    int // how many descriptors come, standard error included
}

const (
	childVariable = "CCAGENT_CHILD"
	fdSocket      = 3
	maxSetup      = 1 << 16
	maxStderr     = 8 << 10
)

// What a child answers to its setup: a Confinement, or an error's text.
const (
	saidReady  = 1
	saidFailed = 2
)

// Start starts a child, and gives it the files when it has confined itself. The child is
// killed when ctx ends. The files stay the caller's.
func Start(ctx context.Context, config Config, files ...*os.File) (*Child, error) {
	c, err := start(ctx, config, files)
	if err != nil {
		return nil, fmt.Errorf("start a confined process: %w", err)
	}
	return c, nil
}

func start(ctx context.Context, config Config, files []*os.File) (*Child, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "child's socket")
	conn, err := newConn(os.NewFile(uintptr(fds[0]), "socket"))
	if err != nil {
		theirs.Close()
		return nil, err
	}
	c := &Child{Conn: conn, ended: make(chan error, 1), stderr: make(chan []byte, 1)}
	c.cmd = exec.CommandContext(ctx, "/proc/self/exe")
	c.cmd.Args = []string{config.Name}
	c.cmd.Env = []string{childVariable + "=" + config.Role, "GOTRACEBACK=single"}
	c.cmd.Dir = "/"
	c.cmd.ExtraFiles = []*os.File{theirs}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	id, own := privateID()
	err = c.run(own)
	theirs.Close()
	if err != nil {
		conn.Close()
		return nil, err
	}
	if err := c.confine(setup{UID: id, Memory: config.Memory, FileSize: config.FileSize, Files: len(files) + 1}, files); err != nil {
		c.cmd.Process.Kill()
		waitErr := c.Wait()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
			err = waitErr // it ended; how tells more
		}
		return nil, err
	}
	return c, nil
}

// run starts the process from a thread that has nothing to hand on to it.
func (c *Child) run(changesID bool) error {
	started := make(chan error, 1)
	go func() {
		// The thread is not given back; and since the child dies with the thread that made
		// it (Pdeathsig), this one waits for it.
		runtime.LockOSThread()
		if err := disarm(changesID); err != nil {
			started <- err
			return
		}
		if err := c.cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		c.ended <- c.cmd.Wait()
	}()
	return <-started
}

// disarm takes from this thread, and so from the child, what the child has no use for.
func disarm(changesID bool) error {
	// Set before the child starts, it also holds back the executable's own file
	// capabilities.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	// Descriptors that a caller left open for us are none of the child's. Kernels before
	// 5.11 do not know the call; the child closes them then.
	_ = unix.CloseRange(fdSocket, ^uint(0), unix.CLOSE_RANGE_CLOEXEC)
	var leave []int
	if changesID {
		leave = []int{unix.CAP_SETUID, unix.CAP_SETGID}
	}
	// Without CAP_SETPCAP the bounding set stays: it grants nothing.
	if err := capset.Bound(leave...); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	if changesID {
		return capset.ClearInherited() // the rest goes with root's uid
	}
	return capset.Clear()
}

// confine has the child confine itself, and hands over the files.
func (c *Child) confine(s setup, files []*os.File) error {
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := c.Send(0, b); err != nil {
		return err
	}
	head, b, err := c.Receive(maxSetup)
	if err != nil {
		return err
	}
	switch head {
	case saidReady:
	case saidFailed:
		return errors.New(string(b))
	default:
		return fmt.Errorf("the child answered %d", head)
	}
	if err := json.Unmarshal(b, &c.Confined); err != nil {
		return fmt.Errorf("read the child's answer: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("make a pipe: %w", err)
	}
	defer w.Close()
	go func() {
		defer r.Close()
		var out bytes.Buffer
		_, _ = io.CopyN(&out, r, maxStderr)
		_, _ = io.Copy(io.Discard, r)
		c.stderr <- out.Bytes()
	}()
	return c.SendFiles(append([]*os.File{w}, files...)...)
}

// Kill ends the child.
func (c *Child) Kill() { _ = c.cmd.Process.Kill() }

// Wait waits for the child's end and closes the socket.
func (c *Child) Wait() error {
	err := <-c.ended
	c.Conn.Close()
	return err
}

// stderrPatience bounds the wait for the child's last words after its end.
const stderrPatience = time.Second

// Stderr is how the child's standard error began, once it has ended.
func (c *Child) Stderr() []byte {
	select {
	case b := <-c.stderr:
		c.stderr <- b
		return b
	case <-time.After(stderrPatience):
		return nil
	}
}

// CPU is the CPU time that the child took, once it has ended.
func (c *Child) CPU() time.Duration {
	if s := c.cmd.ProcessState; s != nil {
		return s.UserTime() + s.SystemTime()
	}
	return 0
}

// PID is the child's process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

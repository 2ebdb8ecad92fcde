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
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"ccagent/internal/capset"

	"golang.org/x/sys/unix"
)

// Config describes a child to start.
type Config struct {
	Role string // what it does: a key of Main's map
	Name string // its name in lists of processes
	// Memory is a rough limit of the child's memory in bytes; 0 is no limit.
	Memory uint64
	// FileSize limits each file that it writes, in bytes.
	FileSize uint64
	// CPU limits the CPU time of all its threads in whole seconds, after which the kernel kills it (RLIMIT_CPU); 0 is no limit.
	CPU uint64
	// Frugal is set where nobody waits for the child: it runs on one CPU at a time, and collects garbage all the time rather than
	// let its heap grow beyond FrugalHeap.
	Frugal bool
	// Connects leaves a filter that lets it connect to others by IP, and read files that everybody may read, such as
	// the names of hosts and the authorities' certificates.
	Connects bool
}

// FrugalHeap is a size of the heap, in bytes, with which most files of programs can be read.
const FrugalHeap = 64 << 20

// Child is a running child. The parent calls Wait, once.
type Child struct {
	*Conn
	// Confined is the confinement that the child reached.
	Confined Confinement

	cmd    *exec.Cmd
	ended  chan error
	stderr chan []byte
}

// Confinement is a child's report about itself, before it is given anything.
type Confinement struct {
	UID    uint32 // the uid that it runs as
	Filter string // why there is no system call filter; empty if there is
}

// lacks says in words what the child of a parent with that uid does not have of its
// confinement, empty if nothing. A parent that is not root cannot change a child's uid.
func (c *Confinement) lacks(parent int) string {
	var why []string
	if c.Filter != "" {
		why = append(why, c.Filter)
	}
	if parent == 0 && c.UID == 0 {
		why = append(why, "no uid of their own (which takes CAP_SETUID, CAP_SETGID, CAP_KILL and a free id)")
	}
	return strings.Join(why, ", and ")
}

var incomplete atomic.Pointer[string]

// Incomplete says in words what a child of this process did not have of its confinement,
// empty if nothing.
func Incomplete() string {
	if why := incomplete.Load(); why != nil {
		return *why
	}
	return ""
}

// setup is the first message from the parent to a child.
type setup struct {
	UID      uint32 // uid and gid to change to; 0 means no change
	Memory   uint64
	FileSize uint64
	CPU      uint64
	Connects bool
	Frugal   bool
	Files    int // number of descriptors that follow, standard error included
}

const (
	childVariable = "CCAGENT_CHILD"
	fdSocket      = 3
	maxSetup      = 1 << 16
	maxStderr     = 8 << 10
)

// A child's answers to its setup: a Confinement, or an error's text.
const (
	saidReady  = 1
	saidFailed = 2
)

// Start starts a child, and sends it the files once it has confined itself. The child is
// killed when ctx ends. The files remain the caller's.
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
	c.cmd = exec.CommandContext(ctx, executable())
	c.cmd.Args = []string{config.Name}
	c.cmd.Env = []string{childVariable + "=" + config.Role, "GOTRACEBACK=single"}
	if config.Frugal {
		c.cmd.Env = append(c.cmd.Env, "GOMAXPROCS=1")
	}
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
	if err := c.confine(setup{UID: id, Memory: config.Memory, FileSize: config.FileSize, CPU: config.CPU, Connects: config.Connects, Frugal: config.Frugal, Files: len(files) + 1}, files); err != nil {
		c.cmd.Process.Kill()
		waitErr := c.Wait()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		// The child has ended: how it did explains more, unless that was without an error.
		if waitErr != nil && (errors.Is(err, io.EOF) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)) {
			err = waitErr
		}
		return nil, err
	}
	return c, nil
}

// run starts the process from a thread that has no privileges to pass on.
func (c *Child) run(changesID bool) error {
	started := make(chan error, 1)
	go func() {
		// The thread is never unlocked. It waits for the child, because the child dies with
		// the thread that started it (Pdeathsig).
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
		err := c.cmd.Wait()
		if s := c.cmd.ProcessState; s != nil {
			spent.Add(int64(s.UserTime() + s.SystemTime()))
		}
		c.ended <- err
	}()
	return <-started
}

// disarm drops from this thread, and so from the child, the privileges that the child does
// not need.
func disarm(changesID bool) error {
	// If set before the child starts, it also disables the executable's file capabilities.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	// Descriptors inherited from our caller must not reach the child. Kernels before 5.11 do
	// not have the call; the child closes them then.
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
		return capset.ClearInherited() // the rest is dropped by the change of uid
	}
	return capset.Clear()
}

// confine sends the setup, waits until the child has confined itself, and sends the files.
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
	if why := c.Confined.lacks(os.Geteuid()); why != "" {
		incomplete.CompareAndSwap(nil, &why)
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

// Wait waits for the child to end and closes the socket.
func (c *Child) Wait() error {
	err := <-c.ended
	c.Conn.Close()
	return err
}

// stderrPatience limits the wait for the child's standard error after its end.
const stderrPatience = time.Second

// Stderr returns the beginning of the child's standard error, once it has ended.
func (c *Child) Stderr() []byte {
	select {
	case b := <-c.stderr:
		c.stderr <- b
		return b
	case <-time.After(stderrPatience):
		return nil
	}
}

// spent is the CPU time, in nanoseconds, of the children that have ended.
var spent atomic.Int64

// CPUTime returns the CPU time of all children of this process that have ended: what the
// process does by way of them, and its own accounting does not have.
func CPUTime() time.Duration { return time.Duration(spent.Load()) }

// PID is the child's process id.
func (c *Child) PID() int { return c.cmd.Process.Pid }

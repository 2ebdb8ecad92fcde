package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ccagent/agent"
	"ccagent/agent/invoker"
	"ccagent/profile/columns"
	"ccagent/ui"
)

// topFlags holds the flags of top that are not flags of a capture.
type topFlags struct {
	theme   string
	ascii   bool
	streams string
}

func topCommand() *cobra.Command {
	var flags captureFlags
	var top topFlags
	cmd := &cobra.Command{
		Use:   "top [flags] PID | -- PROG [ARG…]",
		Short: "watch a process, or run a program, in the viewer while it is profiled",
		Long: `Shows the viewer's screens while the capture runs. Names are looked up beside it,
and the screens are drawn anew at most once a second; both rest long enough to
take a small part of one CPU. W reads what every Haskell thread does at that
moment, which may stop OS threads for milliseconds, and shows it.

A program that top starts reads and writes nothing of the terminal: its output
goes to the file of --program-output, or nowhere. Leaving the viewer ends such a
program (SIGTERM), and lets go of a process that was attached to. The log is kept
where -o names a file.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || cmd.ArgsLenAtDash() != 0 && len(args) > 1 {
				return errors.New("top: name one process, or a program after --: ccagent top PID, ccagent top -- PROG [ARG…]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := flags.options()
			if err != nil {
				return err
			}
			if cmd.ArgsLenAtDash() == 0 {
				opts.Program = args
			} else if opts.PID, err = strconv.Atoi(args[0]); err != nil || opts.PID <= 0 {
				return fmt.Errorf("top: %q is not a process id; a program comes after --", args[0])
			}
			return runTop(cmd.Context(), opts, &top)
		},
	}
	flags.register(cmd)
	fs := cmd.Flags()
	fs.Lookup("output").Usage = "keep the log as `FILE` (default: it is not kept)"
	for _, name := range []string{"live", "rotate", "keep", "quiet"} {
		_ = fs.MarkHidden(name) // top follows one log, symbolises it live and prints little
	}
	fs.StringVar(&top.theme, "theme", "", "the viewer's colours: "+strings.Join(ui.Themes(), ", "))
	fs.BoolVar(&top.ascii, "ascii", false, "draw with ASCII alone")
	fs.StringVar(&top.streams, "program-output", "", "write the program's output to `FILE`")
	return cmd
}

// runTop runs a capture together with the viewer.
func runTop(ctx context.Context, opts agent.Options, flags *topFlags) error {
	if !ui.Usable() {
		return errors.New("top draws on a terminal, and this is none that it can draw on; ccagent record writes a log")
	}
	if opts.Rotate != 0 {
		return errors.New("top follows one log; leave out --rotate")
	}
	ctx, cancel := signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT)
	defer cancel()
	attended.Store(true)
	opts.Live = true
	name := "PID " + strconv.Itoa(opts.PID)
	if len(opts.Program) > 0 {
		name = filepath.Base(opts.Program[0])
		streams, err := programStreams(flags.streams)
		if err != nil {
			return err
		}
		defer streams[0].Close()
		defer streams[1].Close()
		opts.Stdio = [3]*os.File{streams[0], streams[1], streams[1]}
	}
	keep := opts.Output != ""
	if !keep {
		dir, remove, err := scratch(opts.User)
		if err != nil {
			return err
		}
		defer remove()
		opts.Output = filepath.Join(dir, "top.eventlog")
	}
	var warnings []string // printed after the viewer has released the terminal
	opts.Warn = func(line string) { warnings = append(warnings, line) }

	t := &top{started: make(chan started, 1), ended: make(chan struct{}), stop: make(chan struct{}), dumps: make(chan chan<- error)}
	opts.Started, opts.Dumps = t.start, t.dumps
	go t.capture(ctx, opts)
	err := ui.Run(ctx, ui.Source{Name: name, Follow: t.follow, Live: true, Dump: t.dump}, ui.Options{
		Theme: flags.theme, ASCII: flags.ascii,
		Sealed: "top may run with more rights than you have; open the log with ccview (-o FILE keeps it)",
	})
	t.leave(len(opts.Program) > 0)
	if t.err != nil {
		err = t.err
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil // a signal ended it, as it should
	}
	for _, w := range warnings {
		say("%s", w)
	}
	if keep && t.sum != nil {
		say("%s (%s)", t.sum.Log, bytesAmount(t.sum.LogSize))
	}
	return err
}

// top is a capture that runs together with the viewer.
type top struct {
	started chan started
	stop    chan struct{} // closed to end the capture
	ended   chan struct{} // closed when the capture has ended
	dumps   chan chan<- error
	pid     int
	sum     *agent.Summary
	err     error // valid once ended is closed
}

type started struct {
	log string
	err error
}

// start passes the log to the viewer by a descriptor of the open file, so that the file's
// name is irrelevant.
func (t *top) start(log *os.File, pid int) error {
	fd, err := unix.FcntlInt(log.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("follow log: %w", err)
	}
	t.pid = pid
	t.started <- started{log: fmt.Sprintf("/proc/self/fd/%d", fd)}
	return nil
}

func (t *top) capture(ctx context.Context, opts agent.Options) {
	defer close(t.ended)
	t.sum, t.err = agent.Run(ctx, t.stop, opts)
	if t.sum == nil {
		t.started <- started{err: t.err}
	}
}

func (t *top) follow() (*columns.Follower, error) {
	s := <-t.started
	if s.err != nil {
		return nil, s.err
	}
	return columns.Follow(s.log)
}

// dump has the capture read what the program's threads do.
func (t *top) dump() error {
	answer := make(chan error, 1)
	select {
	case t.dumps <- answer:
	case <-t.ended:
		return agent.ErrCaptureEnded
	}
	return <-answer
}

// leave ends the capture and a program that it started.
func (t *top) leave(started bool) {
	select {
	case <-t.ended:
		return
	default:
	}
	if started && t.pid > 0 {
		// Only the agent waits for this child, so its pid cannot have been reused.
		_ = unix.Kill(t.pid, unix.SIGTERM)
	}
	close(t.stop)
	<-t.ended
}

// programStreams opens the program's standard input and output: /dev/null, and the file
// of --program-output if there is one.
func programStreams(path string) ([2]*os.File, error) {
	var s [2]*os.File
	in, err := os.Open(os.DevNull)
	if err != nil {
		return s, err
	}
	if path == "" {
		path = os.DevNull
	}
	out, err := invoker.CreateFor("", path)
	if err != nil {
		in.Close()
		return s, fmt.Errorf("--program-output: %w", err)
	}
	return [2]*os.File{in, out}, nil
}

// scratch creates a folder for a log that is not kept. The invoker owns it.
func scratch(user string) (_ string, remove func(), _ error) {
	who, err := invoker.Find(user)
	if err != nil {
		return "", nil, err
	}
	var dir string
	err = who.WithFileRights(func() (err error) {
		dir, err = os.MkdirTemp("", "ccagent-top-")
		return err
	})
	if err != nil {
		return "", nil, fmt.Errorf("make a folder for the log: %w", err)
	}
	return dir, func() { _ = who.WithFileRights(func() error { return os.RemoveAll(dir) }) }, nil
}

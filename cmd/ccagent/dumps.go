package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ccagent/agent/daemon"
	"ccagent/agent/daemon/control"
	"ccagent/profile"

	"github.com/spf13/cobra"
)

// dumpBeside writes a log of the threads of a process, or of its heap, for the daemon. Another process does so: threads that stand wait
// for nothing that the daemon does then, and memory and time are its own.
func dumpBeside(ctx context.Context, d daemon.Dump) (done daemon.Dumped, err error) {
	what, args := "read the threads", []string{"threads", "--quiet"}
	if c := d.Heap; c != nil {
		what, args = "count the heap", []string{"heap", "--max-pause", c.MaxPause.String(), "--wait", c.Wait.String()}
	}
	args = append(args, "-o", d.Path, "--print-stood")
	for flag, set := range map[string]bool{"--no-embed-source": d.NoSource, "--no-args": d.NoArgs, "--no-labels": d.NoLabels} {
		if set {
			args = append(args, flag)
		}
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append(args, strconv.FormatUint(uint64(d.PID), 10))...)
	// The log is to be root's, also where the daemon was started by sudo, whose variables name somebody else.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "SUDO_") })
	cmd.Dir = "/"
	var said, stood bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stood, &said
	cmd.WaitDelay = time.Second // what it has started ends with it
	err = runBelow(cmd)
	if cause := context.Cause(ctx); cause != nil {
		return done, fmt.Errorf("%s of process %d: %w", what, d.PID, cause)
	}
	// The path is the daemon's affair.
	done.Notes = slices.DeleteFunc(messagesIn(said.String()), func(line string) bool { return line == d.Path })
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(done.Notes) > 0 { // the last one says why
		return done, errors.New(done.Notes[len(done.Notes)-1])
	}
	if err == nil {
		done.Stood, err = time.ParseDuration(strings.TrimSpace(stood.String()))
	}
	if err != nil {
		return done, fmt.Errorf("%s of process %d: %w", what, d.PID, err)
	}
	return done, nil
}

// stoodFlag has a command print, for the daemon, for how long the process was stopped.
func stoodFlag(cmd *cobra.Command, print *bool) {
	cmd.Flags().BoolVar(print, "print-stood", false, "print for how long the process was stopped")
	_ = cmd.Flags().MarkHidden("print-stood")
}

// runBelow runs a command that ends when this process does, and that the kernel kills first where memory runs out: how much it takes
// the process decides whose threads it reads.
func runBelow(cmd *exec.Cmd) error {
	runtime.LockOSThread() // the signal is sent when the thread ends that has started the command
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", cmd.Process.Pid), []byte("1000"), 0) // it may have ended
	return cmd.Wait()
}

// maxSaid bounds what is passed on of messages, in bytes.
const maxSaid = 8 << 10

// messagesIn takes what sayTo has written apart.
func messagesIn(text string) (messages []string) {
	for line := range strings.Lines(text[max(0, len(text)-maxSaid):]) {
		line = strings.TrimRight(line, "\n")
		if first, ok := strings.CutPrefix(line, "ccagent: "); ok {
			messages = append(messages, first)
		} else if n := len(messages); n > 0 {
			messages[n-1] += "\n" + strings.TrimPrefix(line, "  ")
		}
	}
	return messages
}

// dumpOf is the log that comes with the daemon's answer, which names it. The caller closes the files.
func dumpOf(a control.Answer, files []*os.File) (*io.SectionReader, error) {
	if len(files) != 1 {
		return nil, fmt.Errorf("the daemon's answer has %d logs", len(files))
	}
	for _, note := range a.Notes {
		say("%s", note)
	}
	st, err := files[0].Stat()
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(files[0], 0, st.Size()), nil
}

// keepDump copies a log to a file of who runs the command.
func keepDump(log *io.SectionReader, output string) error {
	kept, err := createOwn(output)
	if err != nil {
		return err
	}
	defer kept.Close()
	if _, err := io.Copy(kept, log); err != nil {
		return errors.Join(fmt.Errorf("keep the dump: %w", err), kept.Remove())
	}
	_, err = log.Seek(0, io.SeekStart)
	return err
}

// takeDump asks the daemon for a log, and keeps it in a file if output is not empty. The caller calls done when it has read the log.
func takeDump(socket string, r control.Request, output string) (log *io.SectionReader, done func(), err error) {
	a, files, err := ask(socket, r)
	if err != nil {
		return nil, nil, err
	}
	done = func() { closeAll(files) }
	if log, err = dumpOf(a, files); err == nil && output != "" {
		err = keepDump(log, output)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	return log, done, nil
}

// daemonThreads shows what the daemon has read, and keeps it as a log if output is not empty.
func daemonThreads(socket string, r control.Request, output string, show func(*profile.Profile) error) error {
	log, done, err := takeDump(socket, r, output)
	if err != nil {
		return err
	}
	defer done()
	p, err := profile.Load(log)
	if err != nil {
		return fmt.Errorf("read the dump: %w", err)
	}
	if err := show(p); err != nil || output == "" {
		return err
	}
	say("%s", output)
	return nil
}

// daemonHeap keeps the log of a census that the daemon has taken.
func daemonHeap(socket string, r control.Request, output string) error {
	_, done, err := takeDump(socket, r, output)
	if err != nil {
		return err
	}
	done()
	say("%s", output)
	return nil
}

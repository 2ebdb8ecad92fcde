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
)

// dumpBeside writes a log of the threads of a process for the daemon. Another process does so: threads that stand wait
// for nothing that the daemon does then, and memory and time are its own.
func dumpBeside(ctx context.Context, d daemon.Dump) (notes []string, err error) {
	args := []string{"threads", "--quiet", "-o", d.Path}
	for flag, set := range map[string]bool{"--no-embed-source": d.NoSource, "--no-args": d.NoArgs, "--no-labels": d.NoLabels} {
		if set {
			args = append(args, flag)
		}
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", append(args, strconv.FormatUint(uint64(d.PID), 10))...)
	// The log is to be root's, also where the daemon was started by sudo, whose variables name somebody else.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "SUDO_") })
	cmd.Dir = "/"
	var said bytes.Buffer
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second // what it has started ends with it
	err = runBelow(cmd)
	if cause := context.Cause(ctx); cause != nil {
		return nil, fmt.Errorf("read the threads of process %d: %w", d.PID, cause)
	}
	messages := messagesIn(said.String())
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(messages) > 0 { // the last one says why
		return nil, errors.New(messages[len(messages)-1])
	}
	if err != nil {
		return nil, fmt.Errorf("read the threads of process %d: %w", d.PID, err)
	}
	return messages, nil
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

// daemonThreads shows what the daemon has read, and keeps it as a log if output is not empty.
func daemonThreads(socket string, r control.Request, output string, show func(*profile.Profile) error) error {
	a, files, err := ask(socket, r)
	if err != nil {
		return err
	}
	defer closeAll(files)
	if len(files) != 1 {
		return fmt.Errorf("the daemon's answer has %d logs", len(files))
	}
	for _, note := range a.Notes {
		say("%s", note)
	}
	st, err := files[0].Stat()
	if err != nil {
		return err
	}
	log := io.NewSectionReader(files[0], 0, st.Size())
	if output != "" {
		kept, err := createOwn(output)
		if err != nil {
			return err
		}
		defer kept.Close()
		if _, err := io.Copy(kept, log); err != nil {
			return errors.Join(fmt.Errorf("keep the dump: %w", err), kept.Remove())
		}
		log.Seek(0, io.SeekStart)
	}
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

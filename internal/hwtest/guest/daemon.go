//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Where the daemon has its control socket and its pieces.
const (
	daemonSocket = "/tmp/control.sock"
	daemonState  = "/tmp/state"
)

// daemon runs ccagent's daemon, then a program that does not end by itself, until ps has so many samples of it. Then it
// stops the daemon, which closes its pieces, and copies the program's newest piece to a file.
//
//	init daemon SAMPLES FILE PROG ARG…
func daemon(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("daemon: name a number of samples, a file and a program")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	d := exec.Command("/bin/ccagent", "daemon", "--state-dir", daemonState, "--socket", daemonSocket)
	d.Stdout, d.Stderr = os.Stderr, os.Stderr
	if err := d.Start(); err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- d.Wait() }()
	if err := until(ended, "the daemon answers", func() (bool, error) {
		return exec.Command("/bin/ccagent", "status", "--socket", daemonSocket).Run() == nil, nil
	}); err != nil {
		return err
	}
	program := exec.Command(args[2], args[3:]...)
	program.Stderr = os.Stderr
	if err := program.Start(); err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	defer func() {
		_ = program.Process.Kill()
		_ = program.Wait() // killed
	}()
	if err := until(ended, "ps has its samples", func() (bool, error) { return sampled(program.Process.Pid, want) }); err != nil {
		return err
	}
	if err := d.Process.Signal(unix.SIGTERM); err != nil {
		return fmt.Errorf("daemon: stop it: %w", err)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("daemon: it was stopped: %w", err)
	}
	pieces, err := filepath.Glob(filepath.Join(daemonState, "*", strconv.Itoa(program.Process.Pid)+"-*.eventlog"))
	if err != nil || len(pieces) == 0 {
		return fmt.Errorf("daemon: it has left no piece of process %d: %w", program.Process.Pid, err)
	}
	fmt.Println("pieces:", pieces)
	// Their names are sorted by time.
	return copyFile(args[1], pieces[len(pieces)-1])
}

// until asks again and again until the answer is yes or the daemon has ended.
func until(ended <-chan error, what string, ask func() (bool, error)) error {
	for {
		yes, err := ask()
		if yes || err != nil {
			return err
		}
		select {
		case err := <-ended:
			return fmt.Errorf("daemon: it has ended before %s: %w", what, errors.Join(err, errors.New("by itself")))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// sampled reports whether ps lists a process as sampled, with so many samples. It prints what ps says of it then.
func sampled(pid, want int) (bool, error) {
	out, err := exec.Command("/bin/ccagent", "ps", "--socket", daemonSocket, "--format", "json").Output()
	if err != nil {
		return false, fmt.Errorf("daemon: ccagent ps: %w", err)
	}
	var list struct{ Processes []json.RawMessage }
	if err := json.Unmarshal(out, &list); err != nil {
		return false, fmt.Errorf("daemon: ccagent ps: %w in %s", err, out)
	}
	for _, text := range list.Processes {
		var p struct {
			PID, Samples int
			State        string
		}
		if err := json.Unmarshal(text, &p); err != nil {
			return false, fmt.Errorf("daemon: ccagent ps: %w in %s", err, text)
		}
		if p.PID == pid && p.State == "sampled" && p.Samples >= want {
			fmt.Printf("%s\n", text)
			return true, nil
		}
	}
	return false, nil
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

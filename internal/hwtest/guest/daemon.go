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
	d, err := startDaemon(args[2:])
	if err != nil {
		return err
	}
	defer d.kill()
	var p seen
	if err := d.until("ps has its samples", func() (bool, error) {
		p, err = d.asked()
		return p.State == "sampled" && p.Samples >= want, err
	}); err != nil {
		return err
	}
	fmt.Printf("%s\n", p.text)
	pieces, err := d.stop()
	if err != nil {
		return err
	}
	fmt.Println("pieces:", pieces)
	// Their names are sorted by time.
	return copyFile(args[1], pieces[len(pieces)-1])
}

// profiled is a daemon and the program that it profiles.
type profiled struct {
	daemon, program *exec.Cmd
	ended           chan error // of the daemon
}

// startDaemon starts ccagent's daemon, and the program when it answers.
func startDaemon(argv []string) (*profiled, error) {
	p := &profiled{
		daemon:  exec.Command("/bin/ccagent", "daemon", "--state-dir", daemonState, "--socket", daemonSocket),
		program: exec.Command(argv[0], argv[1:]...), ended: make(chan error, 1),
	}
	p.daemon.Stdout, p.daemon.Stderr = os.Stderr, os.Stderr
	p.program.Stderr = os.Stderr
	if err := p.daemon.Start(); err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	go func() { p.ended <- p.daemon.Wait() }()
	if err := p.until("the daemon answers", func() (bool, error) {
		return exec.Command("/bin/ccagent", "status", "--socket", daemonSocket).Run() == nil, nil
	}); err != nil {
		return nil, err
	}
	if err := p.program.Start(); err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	return p, nil
}

// kill ends the program.
func (p *profiled) kill() {
	_ = p.program.Process.Kill()
	_ = p.program.Wait() // killed
}

// stop ends the daemon, which closes its pieces, and gives the program's in the order of their dates.
func (p *profiled) stop() (pieces []string, err error) {
	if err := p.daemon.Process.Signal(unix.SIGTERM); err != nil {
		return nil, fmt.Errorf("daemon: stop it: %w", err)
	}
	if err := <-p.ended; err != nil {
		return nil, fmt.Errorf("daemon: it was stopped: %w", err)
	}
	if pieces, err = p.pieces(); err == nil && len(pieces) == 0 {
		err = fmt.Errorf("daemon: it has left no piece of process %d", p.program.Process.Pid)
	}
	return pieces, err
}

// pieces are the program's so far.
func (p *profiled) pieces() ([]string, error) {
	return filepath.Glob(filepath.Join(daemonState, "*", strconv.Itoa(p.program.Process.Pid)+"-*.eventlog"))
}

// until asks again and again until the answer is yes or the daemon has ended.
func (p *profiled) until(what string, ask func() (bool, error)) error {
	for {
		yes, err := ask()
		if yes || err != nil {
			return err
		}
		select {
		case err := <-p.ended:
			return fmt.Errorf("daemon: it has ended before %s: %w", what, errors.Join(err, errors.New("by itself")))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// seen is what ps says of a process.
type seen struct {
	PID, Samples int
	State        string
	text         json.RawMessage
}

// asked gives what ps says of the program, nothing if it is not listed.
func (p *profiled) asked() (seen, error) {
	out, err := exec.Command("/bin/ccagent", "ps", "--socket", daemonSocket, "--format", "json").Output()
	if err != nil {
		return seen{}, fmt.Errorf("daemon: ccagent ps: %w", err)
	}
	var list struct{ Processes []json.RawMessage }
	if err := json.Unmarshal(out, &list); err != nil {
		return seen{}, fmt.Errorf("daemon: ccagent ps: %w in %s", err, out)
	}
	for _, text := range list.Processes {
		s := seen{text: text}
		if err := json.Unmarshal(text, &s); err != nil {
			return seen{}, fmt.Errorf("daemon: ccagent ps: %w in %s", err, text)
		}
		if s.PID == p.program.Process.Pid {
			return s, nil
		}
	}
	return seen{}, nil
}

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

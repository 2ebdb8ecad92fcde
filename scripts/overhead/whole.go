package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// wholeRuns appends turns of whole runs to o.out: a program that does a fixed amount of work runs alone and under ccagent record, or beside
// ccagent daemon, in random order, and says itself what CPU time it has used.
func wholeRuns(o *options) error {
	dir, err := os.MkdirTemp("", "overhead-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := os.OpenFile(o.out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	log := filepath.Join(dir, "log")
	captured := o.argv
	if !o.blank && !o.daemon {
		captured = append([]string{o.ccagent, "record", "--quiet", "-o", log}, strings.Fields(o.flags[0])...)
		captured = append(append(captured, "--"), o.argv...)
	}
	// The first run reads what is to be read from disk, and the first capture measures what interrupts and probes cost. Neither is counted.
	for i := range o.rounds + 1 {
		t := o.turn()
		first := rand.IntN(2)
		for k := range 2 {
			argv, to := o.argv, &t.Alone
			if k == first {
				argv, to = captured, &t.With
			}
			if err := os.RemoveAll(log); err != nil {
				return err
			}
			if o.daemon && k == first {
				if *to, err = besideDaemon(o, dir, argv); err != nil {
					return err
				}
				continue
			}
			if *to, err = wholeRun(argv); err != nil {
				return err
			}
			if k == first && !o.blank {
				if t.Reported, _, err = reportedBy(filepath.Join(filepath.Dir(o.ccagent), "ccview"), log); err != nil {
					return err
				}
			}
		}
		t.Captured = t.With.Wall
		if i > 0 {
			if err := json.NewEncoder(file).Encode(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// besideDaemon runs a command while a daemon profiles it. What that has cost is not in the daemon's logs.
func besideDaemon(o *options, dir string, argv []string) (s stretch, err error) {
	state, socket := filepath.Join(dir, "state"), filepath.Join(dir, "control.sock")
	if err := os.RemoveAll(state); err != nil {
		return s, err
	}
	var said bytes.Buffer
	daemon := exec.Command(o.ccagent, "daemon", "--config", filepath.Join(dir, "none.yaml"), "--state-dir", state, "--socket", socket)
	daemon.Stderr = &said
	if err := daemon.Start(); err != nil {
		return s, err
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	stopped := func(err error) error { return errors.Join(err, fmt.Errorf("the daemon: %s", &said)) }
	for exec.Command(o.ccagent, "status", "--socket", socket).Run() != nil {
		select {
		case err := <-ended:
			return s, stopped(err)
		case <-time.After(200 * time.Millisecond):
		}
	}
	s, err = wholeRun(argv)
	err = errors.Join(err, daemon.Process.Signal(os.Interrupt))
	if failed := <-ended; failed != nil || err != nil {
		return s, stopped(errors.Join(err, failed))
	}
	pieces, err := filepath.Glob(filepath.Join(state, filepath.Base(argv[0]), "*.eventlog"))
	if err != nil || len(pieces) != 1 {
		return s, stopped(fmt.Errorf("it has left %d pieces of the program (%v)", len(pieces), err))
	}
	return s, nil
}

// wholeRun runs a command whose last line on standard error is the CPU time that the program has used, in ns.
func wholeRun(argv []string) (stretch, error) {
	var text bytes.Buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = &text
	begin := time.Now()
	// A capture of no samples fails, but it has a log.
	if err := cmd.Run(); err != nil && !strings.Contains(text.String(), "no sample was taken") {
		return stretch{}, fmt.Errorf("run %v: %w\n%s", argv, err, &text)
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if ns, err := strconv.ParseUint(line, 10, 63); err == nil {
			return stretch{CPU: time.Duration(ns), Wall: time.Since(begin), Pieces: 1}, nil
		}
	}
	return stretch{}, errors.New("run " + argv[0] + ": it does not say what CPU time the program has used\n" + text.String())
}

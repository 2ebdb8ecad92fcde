package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ccagent/agent/daemon/control"
	"ccagent/scripts/collector"
)

// profiler is a daemon that runs in a control group of its own, with its defaults.
type profiler struct {
	cmd     *exec.Cmd
	group   *group
	dir     string
	socket  string
	metrics string
	begun   time.Time
	ended   chan error
}

// startDaemon starts a daemon that sends to a collector, if its address is not empty.
func startDaemon(o *options, dir, engine string) (*profiler, error) {
	address, err := collector.FreeAddress()
	if err != nil {
		return nil, err
	}
	text := "daemon:\n  metrics: " + address + "\n  rules:\n" // other Haskell programs that run here are no part of it
	for _, program := range programs {
		text += "  - {executable: " + program[0] + ", profile: true}\n"
	}
	text += "  - {profile: false}\n"
	if engine != "" {
		text += "  push:\n  - {engine: otlp, url: 'http://" + engine + "'}\n"
	}
	config := filepath.Join(dir, "ccagent.yaml")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	g, err := newGroup("daemon")
	if err != nil {
		return nil, err
	}
	d := &profiler{group: g, dir: filepath.Join(dir, "state"), socket: filepath.Join(dir, "control.sock"), metrics: address, ended: make(chan error, 1)}
	argv := g.enter([]string{o.ccagent, "daemon", "--config", config, "--state-dir", d.dir, "--socket", d.socket})
	d.cmd = exec.Command(argv[0], argv[1:]...)
	d.cmd.Stderr, d.cmd.SysProcAttr = os.Stderr, &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	d.begun = time.Now()
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { d.ended <- d.cmd.Wait() }()
	for {
		if _, err := d.status(); err == nil {
			return d, nil
		}
		select {
		case err := <-d.ended:
			return nil, fmt.Errorf("the daemon has ended: %v", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (d *profiler) status() (*control.Status, error) {
	a, _, err := control.Ask(d.socket, control.Request{Command: control.CommandStatus})
	if err != nil {
		return nil, err
	}
	return a.Status, nil
}

func (d *profiler) stop() error {
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	err := <-d.ended
	for range 100 {
		if d.group.remove() == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// metric reads a metric without labels.
func (d *profiler) metric(name string) (float64, error) {
	answer, err := http.Get("http://" + d.metrics + "/metrics")
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			return strconv.ParseFloat(f[1], 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// bytesOf adds up the files of a folder and those below it.
func bytesOf(dir string, ending string) (files int, bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ending) {
			return err
		}
		info, err := e.Info()
		if err == nil {
			files, bytes = files+1, bytes+info.Size()
		}
		return err
	})
	return files, bytes, err
}

func printLine(name, format string, args ...any) {
	fmt.Printf("| %s | %s |\n", name, fmt.Sprintf(format, args...))
}

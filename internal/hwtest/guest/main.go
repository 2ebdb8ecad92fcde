//go:build linux

// Command guest is /init of a test machine: it mounts what a program expects, runs the
// jobs of /jobs.json one after the other, sends each one's result over the console, and
// switches the machine off.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"ccagent/internal/hwtest"
)

func main() {
	if len(os.Args) > 1 {
		if err := helper(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	fmt.Println(hwtest.Begun)
	if err := run(); err != nil {
		fmt.Println("guest:", err)
	}
	syscall.Sync()
	if err := syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Println("guest: power off:", err)
	}
}

// helper is what jobs may run besides the programs that they bring.
func helper(name string, args []string) error {
	switch {
	case name == "count":
		return count(args)
	case name == "hog":
		return hog(args)
	case name == "hide":
		return hide(args)
	case name == "as-user":
		return asUser(args)
	case name == "groups1":
		return groups1(args)
	case name == "while":
		return while(args)
	case name == "daemon":
		return daemon(args)
	case name == "clock":
		return clock(args)
	case name == "crash":
		return os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0)
	case name == "unplug":
		return unplug()
	case name == "beside":
		return beside(args)
	case name == "read" && len(args) == 1: // FILE
		text, err := os.ReadFile(args[0])
		os.Stdout.Write(text)
		return err
	}
	return fmt.Errorf("%s: no such helper", name)
}

func run() error {
	for _, m := range []struct{ kind, at string }{
		{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"},
		{"tracefs", "/sys/kernel/tracing"}, {"securityfs", "/sys/kernel/security"},
	} {
		if err := syscall.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	for path, mode := range map[string]os.FileMode{"/tmp": 0o777 | os.ModeSticky, "/": 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			return err
		}
	}
	// Emulated interrupts take long; keep the kernel from lowering its limit on rates.
	if err := os.WriteFile("/proc/sys/kernel/perf_cpu_time_max_percent", []byte("0"), 0); err != nil {
		return err
	}
	text, err := os.ReadFile(hwtest.JobFile)
	if err != nil {
		return err
	}
	var jobs []hwtest.Job
	if err := json.Unmarshal(text, &jobs); err != nil {
		return fmt.Errorf("read %s: %w", hwtest.JobFile, err)
	}
	for _, j := range jobs {
		fmt.Println("guest: running", j.Name)
		r := do(j)
		if err := hwtest.SendResult(os.Stdout, &r); err != nil {
			return err
		}
	}
	return nil
}

// keep is how much of a command's output is sent.
const keep = 1 << 20

func do(j hwtest.Job) hwtest.Result {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(j.Seconds)*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, j.Argv[0], j.Argv[1:]...)
	cmd.Dir = "/tmp"
	cmd.Env = append([]string{"PATH=/bin", "HOME=/tmp", "TMPDIR=/tmp", "LC_ALL=C.UTF-8"}, j.Env...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 5 * time.Second
	// What the command has started is ended with it, lest it run on beside the next jobs.
	cmd.Cancel = killAll
	begun := time.Now()
	err := cmd.Run()
	if left := killAll(); left != nil && !errors.Is(left, syscall.ESRCH) {
		fmt.Println("guest: end what is left of", j.Name+":", left)
	}
	r := hwtest.Result{
		Name: j.Name, Stdout: last(stdout.String()), Stderr: last(stderr.String()),
		Seconds: time.Since(begun).Seconds(), Files: map[string][]byte{},
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		r.Status = exit.ExitCode()
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			r.Status = 128 + int(ws.Signal())
		}
	default:
		r.Status = 127
		r.Stderr += err.Error() + "\n"
	}
	if ctx.Err() != nil {
		r.Stderr += fmt.Sprintf("guest: %s was killed after %d s\n", j.Name, j.Seconds)
	}
	for _, name := range j.Files {
		if data, err := os.ReadFile(name); err == nil {
			r.Files[name] = data
		}
	}
	return r
}

// killAll ends every process but this one, which has process id 1. Anywhere else than in a guest it does nothing.
func killAll() error {
	if os.Getpid() != 1 {
		return errors.New("not process 1 of a machine of its own")
	}
	return syscall.Kill(-1, syscall.SIGKILL)
}

func last(s string) string { return s[max(0, len(s)-keep):] }

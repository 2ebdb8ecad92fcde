package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// pad starts a busy loop on each CPU that this process may use. Its policy is SCHED_IDLE, so that whatever else is to run takes the CPU from
// it at once. A shell's loop makes no system calls and has one thread, where a loop in Go would be interrupted by its runtime.
func pad() (loops []*exec.Cmd, stop func(), err error) {
	stop = func() {
		for _, cmd := range loops {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		return nil, nil, fmt.Errorf("ask for the CPUs: %w", err)
	}
	for cpu := range len(cpus) * strconv.IntSize {
		if !cpus.IsSet(cpu) {
			continue
		}
		cmd := exec.Command("chrt", "--idle", "0", "taskset", "-c", strconv.Itoa(cpu), "sh", "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
		if err := cmd.Start(); err != nil {
			stop()
			return nil, nil, fmt.Errorf("keep CPU %d from idling: %w", cpu, err)
		}
		loops = append(loops, cmd)
	}
	return loops, stop, nil
}

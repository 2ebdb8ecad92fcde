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
	cpus, err := ownCPUs()
	if err != nil {
		return nil, nil, err
	}
	for _, cpu := range cpus {
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

// ownCPUs returns the CPUs that this process may use, in order.
func ownCPUs() (cpus []int, err error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("ask for the CPUs: %w", err)
	}
	for cpu := range len(set) * strconv.IntSize {
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// unplug spins on the second CPU, takes that CPU away and spins on the first, and brings it
// back and spins there again.
//
//	init unplug
func unplug() error {
	const secondCPU = "/sys/devices/system/cpu/cpu1/online"
	runtime.LockOSThread()
	stay := func(cpu int) error {
		var set unix.CPUSet
		set.Set(cpu)
		return unix.SchedSetaffinity(0, &set)
	}
	if err := stay(1); err != nil {
		return fmt.Errorf("unplug: %w", err)
	}
	if err := spinFor(1); err != nil {
		return err
	}
	if err := stay(0); err != nil {
		return fmt.Errorf("unplug: %w", err)
	}
	if err := os.WriteFile(secondCPU, []byte("0"), 0); err != nil {
		return fmt.Errorf("unplug: %w", err)
	}
	if err := spinFor(1); err != nil {
		return err
	}
	if err := os.WriteFile(secondCPU, []byte("1"), 0); err != nil {
		return fmt.Errorf("unplug: %w", err)
	}
	if err := stay(1); err != nil {
		return fmt.Errorf("unplug: %w", err)
	}
	return spinFor(4)
}

// spinFor uses seconds of the thread's CPU time.
func spinFor(seconds int64) error {
	var begin, now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &begin); err != nil {
		return fmt.Errorf("read clock: %w", err)
	}
	for now = begin; now.Nano()-begin.Nano() < seconds*1e9; {
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
			return fmt.Errorf("read clock: %w", err)
		}
	}
	return nil
}

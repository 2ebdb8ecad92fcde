//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hog takes every counter of the first CPU for itself while it runs a command, as another
// profiler or a watchdog may.
//
//	init hog PROG ARG…
func hog(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("hog: name a program")
	}
	const most = 64
	taken := 0
	for range most {
		attr := &unix.PerfEventAttr{
			Type: unix.PERF_TYPE_HARDWARE, Config: unix.PERF_COUNT_HW_INSTRUCTIONS,
			Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})), Bits: unix.PerfBitPinned,
		}
		if taken == 0 {
			attr.Config = unix.PERF_COUNT_HW_CPU_CYCLES // may have a counter of its own
		}
		fd, err := unix.PerfEventOpen(attr, -1, 0, -1, unix.PERF_FLAG_FD_CLOEXEC)
		if err != nil {
			return fmt.Errorf("hog: open event: %w", err)
		}
		// A pinned event that has no counter is in error, and reads as empty.
		var buf [8]byte
		if n, err := unix.Read(fd, buf[:]); err != nil || n == 0 {
			break
		}
		taken++
	}
	fmt.Println("took", taken, "counters")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("hog: %w", err)
	}
	return nil
}

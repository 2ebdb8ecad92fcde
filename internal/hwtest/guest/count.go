//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// count runs a command as a child and prints what the kernel counts of an event, without
// sampling it, from the child's exec to its end, and how often the child was switched out:
// "counted PID COUNT SWITCHES".
//
// The child has a real-time priority, so that other processes hardly ever take the CPU from
// it. On arm64 a sampling event loses an overflow whose interrupt is still masked when its
// thread is switched out: the driver clears it, and begins a new period.
//
//	init count CONFIG PROG ARG…     CONFIG is a generic hardware event's number
func count(args []string) error {
	var config uint64
	if len(args) < 2 {
		return fmt.Errorf("count: name an event and a program")
	}
	if _, err := fmt.Sscan(args[0], &config); err != nil {
		return fmt.Errorf("count: event %q: %w", args[0], err)
	}
	// The event is this thread's; children inherit it, and begin to count when
	// they execute a program. Its count is the sum of those that have ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	attr := &unix.PerfEventAttr{
		Type: unix.PERF_TYPE_HARDWARE, Config: config, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits: unix.PerfBitDisabled | unix.PerfBitInherit | unix.PerfBitEnableOnExec,
	}
	fd, err := unix.PerfEventOpen(attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("count: open event: %w", err)
	}
	// Children inherit this as well.
	fifo := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 1}
	if err := unix.SchedSetAttr(0, fifo, 0); err != nil {
		return fmt.Errorf("count: set real-time priority: %w", err)
	}
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	var buf [8]byte
	if _, err := unix.Read(fd, buf[:]); err != nil {
		return fmt.Errorf("count: read event: %w", err)
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return fmt.Errorf("count: the child's usage is not known")
	}
	fmt.Println("counted", cmd.Process.Pid, binary.NativeEndian.Uint64(buf[:]), usage.Nvcsw+usage.Nivcsw)
	return nil
}

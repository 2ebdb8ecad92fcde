//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// count runs a command as a child and prints what the kernel counts of an event, without
// sampling it, from the child's exec to its end: "counted PID COUNT".
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
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("count: %w", err)
	}
	var buf [8]byte
	if _, err := unix.Read(fd, buf[:]); err != nil {
		return fmt.Errorf("count: read event: %w", err)
	}
	fmt.Println("counted", cmd.Process.Pid, binary.NativeEndian.Uint64(buf[:]))
	return nil
}

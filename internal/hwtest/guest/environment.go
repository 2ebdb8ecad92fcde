//go:build linux

package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// hide runs a command to which a folder of /sys looks empty, as where the kernel lacks what it is for.
//
//	init hide FOLDER PROG ARG…
func hide(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("hide: name a folder and a program")
	}
	runtime.LockOSThread() // the namespace is the thread's
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("hide: %w", err)
	}
	if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("hide: %w", err)
	}
	if err := unix.Mount("tmpfs", args[0], "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("hide %s: %w", args[0], err)
	}
	return syscall.Exec(args[1], args[1:], os.Environ())
}

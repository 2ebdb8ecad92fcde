//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
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

// ordinary is the id of a user without rights, and of a group.
const ordinary = 65534

// asUser runs a command as a user without rights, where the kernel's setting of perf_event_paranoid has a level.
//
//	init as-user LEVEL PROG ARG…
func asUser(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("as-user: name a level and a program")
	}
	if err := os.WriteFile("/proc/sys/kernel/perf_event_paranoid", []byte(args[0]), 0); err != nil {
		return fmt.Errorf("as-user: %w", err)
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("as-user: %w", err)
	}
	if err := syscall.Setgid(ordinary); err != nil {
		return fmt.Errorf("as-user: %w", err)
	}
	if err := syscall.Setuid(ordinary); err != nil {
		return fmt.Errorf("as-user: %w", err)
	}
	return syscall.Exec(args[1], args[1:], os.Environ())
}

// groups1 runs a command in control groups of version 1: as a service in a hierarchy mounted with options, such as
// systemd's own.
//
//	init groups1 OPTIONS PROG ARG…
func groups1(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("groups1: name options and a program")
	}
	at, err := os.MkdirTemp("", "groups")
	if err != nil {
		return fmt.Errorf("groups1: %w", err)
	}
	if err := unix.Mount("cgroup", at, "cgroup", 0, args[0]); err != nil {
		return fmt.Errorf("groups1: mount %s: %w", args[0], err)
	}
	service := filepath.Join(at, "system.slice", "guest.service")
	if err := os.MkdirAll(service, 0o755); err != nil {
		return fmt.Errorf("groups1: %w", err)
	}
	if err := os.WriteFile(filepath.Join(service, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return fmt.Errorf("groups1: %w", err)
	}
	return syscall.Exec(args[1], args[1:], os.Environ())
}

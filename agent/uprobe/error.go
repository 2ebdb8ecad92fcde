package uprobe

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Error reports that the kernel refuses to attach a probe.
type Error struct{ Err error }

func (e *Error) Error() string {
	return fmt.Sprintf("the kernel puts no probe into the program: %v; %s", e.Err, e.help())
}

func (e *Error) Unwrap() error { return e.Err }

// help returns the likely cause, and what to do.
func (e *Error) help() string {
	switch {
	case errors.Is(e.Err, unix.EPERM), errors.Is(e.Err, unix.EACCES):
		return "a seccomp filter (of a container?) or a security module forbids it: run ccagent outside of it, or with CAP_SYS_ADMIN"
	case errors.Is(e.Err, unix.EIO), errors.Is(e.Err, unix.EINVAL):
		return "its file system may not allow any: run it from another one, such as ext4, xfs, btrfs or tmpfs"
	case errors.Is(e.Err, fs.ErrNotExist):
		return "the kernel needs CONFIG_UPROBE_EVENTS, and /sys must show it: a container may hide /sys/bus/event_source"
	case errors.Is(e.Err, ebpf.ErrNotSupported):
		return "the kernel is older than 5.15, or a seccomp filter (of a container?) hides what it can do: run ccagent outside of it"
	case errors.Is(e.Err, unix.EMFILE):
		return "raise the limit on open files (ulimit -n)"
	}
	return "see ccagent doctor"
}

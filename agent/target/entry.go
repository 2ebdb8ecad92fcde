package target

import (
	"encoding/binary"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"ccagent/agent/hold"
	"ccagent/agent/procfs"
)

// entryPoint prepares to hold a program that has just been started at its own first
// instruction. Nil if no dynamic linker runs before that.
func entryPoint(pid int) (*hold.Point, error) {
	entry, err := dynamicEntry(pid)
	if err != nil || entry == 0 {
		return nil, err
	}
	maps, err := procfs.Maps(pid)
	if err != nil {
		return nil, fmt.Errorf("find the entry of process %d: %w", pid, err)
	}
	for _, m := range maps {
		if m.Inode != 0 && entry >= m.Start && entry < m.End {
			return hold.NewPoint(pid, fmt.Sprintf("/proc/%d/exe", pid), entry-m.Start+m.Offset)
		}
	}
	return nil, fmt.Errorf("find the entry of process %d: it is not in the program's file", pid)
}

// runToEntry lets a stopped program run until it is held at its own first instruction,
// past the dynamic linker's code: then its libraries are mapped. False if it does not get
// there; then it stands somewhere else, or has ended. sig is the signal that it is to be
// given when it is let run.
func runToEntry(pid int, entry *hold.Point) (there bool, sig syscall.Signal) {
	for {
		if err := unix.PtraceCont(pid, int(sig)); err != nil {
			return false, 0
		}
		status, ok := hold.StopOf(pid)
		if !ok {
			return false, 0
		}
		sig = status.StopSignal()
		if held, err := entry.Holds(pid, sig); held || err != nil {
			return held, 0
		}
		switch {
		case sig == unix.SIGTRAP && status.TrapCause() == unix.PTRACE_EVENT_EXEC:
			return false, 0 // an initialiser of a library executes another program
		case sig == unix.SIGSTOP, sig == unix.SIGTSTP, sig == unix.SIGTTIN, sig == unix.SIGTTOU:
			return false, sig // the rest of its start goes unattended
		}
		// Any other signal is the program's.
	}
}

// dynamicEntry returns the address of a program's first own instruction, 0 if there is no
// dynamic linker before it.
func dynamicEntry(pid int) (uint64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", pid))
	if err != nil {
		return 0, fmt.Errorf("find the entry of process %d: %w", pid, err)
	}
	const atBase, atEntry = 7, 9
	var base, entry uint64
	for ; len(raw) >= 16; raw = raw[16:] {
		switch v := binary.NativeEndian.Uint64(raw[8:]); binary.NativeEndian.Uint64(raw) {
		case atBase:
			base = v
		case atEntry:
			entry = v
		}
	}
	if base == 0 {
		return 0, nil
	}
	return entry, nil
}

// detach lets a traced process run, with a signal if it is to have one.
func detach(pid int, sig syscall.Signal) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, uintptr(sig), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

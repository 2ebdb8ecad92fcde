package target

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// breakpoints are the instructions that trap, by architecture.
var breakpoints = map[string][]byte{
	"amd64":   {0xcc},
	"arm64":   {0x00, 0x00, 0x20, 0xd4},
	"riscv64": {0x02, 0x90},
}

// runToEntry lets a stopped program run up to its own first instruction, past the dynamic
// linker's code: then its libraries are mapped. False if it has no dynamic linker or
// does not get there; then it stands somewhere else, or has ended. sig is the signal that
// it is to be given when it is let run.
func runToEntry(pid int) (there bool, sig syscall.Signal) {
	entry, err := dynamicEntry(pid)
	trap := breakpoints[runtime.GOARCH]
	if err != nil || entry == 0 || trap == nil {
		return false, 0
	}
	code := make([]byte, len(trap))
	if _, err := unix.PtracePeekText(pid, entry, code); err != nil {
		return false, 0
	}
	if _, err := unix.PtracePokeText(pid, entry, trap); err != nil {
		return false, 0
	}
	if err := unix.PtraceCont(pid, 0); err != nil {
		return false, 0
	}
	status, ok := stopOf(pid)
	if !ok {
		return false, 0
	}
	sig = status.StopSignal()
	var regs syscall.PtraceRegs
	err = syscall.PtraceGetRegs(pid, &regs)
	at, after := uint64(entry), uint64(entry)+uint64(len(trap))
	there = err == nil && sig == unix.SIGTRAP && (regs.PC() == at || regs.PC() == after)
	if sig == unix.SIGTRAP && !there {
		return false, 0 // an initialiser of a library executes another program
	}
	// Any other signal is the program's: the rest of its start goes unattended.
	if _, err := unix.PtracePokeText(pid, entry, code); err != nil || !there {
		return false, sig
	}
	if regs.PC() != at { // x86 traps behind the instruction
		regs.SetPC(at)
		if syscall.PtraceSetRegs(pid, &regs) != nil {
			return false, 0
		}
	}
	return true, 0
}

// stopOf waits for a traced process to stop. False if it ends instead, which is left for
// others to wait for.
func stopOf(pid int) (status unix.WaitStatus, ok bool) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		const trapped, stopped = 4, 5 // CLD_TRAPPED, CLD_STOPPED
		if err != nil || info.Code != trapped && info.Code != stopped {
			return status, false
		}
		_, err = wait4(pid, &status)
		return status, err == nil && status.Stopped()
	}
}

// dynamicEntry gives the address of a program's first own instruction, 0 if there is no
// dynamic linker before it.
func dynamicEntry(pid int) (uintptr, error) {
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
	return uintptr(entry), nil
}

// detach lets a traced process run, with a signal if it is to have one.
func detach(pid int, sig syscall.Signal) error {
	if _, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0, uintptr(sig), 0, 0); errno != 0 {
		return errno
	}
	return nil
}
